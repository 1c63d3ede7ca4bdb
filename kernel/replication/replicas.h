// The partitions that this broker has a replica of: opened, made leader or follower, stopped, as
// the cluster's state says. Told where other brokers are, it keeps followers fetching.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include <millrace/peers.h>

#include "kernel/broker/broker_parts.h"
#include "kernel/broker/partitions.h"
#include "kernel/cluster/lease_clock.h"
#include "kernel/replication/moves_pace.h"
#include "kernel/replication/replica_order.h"
#include "kernel/replication/replica_shard.h"
#include "kernel/replication/throttle.h"

namespace millrace::kernel {

/// [control thread]
class Replicas {
 public:
  /// All of it outlives this.
  Replicas(BrokerParts& parts, const BrokerConfig& config, PartitionMap& partitions,
           const LeaseClock& lease);

  /// From here on followers fetch, and leaders ask for other in-sync sets. Both are called until
  /// close() has completed.
  void connect(ReplicationLinks links);

  /// Opens what is not open here, makes each leader or follower, gives each its settings. An order
  /// that says what is already so does nothing; one of an older leader epoch is passed over.
  /// Answers those that could not be opened.
  Task<std::vector<ReplicaFailure>> apply(std::vector<ReplicaOrder> orders);
  /// Takes them out, with an end to all that waits for them. Errors are those of erasing; whatever
  /// they are, all have been stopped.
  Task<> stop(std::vector<ReplicaStop> stops);
  /// Where other brokers are, by id: followers connect by it, and tell `lease_epoch`, ours.
  void set_brokers(const std::map<std::int32_t, Address>& addresses, std::int64_t lease_epoch = -1);
  /// Of what is replicated from now on.
  void set_rates(const ReplicationRates& rates);
  /// Of what moves by itself.
  MovesPace& moves() noexcept { return moves_; }
  /// Followers here fetch no more, and so are not taken in sync: this broker is about to end.
  Task<> stop_following();
  /// Ends all fetching and asking. Before partitions are closed.
  Task<> close();

  /// What opening partitions had to do, since the start.
  const Recovery& recovered() const noexcept { return recovered_; }

 private:
  Shard& control() noexcept { return parts_.environment.control(); }
  Task<> load_high_watermarks();
  ReplicaShard& shard_of(const TopicPartition& id) noexcept;
  void note_moves(const std::vector<ReplicaOrder>& orders);

  BrokerParts& parts_;
  std::int32_t broker_;
  PartitionMap& partitions_;
  ReplicationThrottle throttle_;
  MovesPace moves_;
  std::vector<std::unique_ptr<ReplicaShard>> shards_;      // each touched on its shard alone
  std::shared_ptr<const HighWatermarks> high_watermarks_;  // as checkpointed before the start
  Recovery recovered_;
};

}  // namespace millrace::kernel
