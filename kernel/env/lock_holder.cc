#include "kernel/env/lock_holder.h"

#include <fcntl.h>
#include <sys/file.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <span>

#include "kernel/env/posix_file.h"
#include "kernel/env/system_error.h"

namespace millrace::kernel {

namespace {

std::string process(long id) {
  return id > 0 ? "process " + std::to_string(id) : "another process";
}

// What FileSystem::lock has written into it.
long id_named_in(const File& file) {
  std::array<char, 32> text{};
  const auto bytes = file.read_at(0, std::as_writable_bytes(std::span(text)));
  long id = 0;
  if (bytes) std::from_chars(text.data(), text.data() + *bytes, id);
  return id;
}

}  // namespace

Result<std::string> lock_holder(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0 && errno == ENOENT) return std::string();
  if (descriptor < 0) return system_error(errno, "open " + path);
  const PosixFile file(descriptor, path);
  // Java's locks are of another kind than ours.
  struct flock java{};
  java.l_type = F_RDLCK;
  java.l_whence = SEEK_SET;
  if (::fcntl(descriptor, F_GETLK, &java) == 0 && java.l_type != F_UNLCK) {
    return process(java.l_pid);
  }
  if (::flock(descriptor, LOCK_SH | LOCK_NB) == 0) return std::string();
  if (errno != EWOULDBLOCK) return system_error(errno, "look at the lock of " + path);
  return process(id_named_in(file));
}

}  // namespace millrace::kernel
