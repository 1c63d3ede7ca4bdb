// Settings of topics and brokers: described from the state that every shard has, changed on the
// control thread, and then in effect on every open partition before the change is answered.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <millrace/broker.h>
#include <millrace/configs.h>

#include "kernel/broker/broker_parts.h"
#include "kernel/broker/cluster_keeper.h"
#include "kernel/broker/config_changes.h"
#include "kernel/broker/partitions.h"

namespace millrace::kernel {

class KernelConfigs final : public Configs {
 public:
  /// `broker` is asked for what operates it, when log levels are.
  KernelConfigs(Broker& broker, BrokerParts& parts, const BrokerConfig& config,
                PartitionMap& partitions, ClusterKeeper& cluster)
      : broker_(broker),
        parts_(parts),
        config_(config),
        partitions_(partitions),
        cluster_(cluster) {}

  Task<std::vector<ConfigsDescribed>> describe(Session& session,
                                               std::vector<ConfigQuery> queries) override;
  Task<std::vector<ConfigsAltered>> alter(Session& session, AlterConfigsRequest request) override;
  Task<std::vector<ConfigResource>> list(Session& session,
                                         std::vector<ConfigResourceType> types) override;

 private:
  ConfigsDescribed describe_one(const ConfigQuery& query, const ClusterState& cluster) const;
  /// Why there are no log levels under this name.
  std::optional<ConfigRefusal> check_logger(const std::string& name) const;

  // [control thread]
  Task<ConfigsAltered> alter_one(ConfigAlteration alteration, bool validate_only);
  Task<std::optional<ConfigRefusal>> alter_topic(ConfigAlteration alteration, bool validate_only);
  Task<std::optional<ConfigRefusal>> alter_broker(ConfigAlteration alteration, bool validate_only);
  Task<> store(std::string key, ConfigMap configs);
  Task<> apply_to(std::shared_ptr<const TopicState> topic);

  Broker& broker_;
  BrokerParts& parts_;
  const BrokerConfig& config_;
  PartitionMap& partitions_;
  ClusterKeeper& cluster_;
};

}  // namespace millrace::kernel
