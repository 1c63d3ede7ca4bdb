// The verbs below `millrace cluster` that have a file of their own.
#pragma once

#include "kernel/cli/context.h"

namespace millrace::kernel::cli {

void add_status_verb(CLI::App& cluster, Context& context, Action& action);
void add_balance_verb(CLI::App& cluster, Context& context, Action& action);
void add_drain_verb(CLI::App& cluster, Context& context, Action& action);

}  // namespace millrace::kernel::cli
