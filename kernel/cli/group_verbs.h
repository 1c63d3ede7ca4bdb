// The verbs below `millrace group` that have a file of their own.
#pragma once

#include "kernel/cli/context.h"

namespace millrace::kernel::cli {

void add_group_describe_verb(CLI::App& group, Context& context, Action& action);
void add_group_reset_verb(CLI::App& group, Context& context, Action& action);

}  // namespace millrace::kernel::cli
