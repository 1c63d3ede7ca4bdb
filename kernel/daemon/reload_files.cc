#include "kernel/daemon/reload_files.h"

#include <filesystem>
#include <utility>

#include "kernel/config/text.h"
#include "kernel/streams/operator_file.h"

namespace millrace::kernel {

ReloadFiles::ReloadFiles(FileSystem& files, std::string data, PluginTrial trial)
    : files_(files), data_(std::move(data)), trial_(std::move(trial)) {}

Result<PluginLibrary> ReloadFiles::load(const std::string& path, std::string_view kind) {
  if (state_of_file(path) != FileState::changed) return load_tried(path, kind, trial_);
  if (kind == "operators") {
    const auto whole_path = std::filesystem::absolute(path).string();
    MR_TRY(auto copy, load_private_copy(files_, whole_path, data_, trial_));
    return std::move(copy.library);
  }
  // The file of the next start: what is wrong with it is better known now.
  if (trial_) MR_CHECK(trial_(path));
  if (!contains(at_restart_, path)) at_restart_.push_back(path);
  return load_plugin(path, kind);
}

}  // namespace millrace::kernel
