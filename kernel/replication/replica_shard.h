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
#include <vector>

#include <millrace/peers.h>

#include "kernel/broker/broker_parts.h"
#include "kernel/broker/partitions.h"
#include "kernel/cluster/lease_clock.h"
#include "kernel/replication/follower_fetcher.h"
#include "kernel/replication/replica_order.h"

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
  ReplicaShard(BrokerParts& parts, const BrokerConfig& config, ShardState& state,
               const LeaseClock& lease);

  /// From here on followers fetch and leaders ask, until close().
  void connect(ReplicationLinks links);
  Task<ReplicasApplied> apply(std::vector<ReplicaOrder> orders,
                              std::shared_ptr<const HighWatermarks> high_watermarks);
  Task<> stop(TopicPartition id);
  void set_brokers(std::map<std::int32_t, Address> brokers, std::int64_t broker_epoch);
  Task<> close();

 private:
  // InSyncWatch
  void in_sync_due(const TopicPartition& id) override;

  Task<Recovery> apply_one(const ReplicaOrder& order, const HighWatermarks& high_watermarks);
  Task<std::shared_ptr<Partition>> open(const ReplicaOrder& order, Offset high_watermark);
  Task<> give_role(std::shared_ptr<Partition> partition, const ReplicaOrder& order);
  void follow(const std::shared_ptr<Partition>& partition, std::int32_t leader);
  void unfollow(const TopicPartition& id);
  FollowerFetcher& fetcher(std::int32_t leader, const TopicPartition& id);

  Task<> watch_in_sync();
  Task<> ask_in_sync();
  std::vector<InSyncChange> wanted_changes();
  Task<> take_answers(std::vector<InSyncChanged> answers);

  BrokerParts& parts_;
  const BrokerConfig& config_;
  ShardState& state_;
  const LeaseClock& lease_;
  Log log_;
  ReplicationLinks links_;
  LagLimits limits_;
  std::map<std::int32_t, Address> brokers_;
  std::int64_t broker_epoch_ = -1;
  std::optional<FetcherHost> fetcher_host_;  // once connected
  std::map<std::pair<std::int32_t, std::size_t>, std::unique_ptr<FollowerFetcher>> fetchers_;
  std::map<TopicPartition, std::int32_t> leaders_;  // whom those here follow

  std::set<TopicPartition> due_;  // whose in-sync set may change
  bool asking_ = false;
  bool told_ = false;  // that the controller cannot be asked
  CancelScope scope_;
  Gate running_;
};

}  // namespace millrace::kernel
