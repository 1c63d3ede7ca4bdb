// The partitions that this broker has a replica of: opened, made leader or follower, stopped, as
// the cluster's state says. Told where other brokers are, it keeps followers fetching.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <millrace/peers.h>

#include "kernel/broker/broker_parts.h"
#include "kernel/broker/partitions.h"
#include "kernel/cluster/cluster_state.h"
#include "kernel/cluster/lease_clock.h"
#include "kernel/partition/topic_config.h"

namespace millrace::kernel {

/// What one partition of ours shall be.
struct ReplicaOrder {
  TopicPartition id;
  Uuid topic_id;
  TopicConfig config;
  PartitionState state;
  /// It has been opened here before: that its log is missing is worth a warning.
  bool known = false;
};

struct ReplicaStop {
  TopicPartition id;
  Uuid topic_id;
  bool erase = false;  ///< its log too; one that another topic of the name has left stays
};

/// Whoever may change in-sync sets: the controller, wherever it is.  [control thread]
class InSyncAuthority {
 public:
  virtual ~InSyncAuthority() = default;
  /// Answers what the controller says, in any order. An error of the whole, or of one of them, is
  /// tried again later, from the state that then holds.
  virtual Task<std::vector<InSyncChanged>> change_in_sync(std::vector<InSyncChange> changes) = 0;
};

/// What followers need to reach their leaders, and leaders to change their in-sync sets.
struct ReplicationLinks {
  PeerLink* peers = nullptr;             ///< none: followers do not fetch
  InSyncAuthority* authority = nullptr;  ///< none: in-sync sets stay as they are
};

/// [control thread]
class Replicas {
 public:
  /// All of it outlives this.
  Replicas(BrokerParts& parts, const BrokerConfig& config, PartitionMap& partitions,
           const LeaseClock& lease);

  /// Before brokers are set. Both are called until close() has completed.
  void connect(ReplicationLinks links) { links_ = links; }

  /// Opens what is not open here, makes each leader or follower, gives each its settings. An order
  /// that says what is already so does nothing; one of an older leader epoch is passed over.
  /// Answers those that could not be opened.
  Task<std::vector<ReplicaFailure>> apply(std::vector<ReplicaOrder> orders);
  /// Takes them out, with an end to all that waits for them. Errors are those of erasing; whatever
  /// they are, all have been stopped.
  Task<> stop(std::vector<ReplicaStop> stops);
  /// Where other brokers are, by id. Followers connect by it.
  void set_brokers(std::map<std::int32_t, Address> addresses);
  /// Ends all fetching. Before partitions are closed.
  Task<> close();

  /// What opening partitions had to do, since the start.
  const Recovery& recovered() const noexcept { return recovered_; }

 private:
  BrokerParts& parts_;
  const BrokerConfig& config_;
  PartitionMap& partitions_;
  const LeaseClock& lease_;
  ReplicationLinks links_;
  std::map<std::int32_t, Address> brokers_;
  Recovery recovered_;
};

}  // namespace millrace::kernel
