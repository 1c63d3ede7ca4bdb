#include "classic_group.h"

#include <algorithm>
#include <utility>

#include "../snapshot.h"

namespace millrace::consumer_groups {
namespace {

/// Kafka 2.3 on, until 4.4.
constexpr std::int16_t value_version = 3;
constexpr std::string_view consumer_protocol = "consumer";

std::int32_t to_ms(Duration duration) {
  return static_cast<std::int32_t>(
      std::chrono::duration_cast<std::chrono::milliseconds>(duration).count());
}

kafka::GroupMetadataValueMember record_of(const Member& member, std::string_view protocol,
                                          Buffer assignment) {
  const auto* metadata = member.metadata(protocol);
  kafka::GroupMetadataValueMember out;
  out.member_id = member.id;
  if (member.instance_id) out.group_instance_id = *member.instance_id;
  out.client_id = member.client.id;
  out.client_host = member.client.host;
  out.rebalance_timeout = to_ms(member.rebalance_timeout);
  out.session_timeout = to_ms(member.session_timeout);
  if (metadata) out.subscription = *metadata;
  out.assignment = std::move(assignment);
  return out;
}

}  // namespace

ClassicGroup::ClassicGroup(std::string id) : id_(std::move(id)) {}

std::string_view ClassicGroup::state() const noexcept {
  switch (state_) {
    case State::empty: return "Empty";
    case State::preparing_rebalance: return "PreparingRebalance";
    case State::completing_rebalance: return "CompletingRebalance";
    case State::stable: return "Stable";
  }
  return "";
}

bool ClassicGroup::gone() const noexcept {
  return state_ == State::empty && recorded_.empty() && roster_.empty() && pending_.empty();
}

void ClassicGroup::enter(State state, Timestamp at) {
  state_ = state;
  state_since_ = at;
}

bool ClassicGroup::subscribed_to(std::string_view topic) const {
  return subscribed_ && subscribed_->contains(topic);
}

void ClassicGroup::compute_subscribed() {
  subscribed_.reset();
  if (protocol_type_ != consumer_protocol || protocol_.empty() || roster_.empty()) return;
  std::set<std::string, std::less<>> topics;
  for (const auto& [id, member] : roster_.members()) {
    const auto* metadata = member.metadata(protocol_);
    if (!metadata) return;
    auto mine = subscribed_topics(*metadata);
    if (!mine) return;  // somebody's own format: nobody knows what the group reads
    std::ranges::move(*mine, std::inserter(topics, topics.end()));
  }
  subscribed_ = std::move(topics);
}

std::optional<Timestamp> ClassicGroup::retention_from(Timestamp committed) const {
  if (protocol_type_.empty()) return committed;  // offsets are all that it has ever had
  if (state_ == State::empty) return state_since_.ms >= 0 ? state_since_ : committed;
  if (state_ == State::stable && subscribed_) return committed;
  return std::nullopt;
}

// ---- the record ----

Result<> ClassicGroup::emit_generation(Turn& turn,
                                       const std::map<std::string, Buffer, std::less<>>& assigned,
                                       const Member* replacement, std::string_view replaced) {
  kafka::GroupMetadataValue value;
  value.protocol_type = protocol_type_;
  value.generation = generation_;
  value.protocol = protocol_;
  value.leader = replacement && leader_ == replaced ? replacement->id : leader_;
  value.current_state_timestamp = turn.wall().ms;
  value.members.reserve(roster_.size());
  for (const auto& [id, member] : roster_.members()) {
    const auto given = assigned.find(id);
    auto assignment = given == assigned.end() ? Buffer{} : given->second;
    const bool succeeded = replacement && id == replaced;
    value.members.push_back(
        record_of(succeeded ? *replacement : member, protocol_, std::move(assignment)));
  }
  kafka::GroupMetadataKey key;
  key.group = id_;
  return turn.emit(key, value, value_version);
}

Result<> ClassicGroup::emit_empty(Turn& turn) {
  kafka::GroupMetadataValue value;
  value.protocol_type = protocol_type_;
  value.generation = generation_;
  value.protocol.reset();
  value.leader.reset();
  value.current_state_timestamp = turn.wall().ms;
  kafka::GroupMetadataKey key;
  key.group = id_;
  return turn.emit(key, value, value_version);
}

Result<> ClassicGroup::emit_removal(Turn& turn) {
  if (!is_recorded()) {
    build_from({});
    return {};
  }
  kafka::GroupMetadataKey key;
  key.group = id_;
  return turn.emit_tombstone(key);
}

Result<> ClassicGroup::evolve(RecordKind /*kind*/, Bytes /*key*/, std::optional<Bytes> value,
                              const EventInfo& info) {
  if (!value) {
    // Only an empty group is removed, by us or by whoever has written the log.
    recorded_ = {};
    build_from({});
    return {};
  }
  MR_TRY(const auto decoded, decode_value<kafka::GroupMetadataValue>(*value));
  recorded_ = Buffer::copy_of(*value);
  if (info.replay || (roster_.empty() && !decoded.members.empty())) {
    successor_ = !info.replay;
    build_from(decoded);
  } else {
    follow(decoded);
  }
  return {};
}

/// All that is known of the group is its record.
void ClassicGroup::build_from(const kafka::GroupMetadataValue& value) {
  using std::chrono::milliseconds;
  roster_ = {};
  pending_.clear();
  unsynced_.clear();
  join_deadline_.reset();
  sync_deadline_.reset();
  replacement_.reset();
  protocol_type_ = value.protocol_type;
  generation_ = value.generation;
  protocol_ = value.protocol.value_or("");
  leader_ = value.leader.value_or("");
  for (const auto& from : value.members) {
    if (roster_.find(from.member_id)) continue;
    Member member;
    member.id = from.member_id;
    if (from.group_instance_id) member.instance_id = std::string(*from.group_instance_id);
    member.client = {std::string(from.client_id), std::string(from.client_host)};
    member.session_timeout = milliseconds(from.session_timeout);
    // Before KIP-62 there was one time-out for both.
    member.rebalance_timeout =
        milliseconds(from.rebalance_timeout == -1 ? from.session_timeout : from.rebalance_timeout);
    member.protocols.push_back({protocol_, from.subscription.detach()});
    member.assignment = from.assignment.detach();
    roster_.add(std::move(member));
  }
  enter(roster_.empty() ? State::empty : State::stable, {value.current_state_timestamp});
  compute_subscribed();
}

/// What this object has decided is in the log now.
void ClassicGroup::follow(const kafka::GroupMetadataValue& value) {
  state_since_ = {value.current_state_timestamp};
  if (value.members.empty()) return;
  if (replacement_) {
    auto [old_id, member] = std::move(*std::exchange(replacement_, std::nullopt));
    if (roster_.find(old_id) && value.generation == generation_) {
      (void)roster_.remove(old_id);
      if (leader_ == old_id) leader_ = member.id;
      roster_.add(std::move(member));
      compute_subscribed();
    }
  }
  for (const auto& from : value.members) {
    if (auto* member = roster_.find(from.member_id)) member->assignment = from.assignment.detach();
  }
  state_ = State::stable;
}

void ClassicGroup::snapshot(SnapshotWriter& out) const {
  if (!is_recorded()) return;
  kafka::GroupMetadataKey key;
  key.group = id_;
  if (const auto bytes = encode_key(key)) put_record(out, *bytes, recorded_);
}

// ---- time ----

void ClassicGroup::keep_alive(Member& member, Turn& turn) {
  member.expires = turn.now() + member.session_timeout;
  wake_by(member.expires, turn);
}

/// A deadline that moves further away costs nothing: the timer comes too early, and looks again.
void ClassicGroup::wake_by(MonoTime when, Turn& turn) {
  if (wakes_ && *wakes_ <= when) return;
  wakes_ = when;
  turn.context.set_timer(timer_of(id_), std::max(when - turn.now(), Duration::zero()));
}

MonoTime ClassicGroup::next_deadline() const {
  auto next = MonoTime::max();
  for (const auto& [id, member] : roster_.members()) {
    if (member.may_expire()) next = std::min(next, member.expires);
  }
  for (const auto& [id, until] : pending_) next = std::min(next, until);
  if (join_deadline_) next = std::min(next, *join_deadline_);
  if (sync_deadline_) next = std::min(next, *sync_deadline_);
  return next;
}

void ClassicGroup::timer(Turn& turn) {
  wakes_.reset();
  if (std::exchange(successor_, false)) {
    for (auto& [id, member] : roster_.unguarded()) keep_alive(member, turn);
    prepare_rebalance(turn);
  }
  const auto now = turn.now();
  if (join_deadline_ && *join_deadline_ <= now) {
    join_deadline_.reset();
    initial_ ? initial_delay_over(turn) : complete_join(turn);
  }
  if (sync_deadline_ && *sync_deadline_ <= now) {
    sync_deadline_.reset();
    sync_time_over(turn);
  }
  expire_members(turn);
  if (const auto next = next_deadline(); next != MonoTime::max()) wake_by(next, turn);
}

void ClassicGroup::loaded(Turn& turn) {
  for (auto& [id, member] : roster_.unguarded()) keep_alive(member, turn);
  // The limit may have become smaller meanwhile: in a rebalance those who come last are left out.
  if (roster_.size() > turn.settings.members_max) prepare_rebalance(turn);
}

}  // namespace millrace::consumer_groups
