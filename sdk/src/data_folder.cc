#include <millrace/data_folder.h>

#include <vector>

namespace millrace {

namespace {

std::string parent_of(const std::string& path) {
  const auto slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

}  // namespace

Result<> make_data_folder(FileSystem& files, const std::string& path) {
  auto folder = path;
  while (folder.size() > 1 && folder.ends_with('/')) folder.pop_back();
  std::vector<std::string> changed;
  for (auto at = folder; at != parent_of(at) && !files.info(at); at = parent_of(at)) {
    changed.push_back(parent_of(at));
  }
  MR_CHECK(files.make_folders(folder));
  // Who has made it may have died before this; that we may not read what it lies in is no fault.
  if (changed.empty()) static_cast<void>(files.sync_folder(parent_of(folder)));
  for (const auto& parent : changed) MR_CHECK(files.sync_folder(parent));
  return {};
}

}  // namespace millrace
