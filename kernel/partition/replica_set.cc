#include "kernel/partition/replica_set.h"

#include <algorithm>
#include <utility>

namespace millrace::kernel {

namespace {

bool holds(const std::vector<std::int32_t>& set, std::int32_t replica) noexcept {
  return std::ranges::find(set, replica) != set.end();
}

}  // namespace

ReplicaSet::ReplicaSet(std::int32_t self, const Leadership& leadership, Offset epoch_start,
                       MonoTime now)
    : self_(self), epoch_start_(epoch_start) {
  update(leadership, now);
}

void ReplicaSet::update(const Leadership& leadership, MonoTime now) {
  const auto before = std::exchange(in_sync_, leadership.in_sync);
  const auto asked = std::exchange(proposed_, std::nullopt);
  partition_epoch_ = leadership.partition_epoch;
  for (auto& follower : followers_) {
    // Taken out by the controller, so it is dead: what it had counts again once it fetches.
    const bool left = holds(before, follower.id) && !in_sync(follower.id);
    if (left && (!asked || holds(asked->in_sync, follower.id))) follower.log_end = {};
  }
  if (leadership.replicas.empty()) return;  // they are as they were
  std::erase_if(followers_, [&leadership](const Follower& follower) {
    return !holds(leadership.replicas, follower.id);
  });
  for (const auto replica : leadership.replicas) {
    if (replica == self_ || has(replica)) continue;
    // Who is in sync has its time from now on, like everybody.
    followers_.push_back({.id = replica, .caught_up = now, .fetched = now});
  }
}

const ReplicaSet::Follower* ReplicaSet::find(std::int32_t replica) const noexcept {
  const auto found = std::ranges::find(followers_, replica, &Follower::id);
  return found == followers_.end() ? nullptr : &*found;
}

ReplicaSet::Follower* ReplicaSet::find(std::int32_t replica) noexcept {
  const auto found = std::ranges::find(followers_, replica, &Follower::id);
  return found == followers_.end() ? nullptr : &*found;
}

bool ReplicaSet::has(std::int32_t replica) const noexcept { return find(replica) != nullptr; }

bool ReplicaSet::in_sync(std::int32_t replica) const noexcept { return holds(in_sync_, replica); }

bool ReplicaSet::counts(std::int32_t replica) const noexcept {
  return in_sync(replica) ||
         (proposed_ && std::ranges::find(proposed_->in_sync, replica) != proposed_->in_sync.end());
}

void ReplicaSet::fetched(std::int32_t replica, std::int64_t broker_epoch, Offset from,
                         Offset log_end, MonoTime now) {
  auto* follower = find(replica);
  if (!follower) return;
  // Sent in an earlier life and late on its way: what it had then it may have lost.
  if (broker_epoch >= 0 && broker_epoch < follower->broker_epoch) return;
  if (from >= log_end) {
    follower->caught_up = now;
  } else if (follower->end_at_fetched != Offset{} && from >= follower->end_at_fetched) {
    follower->caught_up = std::max(follower->caught_up, follower->fetched);
  }
  follower->broker_epoch = broker_epoch;
  follower->log_end = from;
  follower->end_at_fetched = log_end;
  follower->fetched = now;
}

bool ReplicaSet::begins(std::int32_t replica, Offset log_start) noexcept {
  auto* follower = find(replica);
  return follower && std::exchange(follower->log_start, log_start) != log_start;
}

Offset ReplicaSet::low_watermark(Offset own_start) const noexcept {
  auto low = own_start;
  for (const auto& follower : followers_) {
    if (in_sync(follower.id)) low = std::min(low, follower.log_start);
  }
  return low;
}

Offset ReplicaSet::replicated(Offset written_end) const noexcept {
  auto end = written_end;
  for (const auto& follower : followers_) {
    if (counts(follower.id)) end = std::min(end, follower.log_end);
  }
  return end;
}

bool ReplicaSet::lags(const Follower& follower, LagLimits limits, Offset log_end, MonoTime now) {
  if (follower.log_end >= log_end) return false;
  if (now - follower.caught_up > limits.time) return true;
  return limits.messages > 0 && follower.log_end != Offset{} &&
         log_end - follower.log_end > limits.messages;
}

bool ReplicaSet::may_join(std::int32_t replica, Offset high_watermark) const noexcept {
  const auto* follower = find(replica);
  return follower && !proposed_ && !in_sync(replica) && follower->log_end >= high_watermark &&
         follower->log_end >= epoch_start_;
}

std::optional<WantedInSync> ReplicaSet::review(LagLimits limits, Offset log_end,
                                               Offset high_watermark, MonoTime now) {
  WantedInSync wanted{.partition_epoch = partition_epoch_};
  const auto keep = [&wanted](std::int32_t replica, std::int64_t broker_epoch) {
    wanted.in_sync.push_back(replica);
    wanted.broker_epochs.push_back(broker_epoch);
  };
  keep(self_, -1);
  for (auto& follower : followers_) {
    // Of a log that rests nothing is fetched: who has all of it is up to date all the same.
    if (follower.log_end >= log_end) follower.caught_up = now;
    if (lags(follower, limits, log_end, now)) continue;
    if (in_sync(follower.id) || may_join(follower.id, high_watermark)) {
      keep(follower.id, follower.broker_epoch);
    }
  }
  if (proposed_) return std::nullopt;
  auto before = in_sync_;
  auto after = wanted.in_sync;
  std::ranges::sort(before);
  std::ranges::sort(after);
  if (before == after) return std::nullopt;
  return wanted;
}

std::optional<WantedInSync> ReplicaSet::without_self() const {
  WantedInSync wanted{.partition_epoch = partition_epoch_};
  for (const auto& follower : followers_) {
    if (!in_sync(follower.id)) continue;
    wanted.in_sync.push_back(follower.id);
    wanted.broker_epochs.push_back(follower.broker_epoch);
  }
  if (wanted.in_sync.empty()) return std::nullopt;
  return wanted;
}

void ReplicaSet::propose(const WantedInSync& wanted) { proposed_ = wanted; }

}  // namespace millrace::kernel
