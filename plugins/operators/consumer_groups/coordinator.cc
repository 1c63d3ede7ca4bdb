#include "coordinator.h"

#include <algorithm>
#include <utility>
#include <variant>

#include <millrace/utf8.h>

#include "classic/classic_group.h"
#include "commits.h"
#include "consumer/entry.h"
#include "snapshot.h"

namespace millrace::consumer_groups {
namespace {

using Type = Membership::Type;

/// To who speaks to groups as to any aggregate.
constexpr std::string_view not_ours = "groups take requests of the protocol alone";
constexpr std::string_view retention_timer = "retention";
constexpr std::string_view deletion_timer = "deletion";
constexpr Duration next_batch_after = std::chrono::milliseconds(10);

Type type_of(RecordKind kind) noexcept {
  return kind == RecordKind::group_metadata ? Type::classic : Type::consumer;
}

std::string_view name_of(Type type) noexcept {
  return type == Type::classic ? "classic" : "consumer";
}

bool same_text(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
  return std::ranges::equal(a, b, {}, lower, lower);
}

bool is_wanted(const GroupListed& group, const GroupFilter& filter) {
  const auto among = [](const std::vector<std::string>& names, std::string_view name) {
    return names.empty() ||
           std::ranges::any_of(names, [&](const auto& one) { return same_text(one, name); });
  };
  return among(filter.states, group.state) && among(filter.types, group.type);
}

}  // namespace

Group* Coordinator::find(std::string_view id) {
  if (last_ && last_->id == id) return last_;
  const auto found = groups_.find(id);
  if (found == groups_.end()) return nullptr;
  last_ = &found->second;
  return last_;
}

Group& Coordinator::find_or_make(std::string_view id) {
  if (auto* known = find(id)) return *known;
  std::string name(id);
  return groups_.try_emplace(name, name).first->second;
}

void Coordinator::drop_if_gone(std::string_view id) {
  if (auto* group = find(id)) static_cast<void>(drop_if_gone(*group));
}

bool Coordinator::drop_if_gone(Group& group) {
  if (group.members && group.members->gone()) group.members.reset();
  if (group.members || !group.offsets.empty()) return false;
  monitor_.forget(group);
  last_ = nullptr;
  groups_.erase(groups_.find(group.id));
  return true;
}

void Coordinator::settle(std::string_view id, Turn& turn) {
  auto* group = find(id);
  if (!group || drop_if_gone(*group)) return;
  // One of the consumer protocol is what its records say: see evolve_membership().
  if (!group->is(Type::consumer)) monitor_.count(*group, turn.wall());
}

Coordinator::~Coordinator() {
  for (auto& [id, group] : groups_) monitor_.forget(group);
}

void Coordinator::decide(Command& command, Context& context) {
  auto turn = turn_in(context);
  auto* ask = message_as<Ask>(&command.body);
  if (ask == nullptr) {
    return context.refuse(command.reply_to, ErrorCode::invalid_request, std::string(not_ours));
  }
  std::visit([&](auto& body) { on(body, command.key, command.reply_to, turn); }, ask->body);
  settle(command.key, turn);
}

// ---- members ----

void Coordinator::on(Join& ask, std::string_view key, ReplyTo to, Turn& turn) {
  if (ask.request.session_timeout < turn.settings.session_timeout_min ||
      ask.request.session_timeout > turn.settings.session_timeout_max) {
    return turn.answer(to, JoinGroupAnswer{.error = ErrorCode::invalid_session_timeout,
                                           .member_id = std::move(ask.request.member_id)});
  }
  if (const auto bytes = member_bytes(ask); bytes > turn.settings.message_bytes_max) {
    turn.monitor.too_large(key, "what it says of itself fits no record", bytes,
                           turn.settings.message_bytes_max, turn.now());
    return turn.answer(to, JoinGroupAnswer{.error = ErrorCode::invalid_request,
                                           .member_id = std::move(ask.request.member_id)});
  }
  auto* group = find(key);
  if (!ask.request.member_id.empty() && (!group || !group->members)) {
    return turn.answer(to, JoinGroupAnswer{.error = ErrorCode::unknown_member_id,
                                           .member_id = std::move(ask.request.member_id)});
  }
  if (!group) group = &find_or_make(key);
  if (group->is(Type::consumer) && group->members->empty() && group->members->emit_removal(turn)) {
    group->members.reset();  // whoever comes first says which protocol a group speaks
  }
  if (!group->members) group->members = std::make_unique<ClassicGroup>(group->id);
  group->members->join(ask, to, turn);
}

void Coordinator::on(SyncGroupRequest& ask, std::string_view key, ReplyTo to, Turn& turn) {
  auto* group = find(key);
  if (!group || !group->members) {
    return turn.answer(to, SyncGroupAnswer{.error = ErrorCode::unknown_member_id});
  }
  group->members->sync(ask, to, turn);
}

void Coordinator::on(GroupHeartbeat& ask, std::string_view key, ReplyTo to, Turn& turn) {
  auto* group = find(key);
  if (!group || !group->members) return turn.answer(to, ErrorCode::unknown_member_id);
  group->members->heartbeat(ask, to, turn);
}

void Coordinator::on(LeaveGroupRequest& ask, std::string_view key, ReplyTo to, Turn& turn) {
  auto* group = find(key);
  if (!group || !group->members) {
    return turn.answer(to, LeaveGroupAnswer{.error = ErrorCode::unknown_member_id});
  }
  group->members->leave(ask, to, turn);
}

void Coordinator::on(MemberHeartbeat& ask, std::string_view key, ReplyTo to, Turn& turn) {
  consumer_heartbeat(find_or_make(key), ask, to, turn);
}

// ---- offsets ----

void Coordinator::on(OffsetCommitRequest& ask, std::string_view key, ReplyTo to, Turn& turn) {
  if (ask.group != key) ask.group = key;  // it was no UTF-8
  turn.answer(to, commit_offsets(find(key), ask, topics_, turn));
}

void Coordinator::on(OffsetDeletion& ask, std::string_view key, ReplyTo to, Turn& turn) {
  turn.answer(to, delete_offsets(find(key), ask, turn));
}

void Coordinator::on(FetchOffsets& ask, std::string_view key, ReplyTo to, Turn& turn) {
  turn.answer(to, fetch_offsets(find(key), ask, turn.context.cluster()));
}

// ---- groups as a whole ----

void Coordinator::on(Describe& /*ask*/, std::string_view key, ReplyTo to, Turn& turn) {
  GroupDescribed out{.group = std::string(key)};
  const auto* group = find(key);
  if (!group || group->is(Type::consumer)) {
    out.error = ErrorCode::group_id_not_found;
    out.state = "Dead";
    out.message = group ? "Group " + shown(out.group) + " is not a classic group."
                        : "Group " + shown(out.group) + " not found.";
  } else if (group->members) {
    group->members->describe(out);
  } else {
    out.state = "Empty";
  }
  turn.answer(to, std::move(out));
}

void Coordinator::on(DescribeConsumers& /*ask*/, std::string_view key, ReplyTo to, Turn& turn) {
  ConsumerGroupDescribed out{.group = std::string(key)};
  const auto* group = find(key);
  if (group && group->is(Type::consumer)) {
    describe_consumers(*group, turn.context, out);
  } else {
    out.error = ErrorCode::group_id_not_found;
    out.message = group ? "Group " + shown(out.group) + " is not a consumer group."
                        : "Group " + shown(out.group) + " not found.";
  }
  turn.answer(to, std::move(out));
}

void Coordinator::on(Remove& /*ask*/, std::string_view key, ReplyTo to, Turn& turn) {
  GroupDeleted out{.group = std::string(key)};
  auto* group = find(key);
  if (!group) {
    out.error = ErrorCode::group_id_not_found;
  } else if (group->members && !group->members->empty()) {
    out.error = ErrorCode::non_empty_group;
  } else if (!remove_group(*group, turn)) {
    out.error = ErrorCode::unknown_server_error;
  }
  turn.answer(to, std::move(out));
}

Result<std::unique_ptr<Message>> Coordinator::query(std::string_view /*key*/,
                                                    const Message& question) const {
  const auto* listing = dynamic_cast<const ListQuestion*>(&question);
  if (listing == nullptr) return Error{Errc::invalid_argument, std::string(not_ours)};
  const auto& filter = listing->filter;
  GroupsListed out;
  for (const auto& [id, group] : groups_) {
    const auto* members = group.members.get();
    GroupListed listed{
        .group = id,
        .protocol_type = std::string(members ? members->protocol_type() : ""),
        .state = std::string(members ? members->state() : "Empty"),
        .type = std::string(name_of(members ? members->type() : Type::classic)),
    };
    if (is_wanted(listed, filter)) out.groups.push_back(std::move(listed));
  }
  std::ranges::sort(out.groups, {}, &GroupListed::group);
  return std::make_unique<Reply<GroupsListed>>(std::move(out));
}

// ---- events ----

Result<> Coordinator::evolve(const RecordView& event, const EventInfo& info) {
  last_event_ = std::max(last_event_, event.offset);
  if (!event.key) return {};  // nobody's
  MR_TRY(const auto kind, kind_of(*event.key));
  switch (kind) {
    case RecordKind::legacy_offset_commit:
    case RecordKind::offset_commit: return evolve_offset(event, info);
    case RecordKind::group_metadata:
    case RecordKind::consumer_group_metadata:
    case RecordKind::consumer_group_partition_metadata:
    case RecordKind::consumer_group_member_metadata:
    case RecordKind::consumer_group_target_metadata:
    case RecordKind::consumer_group_target_member:
    case RecordKind::consumer_group_current_assignment:
    case RecordKind::consumer_group_regular_expression: return evolve_membership(kind, event, info);
  }
  return {};  // a share or streams group's: kept in the log, not ours
}

Result<> Coordinator::evolve_membership(RecordKind kind, const RecordView& event,
                                        const EventInfo& info) {
  MR_TRY(const auto id, group_of(*event.key));
  const auto type = type_of(kind);
  if (!event.value && !find(id)) return {};
  auto& group = find_or_make(id);
  if (event.value && !group.is(type)) {
    group.members = type == Type::classic ? std::make_unique<ClassicGroup>(group.id)
                                          : make_consumer_membership(group.id);
  }
  // A tombstone of the other type ends what is no more: the group has moved between the protocols.
  if (group.is(type)) MR_CHECK(group.members->evolve(kind, *event.key, event.value, info));
  if (!info.replay) monitor_.count(group, info.time);  // else at the end of the load
  drop_if_gone(id);
  return {};
}

Result<> Coordinator::evolve_offset(const RecordView& event, const EventInfo& info) {
  MR_TRY(auto record, read_offset_record(event, info));
  if (!record.committed) {
    auto* group = find(record.group);
    if (!group) return {};
    topics_.count(record.topic, group->offsets.erase(record.topic, record.partition));
    drop_if_gone(record.group);
    return {};
  }
  auto& group = find_or_make(record.group);
  if (!info.replay) monitor_.committed();
  if (info.transactional) {
    group.offsets.put_pending(info.producer_id, record.topic, record.partition,
                              std::move(*record.committed));
    open_transactions_[info.producer_id].insert(group.id);
    return {};
  }
  topics_.count(record.topic,
                group.offsets.put(record.topic, record.partition, std::move(*record.committed)));
  if (!info.replay && !group.is(Type::consumer)) monitor_.count(group, info.time);
  return {};
}

void Coordinator::end_transaction(std::int64_t producer_id, std::int16_t /*producer_epoch*/,
                                  bool commit, const EventInfo& /*info*/) {
  const auto open = open_transactions_.extract(producer_id);
  if (open.empty()) return;
  for (const auto& id : open.mapped()) {
    auto* group = find(id);
    if (!group) continue;
    for (auto& [place, committed] : group->offsets.take_pending(producer_id)) {
      if (!commit) break;
      // A commit without a transaction may have come between: the later one counts.
      const auto* now = group->offsets.find(place.topic, place.partition);
      if (now && now->logged > committed.logged) continue;
      topics_.count(place.topic,
                    group->offsets.put(place.topic, place.partition, std::move(committed)));
    }
    drop_if_gone(id);
  }
}

// ---- life ----

void Coordinator::loaded(Context& context) {
  auto turn = turn_in(context);
  for (auto& [id, group] : groups_) {
    if (group.members) group.members->loaded(turn);
    monitor_.count(group, turn.wall());
  }
  look_for_deleted_topics(turn);
  context.set_timer(retention_timer, turn.settings.retention_check_interval);
}

void Coordinator::timer(std::string_view name, Context& context) {
  auto turn = turn_in(context);
  if (name == retention_timer) return expire_offsets(turn);
  if (name == deletion_timer) return drop_deleted_topics(turn);
  const auto id = group_of_timer(name);
  auto* group = id ? find(*id) : nullptr;
  if (!group || !group->members) return;
  group->members->timer(turn);
  settle(*id, turn);
}

void Coordinator::cluster_changed(Context& context) {
  auto turn = turn_in(context);
  look_for_deleted_topics(turn);
  for (auto& [id, group] : groups_) {
    if (group.members) group.members->cluster_changed(turn);
  }
}

void Coordinator::expire_offsets(Turn& turn) {
  for (auto& [id, group] : groups_) {
    const bool nothing_stays = expire_offsets_of(group, turn);
    if (!has_room(turn)) break;
    if (!nothing_stays || !group.members || !group.members->empty()) continue;
    // Nothing is left to remember of it.
    (void)group.members->emit_removal(turn);
  }
  turn.context.set_timer(
      retention_timer, has_room(turn) ? turn.settings.retention_check_interval : next_batch_after);
}

void Coordinator::look_for_deleted_topics(Turn& turn) {
  const auto& cluster = turn.context.cluster();
  if (cluster.version() == cluster_seen_) return;
  cluster_seen_ = cluster.version();
  for (auto& topic : topics_.look(cluster)) {
    deleted_topics_.insert_or_assign(topic, last_event_);
  }
  drop_deleted_topics(turn);
}

void Coordinator::drop_deleted_topics(Turn& turn) {
  if (deleted_topics_.empty()) return;
  for (auto& [id, group] : groups_) {
    drop_topics(group, deleted_topics_, turn);
    if (!has_room(turn)) return turn.context.set_timer(deletion_timer, next_batch_after);
  }
  deleted_topics_.clear();
}

// ---- snapshots: the records themselves ----

Result<> Coordinator::snapshot(SnapshotWriter& out) const {
  for (const auto& [id, group] : groups_) {
    MR_CHECK(write_offsets(group, out));
    if (group.members) group.members->snapshot(out);
  }
  return {};
}

Result<> Coordinator::restore(SnapshotReader& in) {
  while (const auto entry = in.next()) {
    MR_TRY(auto record, read_snapshot_entry(*entry));
    MR_CHECK(evolve(record.event, record.info));
  }
  return {};
}

}  // namespace millrace::consumer_groups
