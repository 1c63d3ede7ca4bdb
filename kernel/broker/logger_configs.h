// Log levels as Kafka's tools see them: settings of a broker's loggers, by subsystem, which last
// until the broker ends.
#pragma once

#include <optional>
#include <vector>

#include <millrace/configs.h>
#include <millrace/operations.h>

#include "kernel/broker/config_changes.h"

namespace millrace::kernel {

/// The level of the broker, of each plugin, of every subsystem that has one of its own, and as
/// "root" of all others.  [any thread]
std::vector<ConfigEntry> describe_loggers(const Operations& operations);

/// Sets and removes levels, all of them or none; why not otherwise.  [any thread]
std::optional<ConfigRefusal> alter_loggers(Operations& operations,
                                           const ConfigAlteration& alteration, bool validate_only);

}  // namespace millrace::kernel
