// The files of plugins as a broker that runs may load them, when its configuration is read again.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <millrace/environment.h>

#include "kernel/host/library.h"
#include "kernel/host/trial.h"

namespace millrace::kernel {

/// What is mapped stays so: a file that is new is tried and mapped, an operator's that has changed
/// is loaded beside the one before, from a private copy.  [main thread]
class ReloadFiles {
 public:
  /// `files` outlives this. `data`: the data directory, for private copies.
  ReloadFiles(FileSystem& files, std::string data, PluginTrial trial);

  Result<PluginLibrary> load(const std::string& path, std::string_view kind);
  /// Files that have changed and are taken over by a restart alone.
  const std::vector<std::string>& at_restart() const noexcept { return at_restart_; }

 private:
  FileSystem& files_;
  std::string data_;
  PluginTrial trial_;
  std::vector<std::string> at_restart_;
};

}  // namespace millrace::kernel
