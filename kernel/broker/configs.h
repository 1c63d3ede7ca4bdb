// Settings of topics, brokers and groups: described from the state that every shard has; changed
// through coordination, by whichever broker is asked, with a mark that lets the controller tell all
// brokers. A change is in effect on every partition here before it is answered.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <millrace/broker.h>
#include <millrace/configs.h>

#include "kernel/broker/broker_parts.h"
#include "kernel/broker/cluster_keeper.h"
#include "kernel/broker/config_changes.h"
#include "kernel/cluster/znodes.h"

namespace millrace::kernel {

class KernelConfigs final : public Configs {
 public:
  /// `broker` is asked for what operates it, when log levels are.
  KernelConfigs(Broker& broker, BrokerParts& parts, const BrokerConfig& config,
                ClusterKeeper& cluster)
      : broker_(broker), parts_(parts), config_(config), cluster_(cluster) {}

  /// Waits for the change that is being made.  [control thread]
  Task<> close() { return running_.close(); }

  Task<std::vector<ConfigsDescribed>> describe(Session& session,
                                               std::vector<ConfigQuery> queries) override;
  Task<std::vector<ConfigsAltered>> alter(Session& session, AlterConfigsRequest request) override;
  Task<std::vector<ConfigResource>> list(Session& session,
                                         std::vector<ConfigResourceType> types) override;

 private:
  ConfigsDescribed describe_one(const ConfigQuery& query, const ClusterState& cluster) const;
  /// Why there are no log levels under this name.
  std::optional<ConfigRefusal> check_logger(const std::string& name) const;
  /// Why a group of this name has no settings.
  std::optional<ConfigRefusal> check_group(const std::string& name) const;

  // [control thread]
  Task<ConfigsAltered> alter_one(ConfigAlteration alteration, bool validate_only);
  Task<std::optional<ConfigRefusal>> alter_topic(ConfigAlteration alteration, bool validate_only);
  Task<std::optional<ConfigRefusal>> alter_broker(ConfigAlteration alteration, bool validate_only);
  Task<std::optional<ConfigRefusal>> alter_group(ConfigAlteration alteration, bool validate_only);
  struct Stored {
    ConfigMap configs;
    Version version = must_not_exist;
  };
  Task<Stored> stored(znodes::ConfigEntity entity);
  /// Known to the controller, and in effect here, when it completes.
  Task<> store(znodes::ConfigEntity entity, ConfigMap configs, Version expected);

  Broker& broker_;
  BrokerParts& parts_;
  const BrokerConfig& config_;
  ClusterKeeper& cluster_;
  Mutex changes_;
  Gate running_;
};

}  // namespace millrace::kernel
