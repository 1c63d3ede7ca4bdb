// What becomes of plugins when the configuration of a broker that runs has been read again.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "kernel/host/plan.h"

namespace millrace::kernel {

struct PluginChanges {
  std::vector<PlannedPlugin> starts;    ///< that begin now, in the order in which they can
  std::vector<std::string> ends;        ///< transports that end now
  std::vector<std::string> at_restart;  ///< what counts from the next start, for people
};

/// Codecs and transports begin while the broker runs, once there is what they need; transports also
/// end, unless the broker `needs` one. Everything else starts and ends with the broker.
PluginChanges plugin_changes(const std::vector<PlannedPlugin>& running,
                             const std::vector<PlannedPlugin>& wanted,
                             const std::function<bool(const PlannedPlugin&)>& needs);

/// The keys of options that begin to count with these changes; one that ends in a dot stands for
/// all that begin so.
std::vector<std::string> reloaded_keys(const PluginChanges& changes);

/// Its aggregates can be replaced: nobody holds on to it as to a service.
bool has_aggregates_alone(const PlannedPlugin& running, const PlannedPlugin& wanted);

/// The one of the same kind and instance; nullptr: none.
const PlannedPlugin* find_plugin(const std::vector<PlannedPlugin>& plugins,
                                 const PlannedPlugin& like);

/// "transport/kafka"
std::string name_of(const PlannedPlugin& plugin);

}  // namespace millrace::kernel
