// What other brokers ask of this one: <millrace/peers.h>. Brought to the control thread.
#pragma once

#include <vector>

#include <millrace/peers.h>

#include "kernel/broker/cluster_keeper.h"

namespace millrace::kernel {

/// [connection's shard]
class KernelClusterService final : public ClusterService {
 public:
  KernelClusterService(BrokerParts& parts, ClusterKeeper& cluster)
      : parts_(parts), cluster_(cluster) {}

  Task<ClusterUpdated> update(ClusterUpdate update) override;
  Task<std::vector<InSyncChanged>> change_in_sync(std::int32_t broker, std::int64_t broker_epoch,
                                                  std::vector<InSyncChange> changes) override;
  Task<LeadersMoved> shut_down(std::int32_t broker, std::int64_t broker_epoch) override;

 private:
  Shard& control() noexcept { return parts_.environment.control(); }

  BrokerParts& parts_;
  ClusterKeeper& cluster_;
};

}  // namespace millrace::kernel
