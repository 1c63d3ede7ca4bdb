// A plugin file that takes the place of one that is loaded.
#pragma once

#include <string>

#include <millrace/environment.h>

#include "kernel/host/library.h"

namespace millrace::kernel {

/// Loads a private copy of `path`, named by its content, so that the loader cannot answer with what
/// it has mapped under that name before. Copies stay in
/// DATA/.operators, for streams that name them after a restart. May block.  [a worker]
Result<PluginLibrary> load_private_copy(FileSystem& files, const std::string& path,
                                        const std::string& data);

}  // namespace millrace::kernel
