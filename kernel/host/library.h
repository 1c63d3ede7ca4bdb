// The door of a plugin. A file is looked at, then mapped, then its descriptor is compared with the
// kernel's; no code of the plugin is called here. The first mismatch refuses it: Errc::incompatible
// with file, what was found, what was expected and what to do.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <millrace/abi.h>
#include <millrace/result.h>

namespace millrace::kernel {

/// A plugin whose descriptor has passed every check. Stays mapped until the process ends: buffers,
/// vtables and suspended coroutines point into it.
struct PluginLibrary {
  std::string path;
  const MillraceDescriptor* descriptor = nullptr;
};

/// Reads the names in the file and runs nothing of it: a readable, whole ELF file for this machine
/// that exports the descriptor of this ABI and was built by this toolchain.
Result<> inspect_plugin(const std::string& path);

/// Inspects, maps (every symbol resolved now; the library's constructors run) and compares magic,
/// size, ABI, toolchain, layouts, id and kind. `kind` empty: any known one. A file is mapped once.
/// [start-up]
Result<PluginLibrary> load_plugin(const std::string& path, std::string_view kind = {});

/// What has become of the file at `path` since this process mapped it: load_plugin() goes on to
/// answer with what is mapped.
enum class FileState { not_mapped, as_mapped, changed };
FileState state_of_file(const std::string& path);

/// The file that a thread of this process maps at this moment; nullptr: none. Fit for a signal
/// handler.
const char* file_being_mapped() noexcept;

/// The checks of load_plugin on a descriptor in memory.
Result<> check_descriptor(const MillraceDescriptor& descriptor, const std::string& path,
                          std::string_view kind);

}  // namespace millrace::kernel
