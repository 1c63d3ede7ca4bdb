// Lets replicas that move by themselves yield to clients: while some move to or from this broker,
// it measures how long a request waits for each shard, and sets the rate of what moves by it.
#pragma once

#include <cstdint>
#include <functional>
#include <set>

#include <millrace/environment.h>
#include <millrace/observe.h>
#include <millrace/shard.h>

#include "kernel/replication/throttle.h"

namespace millrace::kernel {

/// How long a request waits now until that shard runs it.
using WaitProbe = std::function<Task<Duration>(Shard&)>;

/// [control thread]
class MovesPace {
 public:
  /// All of it outlives this.
  MovesPace(Environment& environment, Metrics& metrics, ReplicationThrottle& throttle);

  /// In place of what is measured.
  void measure_by(WaitProbe probe) { probe_ = std::move(probe); }
  void set_max(std::int64_t rate_max);
  std::int64_t rate() const noexcept { return rate_.rate(); }

  /// A replica of `id` moves to or from here, or does not any more.
  void note(const TopicPartition& id, bool moving);
  Task<> close();

 private:
  Task<> run();
  Task<Duration> longest_wait();
  void apply();

  Environment& environment_;
  ReplicationThrottle& throttle_;
  Gauge& shown_;
  YieldingRate rate_{ReplicationRates{}.moves_max};
  WaitProbe probe_;
  std::set<TopicPartition> moving_;
  bool measuring_ = false;
  CancelScope background_;
  Gate running_;
};

}  // namespace millrace::kernel
