// How fast replicas catch up. Two things hold them back, each on the side of the leader and of the
// follower, and neither whoever is in sync:
//
//   * what an operator sets, as `kafka-reassign-partitions --throttle` does: a rate of the broker,
//     and of each topic the replicas that it is for;
//   * of replicas that are to be (KIP-455, "adding") a rate that yields to clients: as much as
//     `cluster.balance.rate.max` while requests find the broker's shards free, less as soon as they
//     wait, and never nothing.
//
// Where an operator has set the first, the second does not count.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include <millrace/observe.h>
#include <millrace/types.h>

#include "kernel/partition/rate_limit.h"

namespace millrace::kernel {

/// Bytes per second of one broker.
struct ReplicationRates {
  std::int64_t leader = RateLimit::unlimited;    ///< leader.replication.throttled.rate
  std::int64_t follower = RateLimit::unlimited;  ///< follower.replication.throttled.rate
  std::int64_t moves_max = 100 << 20;            ///< cluster.balance.rate.max
};

/// What all shards of a broker are held back by.
struct ReplicationThrottle {
  explicit ReplicationThrottle(Metrics& metrics);

  /// Of what moves by itself, in both directions.
  std::uint64_t moved_bytes() const noexcept { return sent_.value() + fetched_.value(); }

  RateLimit leader;
  RateLimit follower;
  RateLimit moves_out;
  RateLimit moves_in;

 private:
  Counter& sent_;
  Counter& fetched_;
};

/// A topic's `leader.replication.throttled.replicas`, or the follower's: "*" or
/// "partition:broker,...". What is not that names nobody.
class ThrottledReplicas {
 public:
  explicit ThrottledReplicas(std::string_view value);
  /// `broker`, as leader or as follower of `partition`, is meant.
  bool has(std::int32_t partition, std::int32_t broker) const noexcept;

 private:
  bool all_ = false;
  std::vector<std::pair<std::int32_t, std::int32_t>> replicas_;  // sorted
};

/// The rate of what moves by itself. It begins low, grows while nobody waits and it is made use of,
/// and is halved whenever somebody has waited. Pure: told by its owner what is observed.
class YieldingRate {
 public:
  /// A request that waits so long for a shard is slowed down.
  static constexpr Duration patience = std::chrono::milliseconds(5);
  /// However long requests wait, replicas get this much, if they may.
  static constexpr std::int64_t rate_min = 1 << 20;
  static constexpr std::int64_t rate_first = 8 << 20;

  explicit YieldingRate(std::int64_t rate_max) noexcept;
  void set_max(std::int64_t rate_max) noexcept;
  std::int64_t rate() const noexcept { return rate_; }

  /// What was seen in `interval`: the longest that a request waited, and bytes that moved.
  void observe(Duration waited, std::uint64_t moved_bytes, Duration interval) noexcept;

 private:
  std::int64_t least() const noexcept;

  std::int64_t rate_max_;
  std::int64_t rate_;
};

}  // namespace millrace::kernel
