// Settings of topics, brokers and groups as a broker tells them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <millrace/configs.h>
#include <millrace/environment.h>
#include <millrace/kafka/client.h>

#include "kernel/cli/cluster_client.h"

namespace CLI {
class App;
}

namespace millrace::kernel::cli {

/// Who has set a value; ConfigSource is also what a configuration is read from.
using SettingSource = millrace::ConfigSource;

/// Whose settings; one of them is set.
struct ConfigTarget {
  std::string topic;
  std::string broker;
  bool all_brokers = false;
  std::string group;

  ConfigResource resource() const;
  /// "topic orders", "all brokers"
  std::string text() const;
};

/// --topic, --broker, --broker-default and --group, one of which has to be there.
void add_target(CLI::App& verb, ConfigTarget& target);

struct SettingLayer {
  std::string name;
  std::optional<std::string> value;
  SettingSource source = SettingSource::fallback;
};
struct ShownSetting {
  std::string name;
  std::optional<std::string> value;  ///< none: it has none, or it is secret
  SettingSource source = SettingSource::fallback;
  bool read_only = false;
  bool sensitive = false;
  std::vector<SettingLayer> layers;  ///< where it may come from, what is in force first
};

/// "topic", "all brokers", "default"
std::string_view source_text(SettingSource source);

/// The broker that knows the settings of `target`: a broker's file is known to itself alone. It
/// belongs to `cluster`.
Task<kafka::Client*> broker_for(ClusterClient& cluster, ConfigTarget target);

/// By name; those of `names`, or all when there are none.
Task<std::vector<ShownSetting>> describe_settings(ClusterClient& cluster, ConfigTarget target,
                                                  std::vector<std::string> names);

/// Says so, with the nearest of `all` that there is.
Error no_such_setting(const ConfigTarget& target, const std::string& name,
                      const std::vector<ShownSetting>& all);

/// One step of a change. The value is nothing where a setting is taken away.
struct ConfigStep {
  std::string name;
  ConfigOperation operation;
  std::string value;
};

/// What `setting` has after `step` for `target`, as far as that can be told without doing it.
std::optional<std::string> value_after(const ShownSetting& setting, const ConfigStep& step,
                                       const ConfigTarget& target);

}  // namespace millrace::kernel::cli
