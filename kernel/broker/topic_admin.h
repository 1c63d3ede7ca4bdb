// Topics made, grown and erased, as clients ask for it and as the controller does it: what may be,
// what is answered. Where this broker is not the controller all is refused with NOT_CONTROLLER.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <millrace/admin.h>

#include "kernel/broker/broker_parts.h"
#include "kernel/broker/cluster_keeper.h"
#include "kernel/broker/config_sources.h"

namespace millrace::kernel {

/// [control thread]
class TopicAdmin {
 public:
  TopicAdmin(BrokerParts& parts, const BrokerConfig& config, ClusterKeeper& cluster)
      : parts_(parts), config_(config), cluster_(cluster) {}

  /// Known on every shard of this broker, and with the brokers of all replicas that live, when it
  /// is answered. Refusals are in the answer.
  Task<TopicCreated> create(NewTopic wanted, bool validate_only);
  Task<TopicGrown> grow(TopicGrowth wanted, bool validate_only);
  Task<TopicDeleted> erase(TopicName name);

  /// As create(), by the controller wherever it is.
  Task<TopicCreated> create_anywhere(NewTopic wanted);

 private:
  struct Made {
    std::shared_ptr<const TopicState> topic;  // none: refused, or only checked
    UpdateSender::Moment moment = 0;
  };
  Task<Made> make(NewTopic wanted, bool validate_only, TopicCreated& created);
  Task<> take_back(const TopicState& topic);
  std::shared_ptr<const std::vector<ConfigEntry>> describe_new(const ConfigMap& overrides,
                                                               const ConfigSources& sources);

  BrokerParts& parts_;
  const BrokerConfig& config_;
  ClusterKeeper& cluster_;
  // Of topics without settings of their own; made for settings that are no longer these.
  std::weak_ptr<const std::vector<ConfigEntry>> plain_configs_;
  ConfigMap plain_made_for_;
};

}  // namespace millrace::kernel
