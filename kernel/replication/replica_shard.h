// The replicas of one shard: which of them lead, whom the others follow, and what leaders ask of
// the controller.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include <millrace/peers.h>

#include "kernel/broker/broker_parts.h"
#include "kernel/broker/partitions.h"
#include "kernel/cluster/lease_clock.h"
#include "kernel/replication/follower_fetcher.h"
#include "kernel/replication/replica_order.h"
#include "kernel/replication/throttle.h"

namespace millrace::kernel {

using HighWatermarks = std::map<TopicPartition, Offset>;

/// What one shard has done of its orders.
struct ReplicasApplied {
  std::vector<ReplicaFailure> failures;
  Recovery recovery;
};

/// [its shard]
class ReplicaShard final : private InSyncWatch {
 public:
  /// All of it outlives this.
  ReplicaShard(BrokerParts& parts, const BrokerConfig& config, ShardState& state,
               const LeaseClock& lease, ReplicationThrottle& throttle);

  /// From here on followers fetch and leaders ask, until close().
  void connect(ReplicationLinks links);
  Task<ReplicasApplied> apply(std::vector<ReplicaOrder> orders,
                              std::shared_ptr<const HighWatermarks> high_watermarks);
  Task<> stop(TopicPartition id);
  void set_brokers(std::map<std::int32_t, Address> brokers, std::int64_t broker_epoch);
  /// Nothing is fetched from here on: a follower that catches up would be taken in sync again.
  Task<> stop_following();
  Task<> close();

 private:
  // What a replica fetches in company of: who is held back does not hold up those who are not.
  enum class Pace : std::uint8_t { own, throttled, moving };
  struct Followed {
    std::int32_t leader = -1;
    Pace pace = Pace::own;
    friend bool operator==(const Followed&, const Followed&) = default;
  };

  // InSyncWatch
  void in_sync_due(const TopicPartition& id) override;

  Task<Recovery> apply_one(const ReplicaOrder& order, const HighWatermarks& high_watermarks);
  Task<std::shared_ptr<Partition>> open(const ReplicaOrder& order, Offset high_watermark);
  Task<> give_role(std::shared_ptr<Partition> partition, const ReplicaOrder& order);
  Pace pace_of(const ReplicaOrder& order) const noexcept;
  void hold_back(Partition& partition, const ReplicaOrder& order);
  RateLimit* limit_of(Pace pace) noexcept;
  void follow(const std::shared_ptr<Partition>& partition, Followed whom);
  void unfollow(const TopicPartition& id);
  bool fetches() const noexcept { return fetcher_host_ && !leaving_ && !running_.closed(); }
  FollowerFetcher& fetcher(const Followed& whom, const TopicPartition& id);

  Task<> watch_in_sync();
  Task<> ask_in_sync();
  std::vector<InSyncChange> wanted_changes();
  std::optional<WantedInSync> without_this(const Partition& follower) const;
  Task<> take_answers(std::vector<InSyncChanged> answers);
  Task<> close_fetchers();

  BrokerParts& parts_;
  const BrokerConfig& config_;
  ShardState& state_;
  const LeaseClock& lease_;
  ReplicationThrottle& throttle_;
  Log log_;
  Counter& lost_;
  ReplicationLinks links_;
  LagLimits limits_;
  std::map<std::int32_t, Address> brokers_;
  std::int64_t broker_epoch_ = -1;
  std::optional<FetcherHost> fetcher_host_;  // once connected
  using FetcherKey = std::tuple<std::int32_t, Pace, std::size_t>;
  std::map<FetcherKey, std::unique_ptr<FollowerFetcher>> fetchers_;
  std::map<TopicPartition, Followed> followed_;  // whom those here follow

  std::set<TopicPartition> due_;  // whose in-sync set may change
  bool leaving_ = false;          // follows nobody any more
  bool asking_ = false;
  bool told_ = false;  // that the controller cannot be asked
  CancelScope scope_;
  Gate running_;
};

}  // namespace millrace::kernel
