// The tool's arguments as a tree of verbs, whether one of them runs or they are only told of: to
// completions, to manual pages, to tests.
#pragma once

#include <memory>

#include <millrace/result.h>

#include "kernel/cli/context.h"

namespace CLI {
class App;
}

namespace millrace::kernel::cli {

/// All verbs. Parsing fills `context` and sets `action`, and runs nothing; both outlive what is
/// returned.
std::unique_ptr<CLI::App> make_program(Context& context, Action& action);

/// What a script can tell apart, by sysexits.h.
int exit_code_of(const Error& error);

}  // namespace millrace::kernel::cli
