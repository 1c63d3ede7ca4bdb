#include "kernel/env/lock_holder.h"

#include <fcntl.h>

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
  struct flock whole{};
  whole.l_type = F_WRLCK;
  whole.l_whence = SEEK_SET;
  if (::fcntl(descriptor, F_OFD_GETLK, &whole) != 0) {
    return system_error(errno, "look at the lock of " + path);
  }
  if (whole.l_type == F_UNLCK) return std::string();
  // Java's is of a process; ours is of an open file, and its holder is named in it.
  return process(whole.l_pid > 0 ? whole.l_pid : id_named_in(file));
}

}  // namespace millrace::kernel
