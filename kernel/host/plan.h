// From a configuration to what will run: the plugins it names, mapped and checked, and its
// settings, checked against what those plugins declare. Nothing has been started.
#pragma once

#include <expected>
#include <functional>
#include <vector>

#include "kernel/config/config.h"
#include "kernel/host/library.h"
#include "kernel/host/plugin_files.h"

namespace millrace::kernel {

/// An instance to start.
struct PlannedPlugin {
  PluginRequest request;
  PluginLibrary library;
  Options options;
  OptionPlaces places;
};

/// A stream whose operators are mapped, and their options checked.
struct PlannedStream {
  struct Step {
    PluginLibrary library;
    Options options;
    // None of both for a step that is not of the configuration.
    ConfigPlace place = {};  ///< of the operator's name
    OptionPlaces places = {};
  };
  StreamSpec spec;
  std::vector<Step> steps;  ///< as in `spec`
  std::string declared_in;  ///< "FILE:LINE:COLUMN"
};

struct Plan {
  BrokerSettings broker;
  LogSettings log;
  ClusterSettings cluster;
  OperatorSettings operators;
  std::map<std::string, std::string> defaults;
  std::vector<PlannedPlugin> plugins;  ///< in the order in which they start
  std::vector<PlannedStream> streams;  ///< by name
  std::vector<TopicSettings> topics;   ///< by name
  std::vector<std::string> plugin_folders;
  std::vector<SettingFact> settings;  ///< every option with its source, by key
};

/// How a file becomes a library.
using LoadLibrary =
    std::function<Result<PluginLibrary>(const std::string& path, std::string_view kind)>;
inline Result<PluginLibrary> load_as_at_a_start(const std::string& path, std::string_view kind) {
  return load_plugin(path, kind);
}

/// All that is wrong in one go: plugins that are missing or refused, services that nobody provides,
/// two plugins of one id, and every key of the configuration. `defaults` declares `[defaults]`,
/// `topics` the settings of `[topic.NAME]`.  [start-up]
std::expected<Plan, ConfigErrors> make_plan(const Config& config, const MillraceOption* defaults,
                                            const MillraceOption* topics,
                                            const LoadLibrary& load = load_as_at_a_start);

}  // namespace millrace::kernel
