// The cluster's state where it is changed: read when the broker joins, changed one turn at a time,
// and published to every shard.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <millrace/coordination.h>
#include <millrace/shard.h>
#include <millrace/transport.h>

#include "kernel/broker/broker_parts.h"
#include "kernel/broker/partitions.h"
#include "kernel/cluster/cluster_state.h"

namespace millrace::kernel {

/// [control thread]
class ClusterKeeper {
 public:
  /// Whoever holds it is the only one to change something; close() waits for its end.
  struct Turn {
    Gate::Pass pass;
    Mutex::Held held;
  };

  ClusterKeeper(BrokerParts& parts, const BrokerConfig& config, PartitionMap& partitions)
      : parts_(parts), config_(config), partitions_(partitions) {}

  /// Takes a lease, the controller's role, and reads what the cluster agrees on.
  Task<> join();
  /// Announces where clients find us. From here on shards know the cluster.
  Task<> announce(const std::vector<Endpoint>& endpoints);
  /// Refuses new turns, and ends when the last one has.
  Task<> close();
  void leave() noexcept { lease_.reset(); }

  /// Errc::closed once the broker stops.
  Task<Turn> turn();
  /// What is changed in a turn is published before it ends.
  ClusterState& state() noexcept { return state_; }
  Task<> publish();
  std::int32_t controller_epoch() const noexcept { return controller_epoch_; }

 private:
  Task<> load_cluster_id();
  Task<> become_controller();
  Task<> load_broker_configs();

  BrokerParts& parts_;
  const BrokerConfig& config_;
  PartitionMap& partitions_;
  ClusterState state_;
  std::int32_t controller_epoch_ = 0;
  std::unique_ptr<Lease> lease_;
  Mutex changes_;
  Gate running_;
};

}  // namespace millrace::kernel
