#include "membership.h"

#include <algorithm>
#include <set>
#include <utility>

#include "../snapshot.h"
#include "classic_members.h"
#include "describe.h"
#include "fencing.h"
#include "migration.h"
#include "subscriptions.h"

namespace millrace::consumer_groups {
namespace {

/// What is fenced is gone when its records are in the log; where they did not get there, again.
constexpr Duration fence_again_after = std::chrono::seconds(1);

ConsumerHeartbeatAnswer refused(Refusal refusal) {
  return {.error = refusal.error, .message = std::move(refusal.message)};
}

}  // namespace

std::string_view ConsumerMembership::state() const noexcept { return state_of(group_); }

// ---- members that speak the consumer protocol ----

void ConsumerMembership::heartbeat(MemberHeartbeat& ask, ReplyTo to, Turn& turn) {
  Draft draft(group_);
  heartbeat_as_successor(draft, ask, to, turn);
}

void ConsumerMembership::heartbeat_as_successor(Draft& draft, MemberHeartbeat& ask, ReplyTo to,
                                                Turn& turn) {
  auto answer = consumer_groups::heartbeat(draft, liveness_, seen_, ask, turn);
  if (!answer) return turn.answer(to, refused(std::move(answer).error()));
  if (const auto emitted = draft.emit(turn.context); !emitted) {
    return turn.answer(to, refused({ErrorCode::invalid_request, emitted.error().detail}));
  }
  const auto soonest = liveness_.take_soonest_set();
  if (soonest != MonoTime::max()) wake_by(soonest, turn);
  turn.answer(to, std::move(*answer));
}

// ---- members that speak the classic protocol ----

void ConsumerMembership::join(Join& ask, ReplyTo to, Turn& turn) {
  Draft draft(group_);
  auto answer = join_classic(draft, liveness_, ask, turn);
  if (!answer || !draft.emit(turn.context)) {
    return turn.answer(
        to, JoinGroupAnswer{.error = answer ? ErrorCode::invalid_request : answer.error().error,
                            .member_id = ask.request.member_id});
  }
  wake_for(answer->member_id, turn);
  turn.answer(to, std::move(*answer));
}

void ConsumerMembership::sync(SyncGroupRequest& request, ReplyTo to, Turn& turn) {
  auto answer = sync_classic(group_, liveness_, request, turn);
  wake_for(request.member_id, turn);
  if (!answer) return turn.answer(to, SyncGroupAnswer{.error = answer.error().error});
  turn.answer(to, std::move(*answer));
}

void ConsumerMembership::heartbeat(const GroupHeartbeat& request, ReplyTo to, Turn& turn) {
  Draft draft(group_);
  ErrorCode answer = heartbeat_classic(draft, liveness_, request, turn);
  if (!draft.emit(turn.context)) answer = ErrorCode::unknown_server_error;
  wake_for(request.member_id, turn);
  turn.answer(to, answer);
}

void ConsumerMembership::leave(const LeaveGroupRequest& request, ReplyTo to, Turn& turn) {
  Draft draft(group_);
  auto answer = leave_classic(draft, request, turn);
  if (!draft.emit(turn.context)) answer.error = ErrorCode::unknown_server_error;
  turn.answer(to, std::move(answer));
}

// ---- offsets ----

ErrorCode ConsumerMembership::check_commit(const OffsetCommitRequest& request, Turn& /*turn*/) {
  // Of nobody in the group: tools, while it is empty.
  if (request.generation < 0 && group_.members().empty()) return ErrorCode::none;
  const ConsumerMember* member = group_.find(request.member_id);
  if (member == nullptr) return ErrorCode::unknown_member_id;
  if (!member->is_classic() && !request.fenced_by_member_epoch) {
    return ErrorCode::unsupported_version;
  }
  if (request.generation <= member->current.epoch) return ErrorCode::none;
  return member->is_classic() ? ErrorCode::illegal_generation : ErrorCode::stale_member_epoch;
}

/// KIP-1251: a member that has gone on to another epoch may still commit, with the epoch in which
/// it read, what has been its own since then.
ErrorCode ConsumerMembership::check_commit_of(const OffsetCommitRequest& request, const Uuid& topic,
                                              std::int32_t partition) const {
  const ConsumerMember* member = group_.find(request.member_id);
  if (member == nullptr || request.generation == member->current.epoch) return ErrorCode::none;
  for (const auto* owned : {&member->current.assigned, &member->current.revoking}) {
    const auto of_topic = owned->find(topic);
    if (of_topic == owned->end()) continue;
    const auto found = of_topic->second.find(partition);
    if (found != of_topic->second.end() && request.generation >= found->second) {
      return ErrorCode::none;
    }
  }
  return member->is_classic() ? ErrorCode::illegal_generation : ErrorCode::stale_member_epoch;
}

ErrorCode ConsumerMembership::check_fetch(const GroupOffsetsQuery& query) const {
  if (!query.member_id && query.member_epoch < 0) return ErrorCode::none;
  const ConsumerMember* member = group_.find(query.member_id.value_or(""));
  if (member == nullptr) return ErrorCode::unknown_member_id;
  if (query.member_epoch == member->current.epoch) return ErrorCode::none;
  return member->is_classic() ? ErrorCode::illegal_generation : ErrorCode::stale_member_epoch;
}

bool ConsumerMembership::subscribed_to(std::string_view topic) const {
  return subscribed_topics(group_).contains(topic);
}

// ---- life ----

Result<> ConsumerMembership::emit_removal(Turn& turn) {
  Draft draft(group_);
  end_group(draft);
  return draft.emit(turn.context);
}

Result<> ConsumerMembership::evolve(RecordKind kind, Bytes key, std::optional<Bytes> value,
                                    const EventInfo& /*info*/) {
  MR_CHECK(group_.apply(kind, key, value));
  if (!value) {
    liveness_.forget_unless([&](std::string_view member) { return group_.find(member); });
  }
  return {};
}

void ConsumerMembership::snapshot(SnapshotWriter& out) const {
  const auto records = group_.records();
  if (!records) return;  // what came from records has room in them
  for (const auto& [key, value] : *records) put_record(out, key, *value);
}

void ConsumerMembership::loaded(Turn& turn) {
  for (const auto& [id, member] : group_.members()) give_fresh_deadlines(*member, turn);
}

void ConsumerMembership::timer(Turn& turn) {
  wakes_.reset();
  std::set<std::string, std::less<>> overdue;
  for (const auto& [id, member] : group_.members()) {
    // Came with records of another's: from a group that has changed its protocol.
    if (!liveness_.has(id, Duty::heartbeat)) give_fresh_deadlines(*member, turn);
    if (liveness_.overdue(id, turn.now())) overdue.insert(id);
  }
  if (!overdue.empty()) {
    Draft draft(group_);
    fence_or_downgrade(draft, overdue, turn);
    // A name that has been in a record fits one.
    (void)draft.emit(turn.context);
    return wake_by(turn.now() + fence_again_after, turn);
  }
  liveness_.forget_unless([&](std::string_view member) { return group_.find(member); });
  if (const auto next = liveness_.next(); next != MonoTime::max()) wake_by(next, turn);
}

Duration ConsumerMembership::session_of(const ConsumerMember& member, const Turn& turn) const {
  if (!member.is_classic()) {
    return times_of(group_.time_names(), turn.settings.consumer, turn.context).session_timeout;
  }
  return std::chrono::milliseconds(member.metadata.classic->session_timeout_ms);
}

void ConsumerMembership::give_fresh_deadlines(const ConsumerMember& member, Turn& turn) {
  liveness_.set(member.id, Duty::heartbeat, turn.now() + session_of(member, turn));
  if (!member.is_classic() && member.current.state == MemberState::unrevoked_partitions) {
    liveness_.set(member.id, Duty::revoke,
                  turn.now() + std::chrono::milliseconds(member.metadata.rebalance_timeout_ms));
  }
  wake_for(member.id, turn);
}

void ConsumerMembership::wake_for(std::string_view member, Turn& turn) {
  const auto next = liveness_.next_of(member);
  if (next != MonoTime::max()) wake_by(next, turn);
}

void ConsumerMembership::wake_by(MonoTime deadline, Turn& turn) {
  if (wakes_ && *wakes_ <= deadline) return;
  wakes_ = deadline;
  turn.context.set_timer(timer_of(group_.id()), std::max(deadline - turn.now(), Duration::zero()));
}

}  // namespace millrace::consumer_groups
