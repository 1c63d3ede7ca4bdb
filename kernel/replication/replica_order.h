// What the control thread asks of the replicas here, and whom they ask.
#pragma once

#include <vector>

#include <millrace/peers.h>

#include "kernel/cluster/cluster_state.h"
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
  /// It is elected here without having been in sync.
  bool unclean = false;
  /// An operator has listed it: what it sends, and what it fetches, while it is not in sync.
  bool leader_throttled = false;
  bool follower_throttled = false;
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

}  // namespace millrace::kernel
