// What settings mean, from the declarations of the kernel and of the plugins that are found.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <millrace/options.h>

#include "kernel/cli/context.h"

namespace millrace::kernel::cli {

/// A key of millrace.toml ("broker.data", "transport.kafka.listen"), or Kafka's name of a setting
/// of topics or brokers ("retention.ms"). Errc::not_found names the nearest.
Result<std::string> explain_setting(const Context& context, const std::string& key);

/// A plugin that is found, "storage/filelog", and what can be set for it.
struct PluginTable {
  std::string plugin;
  std::string summary;
  std::string table;
  const MillraceOption* options;  ///< ends with a null name
  bool of_steps = false;          ///< an operator, whose options stand in the steps of streams
};

/// Those that this kernel loads; others than `wanted`, by "storage/filelog" and "storage", are not
/// even looked at.
using WantedPlugin = std::function<bool(std::string_view plugin, std::string_view table)>;
std::vector<PluginTable> plugin_tables(const Context& context, const WantedPlugin& wanted = {});

}  // namespace millrace::kernel::cli
