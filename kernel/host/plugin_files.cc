#include "kernel/host/plugin_files.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include "kernel/config/text.h"

namespace millrace::kernel {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view installed_folder = "/usr/lib/millrace/plugins";

/// `../lib/millrace/plugins` beside the running program: a build tree, or another prefix.
std::string folder_beside_program() {
  std::error_code none;
  const auto program = fs::read_symlink("/proc/self/exe", none);
  if (none) return {};
  return (program.parent_path().parent_path() / "lib/millrace/plugins").string();
}

bool is_there(const fs::path& path) {
  std::error_code none;
  return fs::exists(path, none);
}

// The folders that were looked in.
std::string told(const std::vector<std::string>& folders) {
  std::vector<std::string> each;
  for (const auto& folder : folders) {
    each.push_back(is_there(folder) ? folder : folder + " (not there)");
  }
  return joined(each);
}

// What somebody may have meant who wrote the right name in the wrong place; else "".
std::string misplaced(const std::vector<std::string>& folders, std::string_view kind,
                      const std::string& file) {
  for (const auto& folder : folders) {
    const auto path = fs::path(folder) / file;
    if (is_there(path)) {
      return concat("; ", path.string(), " is there: a folder of plugins has one for each kind, ",
                    kind, "/", file);
    }
    for (const auto other : plugin_kinds) {
      const auto of_other = fs::path(folder) / other / file;
      if (other != kind && is_there(of_other)) {
        return concat("; ", of_other.string(), " is one of kind ", other);
      }
    }
  }
  return {};
}

}  // namespace

std::string kind_meant(std::string_view word) {
  for (const auto kind : plugin_kinds) {
    if (concat(word, "s") == kind || word == concat(kind, "s")) return std::string(kind);
  }
  return std::string(word);
}

PluginFiles::PluginFiles(std::vector<std::string> configured) : folders_(std::move(configured)) {
  if (auto beside = folder_beside_program(); !beside.empty()) folders_.push_back(std::move(beside));
  if (!contains(folders_, installed_folder)) folders_.emplace_back(installed_folder);
}

Result<std::string> PluginFiles::find(std::string_view kind, std::string_view name) const {
  const auto file = fs::path(kind) / (std::string(name) + ".so");
  for (const auto& folder : folders_) {
    const auto path = fs::path(folder) / file;
    if (is_there(path)) return path.string();
  }
  const auto known = names(kind);
  return Error{Errc::not_found, concat("no plugin ", file.string(), " in ", told(folders_),
                                       misplaced(folders_, kind, file.filename().string()),
                                       nearest_hint(name, known), "; ", kind,
                                       " plugins found: ", known.empty() ? "none" : joined(known))};
}

std::vector<std::string> PluginFiles::names(std::string_view kind) const {
  std::set<std::string> found;
  for (const auto& folder : folders_) {
    std::error_code none;
    for (const auto& entry : fs::directory_iterator(fs::path(folder) / kind, none)) {
      if (entry.path().extension() == ".so") found.insert(entry.path().stem().string());
    }
  }
  return {found.begin(), found.end()};
}

}  // namespace millrace::kernel
