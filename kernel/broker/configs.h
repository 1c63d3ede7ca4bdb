// Settings of topics and brokers: described from the state that every shard has, changed on the
// control thread.
#pragma once

#include <vector>

#include <millrace/configs.h>

#include "kernel/broker/broker_parts.h"
#include "kernel/broker/cluster_keeper.h"
#include "kernel/broker/partitions.h"

namespace millrace::kernel {

class KernelConfigs final : public Configs {
 public:
  KernelConfigs(BrokerParts& parts, const BrokerConfig& config, PartitionMap& partitions,
                ClusterKeeper& cluster)
      : parts_(parts), config_(config), partitions_(partitions), cluster_(cluster) {}

  Task<std::vector<ConfigsDescribed>> describe(Session& session,
                                               std::vector<ConfigQuery> queries) override;
  Task<std::vector<ConfigsAltered>> alter(Session& session, AlterConfigsRequest request) override;
  Task<std::vector<ConfigResource>> list(Session& session,
                                         std::vector<ConfigResourceType> types) override;

 private:
  [[maybe_unused]] BrokerParts& parts_;
  [[maybe_unused]] const BrokerConfig& config_;
  [[maybe_unused]] PartitionMap& partitions_;
  [[maybe_unused]] ClusterKeeper& cluster_;
};

}  // namespace millrace::kernel
