// A plugin file that takes the place of one that is loaded.
#pragma once

#include <string>

#include <millrace/environment.h>

#include "kernel/host/library.h"
#include "kernel/host/trial.h"

namespace millrace::kernel {

/// A plugin, loaded from a private copy of its file. The copy is named by its content, so that the
/// loader cannot answer with what it has mapped under that name before. It stays in
/// DATA/.operators, for streams that name it after a restart.
struct PrivateCopy {
  PluginLibrary library;
  bool is_new = false;  ///< it was not there before
};

/// Errc::invalid_argument names `path` and says why it cannot be: nothing is left behind then.
/// Shows nothing of what is in the file. The copy is tried before it is mapped. May block.
/// [a worker]
Result<PrivateCopy> load_private_copy(FileSystem& files, const std::string& path,
                                      const std::string& data, const PluginTrial& trial);
/// One that was refused after all.  [a worker]
void forget_private_copy(FileSystem& files, const PrivateCopy& copy);

/// The same for files of the same content, by which their copies are named. Errors as above; may
/// block.  [a worker]
Result<std::string> content_of(FileSystem& files, const std::string& path);
/// The copy of ours with the name that `copy`, maybe one of another broker, has in its folder.
std::string own_copy(const std::string& copy, const std::string& data);

/// `error`, about `path` where it was about its copy.
Error about_original(Error error, const std::string& copy, const std::string& path);

}  // namespace millrace::kernel
