// JoinGroup: who may join, as whom, and whether that takes a rebalance.
#include <utility>

#include "../monitor.h"
#include "classic_group.h"

namespace millrace::consumer_groups {
namespace {

/// How long somebody new is waited for in a rebalance: it cannot show that it lives, and the
/// connection that it asked on may be gone. Kafka's, and no setting there either.
constexpr Duration new_member_wait = std::chrono::minutes(5);

/// What all members of a group may say of themselves, in records of the largest size. One record
/// has their metadata of one protocol; they offer a few, and the record may be compressed.
constexpr std::size_t group_records_max = 8;

void refuse_join(ErrorCode error, std::string member_id, ReplyTo to, Turn& turn) {
  turn.answer(to, JoinGroupAnswer{.error = error, .member_id = std::move(member_id)});
}

std::string new_member_id(const Join& ask, Turn& turn) {
  const auto& named_after = ask.request.instance_id ? *ask.request.instance_id : ask.client.id;
  return named_after + "-" + java_text(turn.context.uuid());
}

std::vector<GroupProtocol> detached(std::vector<GroupProtocol> protocols) {
  for (auto& protocol : protocols) protocol.metadata = protocol.metadata.detach();
  return protocols;
}

}  // namespace

void ClassicGroup::join(Join& ask, ReplyTo to, Turn& turn) {
  auto& request = ask.request;
  if (!has_room_for(request.member_id, turn)) {
    if (roster_.find(request.member_id)) {
      remove_member(request.member_id, ErrorCode::group_max_size_reached, turn);
    }
    pending_.erase(request.member_id);
    refuse_join(ErrorCode::group_max_size_reached, {}, to, turn);
    return complete_if_all_joined(turn);
  }
  if (!has_memory_for(ask, turn)) {
    return refuse_join(ErrorCode::group_max_size_reached, std::move(request.member_id), to, turn);
  }
  if (!speaks(request)) {
    return refuse_join(ErrorCode::inconsistent_group_protocol, std::move(request.member_id), to,
                       turn);
  }
  request.member_id.empty() ? join_as_new(ask, to, turn) : join_again(ask, to, turn);
}

/// In a rebalance those who have come count, so that a group that is too large shrinks; otherwise
/// those who are in it.
bool ClassicGroup::has_room_for(std::string_view member_id, const Turn& turn) const {
  const auto* known = roster_.find(member_id);
  switch (state_) {
    case State::empty: return true;
    case State::preparing_rebalance:
      return (known && known->joining != ReplyTo::nobody) ||
             roster_.joining() < turn.settings.members_max;
    case State::completing_rebalance:
    case State::stable: return known || roster_.size() < turn.settings.members_max;
  }
  return false;
}

/// The leader is sent what all others say, and the group's record holds it.
bool ClassicGroup::has_memory_for(const Join& ask, Turn& turn) const {
  const auto& request = ask.request;
  const auto* before = roster_.find(request.member_id);
  if (before == nullptr && request.instance_id) {
    const auto* holder = roster_.holder_of(*request.instance_id);
    if (holder) before = roster_.find(*holder);
  }
  const auto bytes = roster_.bytes() - (before ? member_bytes(*before) : 0) + member_bytes(ask);
  const auto bytes_max = group_records_max * turn.settings.message_bytes_max;
  if (bytes <= bytes_max) return true;
  turn.monitor.too_large(id_, "what the members of its group say of themselves is too much", bytes,
                         bytes_max, turn.now());
  return false;
}

bool ClassicGroup::speaks(const JoinGroupRequest& request) const {
  if (roster_.empty()) return !request.protocol_type.empty() && !request.protocols.empty();
  return request.protocol_type == protocol_type_ && roster_.any_spoken_by_all(request.protocols);
}

void ClassicGroup::join_as_new(Join& ask, ReplyTo to, Turn& turn) {
  auto id = new_member_id(ask, turn);
  if (ask.request.instance_id) {
    if (const auto* holder = roster_.holder_of(*ask.request.instance_id)) {
      const auto old_id = *holder;
      return replace_static(old_id, std::move(id), ask, to, turn);
    }
    return admit(std::move(id), ask, to, turn);
  }
  if (!ask.request.known_member_id_required) return admit(std::move(id), ask, to, turn);
  // So that a client that gives up before it hears of its id leaves no member behind.
  const auto until = turn.now() + ask.request.session_timeout;
  pending_.insert_or_assign(id, until);
  wake_by(until, turn);
  refuse_join(ErrorCode::member_id_required, std::move(id), to, turn);
}

void ClassicGroup::join_again(Join& ask, ReplyTo to, Turn& turn) {
  auto& request = ask.request;
  if (pending_.contains(request.member_id)) {
    auto id = request.member_id;
    pending_.erase(id);
    return admit(std::move(id), ask, to, turn);
  }
  if (const auto error = check_member(request.member_id, request.instance_id);
      error != ErrorCode::none) {
    return refuse_join(error, std::move(request.member_id), to, turn);
  }
  auto& member = *roster_.find(request.member_id);
  const bool unchanged = same_protocols(member.protocols, request.protocols);
  const bool leads = member.id == leader_;
  // It may have missed the answer of this generation. A leader that joins a stable group wants a
  // new one: it has seen something that the others need not know, such as more partitions.
  const bool answered =
      unchanged && (state_ == State::completing_rebalance || (state_ == State::stable && !leads));
  if (!answered) return rejoin(member, request, to, turn);
  turn.answer(to, joined(member));
  keep_alive(member, turn);
}

Member ClassicGroup::make_member(std::string member_id, Join& ask) const {
  auto& request = ask.request;
  Member member;
  member.id = std::move(member_id);
  member.instance_id = request.instance_id;
  member.client = ask.client;
  member.session_timeout = request.session_timeout;
  member.rebalance_timeout = request.rebalance_timeout;
  member.protocols = detached(std::move(request.protocols));
  return member;
}

void ClassicGroup::admit(std::string member_id, Join& ask, ReplyTo to, Turn& turn) {
  auto member = make_member(std::move(member_id), ask);
  member.is_new = true;
  member.joining = to;
  member.expires = turn.now() + new_member_wait;
  wake_by(member.expires, turn);
  if (initial_) joined_meanwhile_ = true;
  if (roster_.empty()) protocol_type_ = ask.request.protocol_type;
  if (leader_.empty()) leader_ = member.id;
  roster_.add(std::move(member));
  rebalance_or_complete(turn);
}

void ClassicGroup::rejoin(Member& member, JoinGroupRequest& request, ReplyTo to, Turn& turn) {
  roster_.set_protocols(member, detached(std::move(request.protocols)));
  member.session_timeout = request.session_timeout;
  member.rebalance_timeout = request.rebalance_timeout;
  if (member.joining != ReplyTo::nobody) {
    // A retry: the connection of the first request is gone, most likely.
    refuse_join(ErrorCode::rebalance_in_progress, member.id, member.joining, turn);
  }
  roster_.set_joining(member, to);
  rebalance_or_complete(turn);
}

void ClassicGroup::replace_static(const std::string& old_id, std::string new_id, Join& ask,
                                  ReplyTo to, Turn& turn) {
  auto replacement = make_member(std::move(new_id), ask);
  const auto* old = roster_.find(old_id);
  replacement.assignment = old->assignment;
  if (state_ == State::stable) {
    // As long as the group would choose the same protocol again nobody needs to know.
    auto then = roster_;
    (void)then.remove(old_id);
    then.add(replacement);
    if (then.elect_protocol() == protocol_) {
      return replace_in_generation(std::move(replacement), old_id, ask, to, turn);
    }
  }
  auto removed = roster_.remove(old_id);
  unsynced_.erase(old_id);
  if (removed.joining != ReplyTo::nobody) {
    refuse_join(ErrorCode::fenced_instance_id, removed.id, removed.joining, turn);
  }
  turn.answer(removed.syncing, SyncGroupAnswer{.error = ErrorCode::fenced_instance_id});
  if (leader_ == old_id) leader_ = replacement.id;
  replacement.joining = to;
  replacement.expires = turn.now() + replacement.session_timeout;
  wake_by(replacement.expires, turn);
  roster_.add(std::move(replacement));
  // Also in a generation whose leader is still assigning: it would assign to the old member id.
  rebalance_or_complete(turn);
}

void ClassicGroup::replace_in_generation(Member replacement, const std::string& old_id, Join& ask,
                                         ReplyTo to, Turn& turn) {
  std::map<std::string, Buffer, std::less<>> assigned;
  for (const auto& [id, member] : roster_.members()) assigned.emplace(id, member.assignment);
  replacement.expires = turn.now() + replacement.session_timeout;
  wake_by(replacement.expires, turn);
  if (const auto emitted = emit_generation(turn, assigned, &replacement, old_id); !emitted) {
    return refuse_join(ErrorCode::unknown_server_error, {}, to, turn);
  }
  JoinGroupAnswer answer{
      .generation = generation_,
      .protocol_type = protocol_type_,
      .protocol = protocol_,
      .leader = leader_,
      .member_id = replacement.id,
  };
  const bool leads = leader_ == old_id;
  if (ask.request.skip_assignment) {
    // KIP-814: a leader may look at the group, and leaves the assignment as it is. Older clients
    // are told that their former self leads, so that they do not assign.
    if (leads) {
      answer.leader = replacement.id;
      answer.members = members_for_leader();
      for (auto& member : answer.members) {
        if (member.member_id == old_id) {
          member.member_id = replacement.id;
          if (const auto* metadata = replacement.metadata(protocol_)) member.metadata = *metadata;
        }
      }
    }
    answer.skip_assignment = leads;
  }
  turn.answer(to, std::move(answer));
  replacement_ = Replacement{old_id, std::move(replacement)};
}

std::vector<JoinGroupMember> ClassicGroup::members_for_leader() const {
  std::vector<JoinGroupMember> out;
  out.reserve(roster_.size());
  for (const auto& [id, member] : roster_.members()) {
    const auto* metadata = member.metadata(protocol_);
    out.push_back({id, member.instance_id, metadata ? *metadata : Buffer{}});
  }
  return out;
}

JoinGroupAnswer ClassicGroup::joined(const Member& member) const {
  JoinGroupAnswer answer{
      .generation = generation_,
      .protocol_type = protocol_type_,
      .protocol = protocol_,
      .leader = leader_,
      .member_id = member.id,
  };
  if (member.id == leader_) answer.members = members_for_leader();
  return answer;
}

}  // namespace millrace::consumer_groups
