// Settings of topics and brokers: described from the state that every shard has, changed on the
// control thread, and then in effect on every open partition before the change is answered.
#pragma once

#include <expected>
#include <string>
#include <vector>

#include <millrace/configs.h>

#include "kernel/broker/broker_parts.h"
#include "kernel/broker/cluster_keeper.h"
#include "kernel/broker/config_changes.h"
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
  ConfigsDescribed describe_one(const ConfigQuery& query, const ClusterState& cluster) const;

  // [control thread]
  Task<ConfigsAltered> alter_one(ConfigAlteration alteration, bool validate_only);
  Task<std::optional<ConfigRefusal>> alter_topic(ConfigAlteration alteration, bool validate_only);
  Task<std::optional<ConfigRefusal>> alter_broker(ConfigAlteration alteration, bool validate_only);
  Task<> store(std::string key, ConfigMap configs);
  Task<> apply_to(std::shared_ptr<const TopicState> topic);

  BrokerParts& parts_;
  const BrokerConfig& config_;
  PartitionMap& partitions_;
  ClusterKeeper& cluster_;
};

}  // namespace millrace::kernel
