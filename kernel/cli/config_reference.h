// What settings mean, from the declarations of the kernel and of the plugins that are found.
#pragma once

#include <string>

#include "kernel/cli/context.h"

namespace millrace::kernel::cli {

/// A key of millrace.toml ("broker.data", "transport.kafka.listen"), or Kafka's name of a setting
/// of topics or brokers ("retention.ms"). Errc::not_found names the nearest.
Result<std::string> explain_setting(const Context& context, const std::string& key);

}  // namespace millrace::kernel::cli
