// Whether a plugin's file can be loaded at all, found out by a process of its own: what a damaged
// file ends is that one, and not the broker.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include <millrace/result.h>
#include <millrace/types.h>

#include "kernel/host/library.h"

namespace millrace::kernel {

/// Why `path` cannot be loaded. May block.  [a worker; main thread]
using PluginTrial = std::function<Result<>(const std::string& path)>;

/// The argument before the file by which a program of ours is asked to be that process.
inline constexpr const char* trial_argument = "--try-plugin";

/// Begins `program` with `trial_argument` and the file. Errc::incompatible: what run_trial() says,
/// or how that process ended otherwise. After `limit` it is killed.
PluginTrial trial_by(std::string program, Duration limit);
/// By the running program itself.
PluginTrial trial_by_this_program();

/// load_plugin() behind a trial of what is not mapped yet. Without one: load_plugin().
Result<PluginLibrary> load_tried(const std::string& path, std::string_view kind,
                                 const PluginTrial& trial);

/// That process: loads the file, reads all that its descriptor says, makes its object and destroys
/// it. What is wrong goes to stdout. The exit code.  [main thread, which is alone]
int run_trial(const std::string& path);

}  // namespace millrace::kernel
