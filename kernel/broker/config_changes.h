// What a change of settings leaves behind, or why it is refused: Kafka's rules, codes and words.
#pragma once

#include <expected>
#include <string>

#include <millrace/configs.h>

#include "kernel/broker/config_sources.h"
#include "kernel/cluster/cluster_state.h"

namespace millrace::kernel {

struct ConfigRefusal {
  ErrorCode error = ErrorCode::none;
  std::string message;
};

/// The settings of a topic that has `current` ones, after `alteration`. What is stored already is
/// not checked again: a topic with a value that cannot be used may still be changed.
std::expected<ConfigMap, ConfigRefusal> changed_topic_configs(const ConfigAlteration& alteration,
                                                              const ConfigMap& current,
                                                              const ConfigSources& sources);

/// The same for what is set for one broker, or for all. Who shall be drained has to be known: it
/// lives, or has replicas, in `cluster`.
std::expected<ConfigMap, ConfigRefusal> changed_broker_configs(const ConfigAlteration& alteration,
                                                               const ConfigMap& current,
                                                               const ConfigSources& sources,
                                                               const ClusterState& cluster);

/// The same for what is set for one group; bounded by the broker's settings.
std::expected<ConfigMap, ConfigRefusal> changed_group_configs(const ConfigAlteration& alteration,
                                                              const ConfigMap& current,
                                                              const ConfigSources& sources);

}  // namespace millrace::kernel
