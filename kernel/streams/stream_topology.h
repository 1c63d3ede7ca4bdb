// A stream whose operators are found: every plugin mapped and checked, every option of a step what
// its plugin declares.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <millrace/streams.h>

#include "kernel/config/changelog_name.h"
#include "kernel/host/library.h"
#include "kernel/host/plan.h"
#include "kernel/host/plugin_files.h"
#include "kernel/host/trial.h"

namespace millrace::kernel {

/// Checks the declaration and finds its operators. The error names the member and the step. Maps
/// libraries, behind a trial of those that are new, so it may block.  [a worker; start-up]
Result<PlannedStream> plan_stream(StreamSpec spec, const PluginFiles& files,
                                  const PluginTrial& trial = {});

/// What is `given` as `library` declares it, with its defaults. `who` it is for is named in errors.
Result<Options> checked_options(const std::map<std::string, OptionValue, std::less<>>& given,
                                const PluginLibrary& library, std::string_view who);
/// The options of one step.
Result<Options> step_options(const StreamStep& step, const PluginLibrary& library);

}  // namespace millrace::kernel
