// Since when the plugins of a broker run, for transports that show it beside
// <millrace/operations.h>.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <millrace/types.h>

namespace millrace {

/// Of the PluginFact of the same kind and instance: since it runs as that fact has it. A reload may
/// have begun it, or replaced it by another version.
struct PluginStart {
  std::string kind;
  std::string instance;
  Timestamp since;
};

/// Broker::service<PluginStarts>().  [any thread]
class PluginStarts {
 public:
  static constexpr std::string_view service_id = "millrace.plugin_starts/1";

  virtual ~PluginStarts() = default;
  virtual std::vector<PluginStart> plugin_starts() const = 0;
};

}  // namespace millrace
