// What settings mean, from the declarations of the kernel and of the plugins that are found.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <millrace/options.h>

#include "kernel/cli/context.h"

namespace millrace::kernel::cli {

/// One meaning of a key.
struct ExplainedSetting {
  std::string key;  ///< as it is written: "transport.kafka.listen", "retention.ms"
  std::string of;   ///< "millrace.toml", "a topic", "a broker", "a group"
  const MillraceOption* option = nullptr;
  std::vector<std::pair<std::string, std::string>> more;  ///< {"inherits", "log.retention.ms"}
};

/// All that `key` means: an option of millrace.toml ("broker.data", "transport.kafka.listen"),
/// Kafka's name of a setting of topics, brokers or groups ("retention.ms"), or several of them at
/// once. What others name is written as they do, too ("stream.clean.on-error"). Errc::not_found
/// names the nearest.
Result<std::vector<ExplainedSetting>> explain_setting(const Context& context,
                                                      const std::string& key);

/// Every setting there is.
std::vector<ExplainedSetting> all_settings(const Context& context);

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
