// The verbs of `millrace log` that look at files; added by add_log_verb.
#pragma once

#include "kernel/cli/context.h"

namespace millrace::kernel::cli {

void add_log_dump_verb(CLI::App& log, Context& context, Action& action);
void add_log_verify_verb(CLI::App& log, Context& context, Action& action);
void add_log_repair_verb(CLI::App& log, Context& context, Action& action);

}  // namespace millrace::kernel::cli
