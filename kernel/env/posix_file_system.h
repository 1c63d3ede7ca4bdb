// Folders, names and locks by the system's calls.
#pragma once

#include <millrace/environment.h>

namespace millrace::kernel {

/// Every error names the path and the system's reason.
class PosixFileSystem final : public FileSystem {
 public:
  Result<std::shared_ptr<File>> open(const std::string& path, OpenMode mode) override;
  Result<FileInfo> info(const std::string& path) override;
  Result<std::vector<FileInfo>> list(const std::string& folder) override;
  Result<> make_folders(const std::string& path) override;
  Result<> rename(const std::string& from, const std::string& to) override;
  Result<> remove(const std::string& path) override;
  /// Nothing to remove is no error.
  Result<> remove_tree(const std::string& path) override;
  Result<> sync_folder(const std::string& folder) override;
  /// A lock of the open file (fcntl(2), F_OFD_SETLK), which holds the owner's process id. Locking
  /// twice in one process is a conflict too.
  Result<std::unique_ptr<Lock>> lock(const std::string& path) override;
  Result<SpaceInfo> space(const std::string& path) override;
  /// syncfs(2).
  Result<> sync_all(const std::string& folder) override;
};

}  // namespace millrace::kernel
