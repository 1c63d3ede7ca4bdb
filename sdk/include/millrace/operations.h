// What operates one broker, beside its log: how it is, what was loaded and set, what it logs. For
// transports that people and their tools look through.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <millrace/observe.h>
#include <millrace/result.h>

namespace millrace {

/// A plugin instance that runs.
struct PluginFact {
  std::string kind;
  std::string instance;
  std::string id;
  std::string version;
  std::string path;
};

/// One option and what it came to.
struct SettingFact {
  std::string key;     ///< "transport.kafka.listen", as --set takes it
  std::string value;   ///< as text; empty when it is secret
  std::string source;  ///< "default", "FILE:LINE:COLUMN", "--set KEY"
  bool secret = false;
};

/// The level of a subsystem and what is below it; of everything else when the name is empty.
struct LogLevelFact {
  std::string subsystem;
  LogLevel level = LogLevel::info;
};

/// Broker::service<Operations>().  [any thread]
class Operations {
 public:
  static constexpr std::string_view service_id = "millrace.operations/1";
  enum class State { starting, serving, stopping };

  virtual ~Operations() = default;
  virtual State state() const noexcept = 0;
  /// In the order in which they started.
  virtual std::vector<PluginFact> plugins() const = 0;
  /// Sorted by key; as the broker was started.
  virtual std::vector<SettingFact> settings() const = 0;
  /// Sorted by subsystem.
  virtual std::vector<LogLevelFact> log_levels() const = 0;
  /// Until the broker ends. No level: the subsystem follows what is above it.
  virtual Result<> set_log_level(std::string_view subsystem, std::optional<LogLevel> level) = 0;
};

}  // namespace millrace
