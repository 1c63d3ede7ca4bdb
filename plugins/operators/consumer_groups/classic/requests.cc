// SyncGroup, Heartbeat, LeaveGroup, commits of members, DescribeGroups.
#include <utility>

#include "classic_group.h"

namespace millrace::consumer_groups {

ErrorCode ClassicGroup::check_member(std::string_view member_id,
                                     const std::optional<std::string>& instance_id) const {
  return check_member(roster_.find(member_id), member_id, instance_id);
}

ErrorCode ClassicGroup::check_member(const Member* found, std::string_view member_id,
                                     const std::optional<std::string>& instance_id) const {
  if (instance_id) {
    const auto* holder = roster_.holder_of(*instance_id);
    if (!holder) return ErrorCode::unknown_member_id;
    if (*holder != member_id) return ErrorCode::fenced_instance_id;
  }
  return found ? ErrorCode::none : ErrorCode::unknown_member_id;
}

void ClassicGroup::answer_join(Member& member, JoinGroupAnswer answer, Turn& turn) {
  const auto to = member.joining;
  roster_.set_joining(member, ReplyTo::nobody);
  turn.answer(to, std::move(answer));
  keep_alive(member, turn);
}

void ClassicGroup::answer_sync(Member& member, SyncGroupAnswer answer, Turn& turn) {
  turn.answer(std::exchange(member.syncing, ReplyTo::nobody), std::move(answer));
  keep_alive(member, turn);
}

void ClassicGroup::answer_all(ErrorCode error, Turn& turn) {
  for (auto& [id, member] : roster_.unguarded()) {
    if (member.joining != ReplyTo::nobody) {
      answer_join(member, {.error = error, .member_id = id}, turn);
    }
    if (member.syncing != ReplyTo::nobody) answer_sync(member, {.error = error}, turn);
  }
}

// ---- sync ----

ErrorCode ClassicGroup::check_sync(const SyncGroupRequest& request) const {
  if (const auto error = check_member(request.member_id, request.instance_id);
      error != ErrorCode::none) {
    return error;
  }
  if (request.generation != generation_) return ErrorCode::illegal_generation;
  const bool other_type = request.protocol_type && *request.protocol_type != protocol_type_;
  const bool other_protocol =
      request.protocol && !protocol_.empty() && *request.protocol != protocol_;
  if (other_type || other_protocol) return ErrorCode::inconsistent_group_protocol;
  return ErrorCode::none;
}

SyncGroupAnswer ClassicGroup::synced(Buffer assignment) const {
  return {
      .protocol_type = protocol_type_, .protocol = protocol_, .assignment = std::move(assignment)};
}

void ClassicGroup::sync(SyncGroupRequest& request, ReplyTo to, Turn& turn) {
  if (const auto error = check_sync(request); error != ErrorCode::none) {
    return turn.answer(to, SyncGroupAnswer{.error = error});
  }
  auto& member = *roster_.find(request.member_id);
  switch (state_) {
    case State::empty:
      return turn.answer(to, SyncGroupAnswer{.error = ErrorCode::unknown_member_id});
    case State::preparing_rebalance:
      return turn.answer(to, SyncGroupAnswer{.error = ErrorCode::rebalance_in_progress});
    case State::completing_rebalance:
      if (member.syncing != ReplyTo::nobody) {
        answer_sync(member, {.error = ErrorCode::rebalance_in_progress}, turn);
      }
      member.syncing = to;
      break;
    case State::stable:
      turn.answer(to, synced(member.assignment));
      keep_alive(member, turn);
      break;
  }
  unsynced_.erase(request.member_id);
  if (unsynced_.empty()) sync_deadline_.reset();
  if (state_ == State::completing_rebalance && member.id == leader_) {
    store_assignments(request, turn);
  }
}

/// The generation becomes stable when this is in the log, and its members hear of it when it stays.
void ClassicGroup::store_assignments(SyncGroupRequest& request, Turn& turn) {
  std::map<std::string, Buffer, std::less<>> assigned;
  for (auto& [id, assignment] : request.assignments) {
    if (roster_.find(id)) assigned.insert_or_assign(std::move(id), std::move(assignment));
  }
  const auto emitted = emit_generation(turn, assigned);
  for (auto& [id, member] : roster_.unguarded()) {
    if (member.syncing == ReplyTo::nobody) continue;
    if (emitted) {
      answer_sync(member, synced(assigned[id]), turn);
    } else {
      answer_sync(member, {.error = ErrorCode::unknown_server_error}, turn);
    }
  }
}

// ---- heartbeat, leave ----

void ClassicGroup::heartbeat(const GroupHeartbeat& request, ReplyTo to, Turn& turn) {
  auto* member = roster_.find(request.member_id);
  if (const auto error = check_member(member, request.member_id, request.instance_id);
      error != ErrorCode::none) {
    return turn.answer(to, error);
  }
  if (request.generation != generation_) return turn.answer(to, ErrorCode::illegal_generation);
  if (state_ == State::empty) return turn.answer(to, ErrorCode::unknown_member_id);
  keep_alive(*member, turn);
  turn.answer(to, state_ == State::preparing_rebalance ? ErrorCode::rebalance_in_progress
                                                       : ErrorCode::none);
}

void ClassicGroup::leave(const LeaveGroupRequest& request, ReplyTo to, Turn& turn) {
  LeaveGroupAnswer answer;
  bool left = false;
  for (const auto& leaving : request.members) {
    const auto error = leave_one(leaving, left, turn);
    answer.members.push_back({leaving.member_id, leaving.instance_id, error});
  }
  turn.answer(to, std::move(answer));
  // One that was only expected leaves the generation as it is.
  left ? rebalance_or_complete(turn) : complete_if_all_joined(turn);
}

ErrorCode ClassicGroup::leave_one(const LeavingMember& leaving, bool& left, Turn& turn) {
  auto id = leaving.member_id;
  if (id.empty()) {
    // An administrator removes a static member, whose member id it does not know.
    const auto* holder = leaving.instance_id ? roster_.holder_of(*leaving.instance_id) : nullptr;
    if (!holder) return ErrorCode::unknown_member_id;
    id = *holder;
  } else if (pending_.erase(id) > 0) {
    return ErrorCode::none;
  } else if (const auto error = check_member(id, leaving.instance_id); error != ErrorCode::none) {
    return error;
  }
  remove_member(id, ErrorCode::unknown_member_id, turn);
  left = true;
  return ErrorCode::none;
}

// ---- offsets ----

ErrorCode ClassicGroup::check_commit(const OffsetCommitRequest& request, Turn& turn) {
  const bool of_member =
      request.generation >= 0 || !request.member_id.empty() || request.instance_id.has_value();
  if (request.generation < 0 && state_ == State::empty) return ErrorCode::none;
  if (!of_member) return ErrorCode::unknown_member_id;
  if (const auto error = check_member(request.member_id, request.instance_id);
      error != ErrorCode::none) {
    return error;
  }
  if (request.generation != generation_) return ErrorCode::illegal_generation;
  // It knows the generation, and not yet what is its own in it.
  if (state_ == State::completing_rebalance) return ErrorCode::rebalance_in_progress;
  keep_alive(*roster_.find(request.member_id), turn);
  return ErrorCode::none;
}

ErrorCode ClassicGroup::check_fetch(const GroupOffsetsQuery& /*query*/) const {
  return ErrorCode::none;
}

// ---- describe ----

void ClassicGroup::describe(GroupDescribed& out) const {
  out.state = std::string(state());
  out.protocol_type = protocol_type_;
  const bool settled = state_ == State::stable;
  if (settled) out.protocol = protocol_;
  for (const auto& [id, member] : roster_.members()) {
    GroupDescribed::Member described{
        .member_id = id,
        .instance_id = member.instance_id,
        .client_id = member.client.id,
        .client_host = member.client.host,
    };
    if (settled) {
      if (const auto* metadata = member.metadata(protocol_)) described.metadata = *metadata;
      described.assignment = member.assignment;
    }
    out.members.push_back(std::move(described));
  }
}

}  // namespace millrace::consumer_groups
