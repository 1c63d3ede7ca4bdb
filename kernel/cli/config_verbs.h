// The verbs below `millrace config` that have a file of their own.
#pragma once

#include "kernel/cli/context.h"

namespace millrace::kernel::cli {

void add_config_set_verb(CLI::App& parent, Context& context, Action& action);
void add_config_diff_verb(CLI::App& parent, Context& context, Action& action);
void add_config_check_verb(CLI::App& parent, Context& context, Action& action);
void add_config_explain_verb(CLI::App& parent, Context& context, Action& action);

}  // namespace millrace::kernel::cli
