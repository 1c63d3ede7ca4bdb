// From one generation to the next: everybody is asked to join again, those who do not come are
// left out, and one of those who came assigns.
#include <algorithm>
#include <utility>
#include <vector>

#include "classic_group.h"

namespace millrace::consumer_groups {

void ClassicGroup::rebalance_or_complete(Turn& turn) {
  state_ == State::preparing_rebalance ? complete_if_all_joined(turn) : prepare_rebalance(turn);
}

void ClassicGroup::prepare_rebalance(Turn& turn) {
  if (state_ == State::completing_rebalance) {
    // What they wait for will not come: they join again.
    for (auto& [id, member] : roster_.unguarded()) {
      if (member.syncing == ReplyTo::nobody) continue;
      answer_sync(member, {.error = ErrorCode::rebalance_in_progress}, turn);
    }
  }
  sync_deadline_.reset();
  unsynced_.clear();
  initial_ = state_ == State::empty;
  enter(State::preparing_rebalance, turn.wall());
  if (initial_) {
    // Its members are started together, most likely: one rebalance for all of them.
    delay_ = turn.settings.initial_rebalance_delay;
    delay_left_ = std::max(roster_.longest_rebalance_timeout() - delay_, Duration::zero());
    joined_meanwhile_ = false;
    join_deadline_ = turn.now() + delay_;
    return wake_by(*join_deadline_, turn);
  }
  join_deadline_ = turn.now() + roster_.longest_rebalance_timeout();
  wake_by(*join_deadline_, turn);
  complete_if_all_joined(turn);
}

void ClassicGroup::initial_delay_over(Turn& turn) {
  if (!joined_meanwhile_ || delay_left_ <= Duration::zero()) return complete_join(turn);
  joined_meanwhile_ = false;
  delay_ = std::min(turn.settings.initial_rebalance_delay, delay_left_);
  delay_left_ = std::max(delay_left_ - delay_, Duration::zero());
  join_deadline_ = turn.now() + delay_;
  wake_by(*join_deadline_, turn);
}

void ClassicGroup::complete_if_all_joined(Turn& turn) {
  if (state_ != State::preparing_rebalance || initial_) return;
  if (roster_.joining() == roster_.size() && pending_.empty()) complete_join(turn);
}

void ClassicGroup::complete_join(Turn& turn) {
  // Static members keep their place until their session is over.
  std::vector<std::string> absent;
  for (const auto& [id, member] : roster_.members()) {
    if (member.joining == ReplyTo::nobody && !member.instance_id) absent.push_back(id);
  }
  for (const auto& id : absent) (void)roster_.remove(id);

  join_deadline_.reset();
  if (roster_.empty()) return become_empty(turn);
  if (!elect_leader_that_joined()) {
    // Only static members are left, and none has come: until one does, or all have expired.
    join_deadline_ = turn.now() + roster_.longest_rebalance_timeout();
    return wake_by(*join_deadline_, turn);
  }
  begin_generation(turn);
}

bool ClassicGroup::elect_leader_that_joined() {
  const auto* leader = roster_.find(leader_);
  if (leader && leader->joining != ReplyTo::nobody) return true;
  for (const auto& [id, member] : roster_.members()) {
    if (member.joining == ReplyTo::nobody) continue;
    leader_ = id;
    return true;
  }
  return false;
}

void ClassicGroup::become_empty(Turn& turn) {
  ++generation_;
  protocol_.clear();
  leader_.clear();
  subscribed_.reset();
  initial_ = false;
  enter(State::empty, turn.wall());
  // A group that has never been stable has nothing in the log that would have to be changed. If the
  // append fails the former members come back at a load, and expire.
  if (is_recorded()) (void)emit_empty(turn);
}

void ClassicGroup::begin_generation(Turn& turn) {
  ++generation_;
  protocol_ = roster_.elect_protocol();
  initial_ = false;
  enter(State::completing_rebalance, turn.wall());
  compute_subscribed();
  unsynced_.clear();
  for (auto& [id, member] : roster_.unguarded()) {
    unsynced_.insert(id);
    if (member.joining == ReplyTo::nobody) continue;  // static, and away
    member.is_new = false;
    answer_join(member, joined(member), turn);
  }
  sync_deadline_ = turn.now() + roster_.longest_rebalance_timeout();
  wake_by(*sync_deadline_, turn);
}

/// Those who have joined and not asked for their assignment hold the others up.
void ClassicGroup::sync_time_over(Turn& turn) {
  if (state_ != State::completing_rebalance && state_ != State::stable) return;
  const auto late = std::exchange(unsynced_, {});
  if (late.empty()) return;
  for (const auto& id : late) {
    if (!roster_.find(id)) continue;
    const auto member = roster_.remove(id);
    turn.answer(member.syncing, SyncGroupAnswer{.error = ErrorCode::unknown_member_id});
  }
  prepare_rebalance(turn);
}

void ClassicGroup::remove_member(const std::string& id, ErrorCode told, Turn& turn) {
  const auto member = roster_.remove(id);
  unsynced_.erase(id);
  turn.answer(member.joining, JoinGroupAnswer{.error = told, .member_id = id});
  turn.answer(member.syncing, SyncGroupAnswer{.error = told});
  if (leader_ == id) leader_ = roster_.empty() ? "" : roster_.members().begin()->first;
}

void ClassicGroup::expire_members(Turn& turn) {
  const auto now = turn.now();
  std::vector<std::string> expired;
  for (auto& [id, member] : roster_.unguarded()) {
    // Known from a record alone: its session begins now.
    if (member.expires == MonoTime::max()) keep_alive(member, turn);
    if (member.may_expire() && member.expires <= now) expired.push_back(id);
  }
  const auto given_up = std::erase_if(pending_, [&](const auto& of) { return of.second <= now; });
  for (const auto& id : expired) remove_member(id, ErrorCode::unknown_member_id, turn);
  if (!expired.empty()) return rebalance_or_complete(turn);
  if (given_up > 0) complete_if_all_joined(turn);
}

}  // namespace millrace::consumer_groups
