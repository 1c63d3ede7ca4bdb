// The reference of all options and settings as a manual page, from what kernel and plugins declare.
#pragma once

#include <string>

#include "kernel/cli/context.h"

namespace millrace::kernel::cli {

/// millrace.toml(5) as Markdown; of the plugins those that are found.
std::string configuration_page(const Context& context);

}  // namespace millrace::kernel::cli
