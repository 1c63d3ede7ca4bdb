// What a configuration comes to, and all that is wrong with it: as millraced --check finds it, by
// the same code.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "kernel/config/config.h"
#include "kernel/host/trial.h"

namespace millrace::kernel::cli {

/// A configuration that could be read.
struct CheckedConfig {
  std::vector<PluginRequest> plugins;
  std::vector<SettingFact> settings;  ///< every option with its source, by key
  std::vector<std::string> plugin_folders;
};

struct ConfigVerdict {
  std::optional<CheckedConfig> config;
  std::vector<std::string> wrong;    ///< "FILE:LINE:COLUMN: what"; empty: it is good
  std::vector<std::string> remarks;  ///< what is hardly meant
};

/// Reads files, loads and starts the plugins, makes the operators and stops all again: nothing is
/// listened on, nobody connected to, no data touched. `trial`: of plugins, before they are loaded.
/// [main thread]
Result<ConfigVerdict> check_configuration(const ConfigSource& source, const PluginTrial& trial);

/// What one of `wrong` begins with.
struct WrongPlace {
  std::string source;  ///< a file, or "--set KEY=…"; empty: none is named
  std::uint32_t line = 0;
  std::uint32_t column = 0;
  std::string message;
};
WrongPlace place_of_wrong(const std::string& line);

}  // namespace millrace::kernel::cli
