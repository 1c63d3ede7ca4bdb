#include "kernel/env/posix_file_system.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>

#include "kernel/env/lock_holder.h"
#include "kernel/env/posix_file.h"
#include "kernel/env/system_error.h"

namespace millrace::kernel {
namespace {

// For the owner and its group: logs hold what customers sent.
constexpr mode_t file_mode = 0640;
constexpr mode_t folder_mode = 0750;

int open_flags(OpenMode mode) {
  switch (mode) {
    case OpenMode::read: return O_RDONLY;
    case OpenMode::write: return O_RDWR;
    case OpenMode::create: return O_RDWR | O_CREAT;
  }
  return O_RDONLY;
}

Result<std::shared_ptr<PosixFile>> open_file(const std::string& path, int flags) {
  const int descriptor = ::open(path.c_str(), flags | O_CLOEXEC, file_mode);
  if (descriptor < 0) return system_error(errno, "open " + path);
  return std::make_shared<PosixFile>(descriptor, path);
}

FileInfo info_of(std::string name, const struct stat& status) {
  const auto& modified = status.st_mtim;
  return {.name = std::move(name),
          .is_folder = S_ISDIR(status.st_mode),
          .size = static_cast<std::uint64_t>(status.st_size),
          .modified = {modified.tv_sec * 1000 + modified.tv_nsec / 1'000'000}};
}

class FileLock final : public FileSystem::Lock {
 public:
  explicit FileLock(std::shared_ptr<File> file) : file_(std::move(file)) {}
  // The file stays: removing it would let two processes lock two files of one name.
  ~FileLock() override { static_cast<void>(file_->truncate(0)); }

 private:
  std::shared_ptr<File> file_;
};

}  // namespace

Result<std::shared_ptr<File>> PosixFileSystem::open(const std::string& path, OpenMode mode) {
  return open_file(path, open_flags(mode));
}

Result<FileInfo> PosixFileSystem::info(const std::string& path) {
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0) return system_error(errno, "look at " + path);
  return info_of(std::filesystem::path(path).filename(), status);
}

Result<std::vector<FileInfo>> PosixFileSystem::list(const std::string& folder) {
  const std::unique_ptr<DIR, int (*)(DIR*)> open(::opendir(folder.c_str()), ::closedir);
  if (!open) return system_error(errno, "list " + folder);
  std::vector<FileInfo> entries;
  while (true) {
    errno = 0;
    const auto* entry = ::readdir(open.get());
    if (!entry && errno != 0) return system_error(errno, "list " + folder);
    if (!entry) break;
    const std::string name = entry->d_name;
    if (name == "." || name == "..") continue;
    struct stat status{};
    if (::fstatat(::dirfd(open.get()), name.c_str(), &status, 0) == 0) {
      entries.push_back(info_of(name, status));
    } else if (errno != ENOENT) {  // it may have gone meanwhile
      return system_error(errno, "look at " + folder + "/" + name);
    }
  }
  std::ranges::sort(entries, {}, &FileInfo::name);
  return entries;
}

Result<> PosixFileSystem::make_folders(const std::string& path) {
  // Mostly all but the last one are there.
  if (::mkdir(path.c_str(), folder_mode) == 0) return {};
  for (auto slash = path.find('/', 1);; slash = path.find('/', slash + 1)) {
    const auto prefix = path.substr(0, slash);
    if (::mkdir(prefix.c_str(), folder_mode) != 0 && errno != EEXIST) {
      return system_error(errno, "make folder " + prefix);
    }
    if (slash == std::string::npos) break;
  }
  MR_TRY(const auto made, info(path));
  if (!made.is_folder) return Error{Errc::conflict, "make folder " + path + ": it is a file"};
  return {};
}

Result<> PosixFileSystem::rename(const std::string& from, const std::string& to) {
  if (::rename(from.c_str(), to.c_str()) == 0) return {};
  return system_error(errno, "rename " + from + " to " + to);
}

Result<> PosixFileSystem::remove(const std::string& path) {
  if (std::remove(path.c_str()) == 0) return {};
  return system_error(errno, "remove " + path);
}

Result<> PosixFileSystem::remove_tree(const std::string& path) {
  std::error_code failure;
  std::filesystem::remove_all(path, failure);
  if (failure) return system_error(failure.value(), "remove all of " + path);
  return {};
}

Result<> PosixFileSystem::sync_folder(const std::string& folder) {
  MR_TRY(const auto opened, open_file(folder, O_RDONLY | O_DIRECTORY));
  if (::fsync(opened->descriptor()) == 0) return {};
  return system_error(errno, "sync folder " + folder);
}

Result<> PosixFileSystem::sync_all(const std::string& folder) {
  MR_TRY(const auto opened, open_file(folder, O_RDONLY | O_DIRECTORY));
  if (::syncfs(opened->descriptor()) == 0) return {};
  return system_error(errno, "sync the file system of " + folder);
}

Result<std::unique_ptr<FileSystem::Lock>> PosixFileSystem::lock(const std::string& path) {
  MR_TRY(auto file, open_file(path, O_RDWR | O_CREAT));
  // Of the kind that Kafka's is, which it therefore excludes, and which lock_holder() can ask for;
  // but of this open file, not of the process.
  struct flock whole{};
  whole.l_type = F_WRLCK;
  whole.l_whence = SEEK_SET;
  const bool locked = ::fcntl(file->descriptor(), F_OFD_SETLK, &whole) == 0;
  if (!locked && errno != EAGAIN && errno != EACCES) return system_error(errno, "lock " + path);
  if (!locked) {
    MR_TRY(auto holder, lock_holder(path));
    if (holder.empty()) holder = "another process";  // which has let go of it just now
    return Error{Errc::conflict,
                 "lock " + path + ": held by " + holder + "; stop it, or use another folder"};
  }
  const auto pid = std::to_string(::getpid()) + "\n";
  const auto content = as_bytes(pid);
  MR_CHECK(file->truncate(0));
  MR_CHECK(file->write_at(0, std::span(&content, 1)));
  return std::make_unique<FileLock>(std::move(file));
}

Result<SpaceInfo> PosixFileSystem::space(const std::string& path) {
  struct statvfs status{};
  if (::statvfs(path.c_str(), &status) != 0) return system_error(errno, "space of " + path);
  return SpaceInfo{.bytes_total = status.f_blocks * status.f_frsize,
                   .bytes_free = status.f_bavail * status.f_frsize};
}

}  // namespace millrace::kernel
