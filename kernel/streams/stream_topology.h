// A stream whose operators are found: every plugin mapped and checked, every option of a step what
// its plugin declares.
#pragma once

#include <string>
#include <vector>

#include <millrace/streams.h>

#include "kernel/config/changelog_name.h"
#include "kernel/host/library.h"
#include "kernel/host/plan.h"
#include "kernel/host/plugin_files.h"

namespace millrace::kernel {

/// Checks the declaration and finds its operators. The error names the member and the step. Maps
/// libraries, so it may block.  [a worker; start-up]
Result<PlannedStream> plan_stream(StreamSpec spec, const PluginFiles& files);

/// The options of one step as `library` declares them.
Result<Options> step_options(const StreamStep& step, const PluginLibrary& library);

}  // namespace millrace::kernel
