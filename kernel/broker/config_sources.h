// Where the settings of a broker come from, and what each of its settings and its topics' is worth:
// set for this broker while it runs, set for all brokers while they run, written in the
// configuration file, or nobody's choice (KIP-226).
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include <millrace/configs.h>

#include "kernel/broker/broker_parts.h"
#include "kernel/broker/group_options.h"
#include "kernel/cluster/cluster_state.h"
#include "kernel/partition/config_options.h"

namespace millrace::kernel {

/// A snapshot of one broker's settings.  [any thread; immutable]
class ConfigSources {
 public:
  ConfigSources(const BrokerConfig& config, const ClusterState& cluster);

  /// What topics inherit, the stronger source winning.
  const ConfigMap& merged() const noexcept { return merged_; }
  const ConfigMap& of_this_broker() const noexcept { return this_broker_; }
  const ConfigMap& of_all_brokers() const noexcept { return all_brokers_; }

  /// Every setting of a topic, by name, and what else is stored for it.
  std::vector<ConfigEntry> describe_topic(const ConfigMap& overrides) const;
  /// Every setting of this broker, by name.
  std::vector<ConfigEntry> describe_broker() const;
  /// Every setting of a group with these ones of its own, by name.
  std::vector<ConfigEntry> describe_group(const ConfigMap& overrides) const;
  /// A number of this broker's, by one of its names; its default where nobody has set it.
  std::int64_t number(std::string_view name) const;
  /// What is set for all brokers.
  std::vector<ConfigEntry> describe_all_brokers() const;

 private:
  std::vector<ConfigSynonym> synonyms_of(const std::vector<std::string_view>& names) const;
  ConfigEntry topic_entry(const TopicOption& topic, const ConfigMap& overrides) const;
  ConfigEntry broker_entry(const BrokerOption& broker) const;
  ConfigEntry group_entry(const GroupOption& group, const ConfigMap& overrides) const;

  ConfigMap this_broker_;
  ConfigMap all_brokers_;
  ConfigMap file_;  // and what the broker knows of itself
  ConfigMap merged_;
};

}  // namespace millrace::kernel
