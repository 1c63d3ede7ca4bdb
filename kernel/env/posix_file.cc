#include "kernel/env/posix_file.h"

#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>

#include "kernel/env/system_error.h"

namespace millrace::kernel {
namespace {

constexpr std::size_t parts_per_call_max = 64;
// The system reads ahead, and so forgets, in pieces of about this size.
constexpr std::uint64_t probe_distance_bytes = 128 << 10;
constexpr std::uint64_t probes_max = 16;

std::string at_byte(std::uint64_t position) { return " at byte " + std::to_string(position); }

// cachestat(2), which the headers of Debian 12 do not have yet.
constexpr long cachestat_call = 451;
struct CachedRange {
  std::uint64_t position;
  std::uint64_t bytes;
};
struct CachedPages {
  std::uint64_t in_memory;
  std::uint64_t others[4];  // dirty, in writeback, evicted, recently evicted
};

std::optional<std::uint64_t> pages_in_memory(int descriptor, std::uint64_t position,
                                             std::uint64_t bytes) noexcept {
  const CachedRange range{position, bytes};
  CachedPages pages{};
  if (::syscall(cachestat_call, descriptor, &range, &pages, 0) != 0) return std::nullopt;
  return pages.in_memory;
}

// What is left of a gathered write.
class Unwritten {
 public:
  explicit Unwritten(std::span<const Bytes> parts) : parts_(parts) { skip_empty(); }

  bool empty() const { return parts_.empty(); }
  int gather(std::span<iovec> into) const {
    const auto count = std::min(parts_.size(), into.size());
    for (std::size_t i = 0; i < count; ++i) {
      const auto skip = i == 0 ? taken_ : 0;
      into[i] = {const_cast<std::byte*>(parts_[i].data()) + skip, parts_[i].size() - skip};
    }
    return static_cast<int>(count);
  }
  void written(std::size_t bytes) {
    taken_ += bytes;
    skip_empty();
  }

 private:
  void skip_empty() {
    while (!parts_.empty() && taken_ >= parts_.front().size()) {
      taken_ -= parts_.front().size();
      parts_ = parts_.subspan(1);
    }
  }

  std::span<const Bytes> parts_;
  std::size_t taken_ = 0;  // bytes of the first part
};

}  // namespace

PosixFile::~PosixFile() { ::close(descriptor_); }

Result<std::size_t> PosixFile::read_at(std::uint64_t position, MutableBytes into) const {
  std::size_t filled = 0;
  while (filled < into.size()) {
    const auto bytes = ::pread(descriptor_, into.data() + filled, into.size() - filled,
                               static_cast<off_t>(position + filled));
    if (bytes == 0) break;
    if (bytes > 0) {
      filled += static_cast<std::size_t>(bytes);
    } else if (errno != EINTR) {
      return system_error(errno, "read " + path_ + at_byte(position + filled));
    }
  }
  return filled;
}

Result<> PosixFile::write_at(std::uint64_t position, std::span<const Bytes> parts) {
  Unwritten unwritten(parts);
  auto at = position;
  while (!unwritten.empty()) {
    std::array<iovec, parts_per_call_max> vectors;
    const int count = unwritten.gather(vectors);
    const auto bytes = ::pwritev(descriptor_, vectors.data(), count, static_cast<off_t>(at));
    if (bytes >= 0) {
      at += static_cast<std::uint64_t>(bytes);
      unwritten.written(static_cast<std::size_t>(bytes));
    } else if (errno != EINTR) {
      return system_error(errno, "write " + path_ + at_byte(at) + " (what lies behind byte " +
                                     std::to_string(position) + " is unknown now)");
    }
  }
  return {};
}

Result<> PosixFile::truncate(std::uint64_t size) {
  if (::ftruncate(descriptor_, static_cast<off_t>(size)) == 0) return {};
  return system_error(errno, "cut " + path_ + at_byte(size));
}

Result<> PosixFile::sync() {
  if (::fdatasync(descriptor_) == 0) return {};
  return system_error(errno, "sync " + path_);
}

Result<std::uint64_t> PosixFile::size() const {
  struct stat status{};
  if (::fstat(descriptor_, &status) != 0) return system_error(errno, "size of " + path_);
  return static_cast<std::uint64_t>(status.st_size);
}

bool PosixFile::resident(std::uint64_t position, std::uint64_t bytes) const noexcept {
  if (bytes == 0) return true;
  const auto last = position + bytes - 1;
  if (const auto pages = pages_in_memory(descriptor_, position, bytes)) {
    static const auto page_bytes = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
    return *pages > last / page_bytes - position / page_bytes;
  }
  const auto distance = std::max(probe_distance_bytes, bytes / probes_max);
  for (auto at = position; at < last; at += distance) {
    if (!byte_is_resident(at)) return false;
  }
  return byte_is_resident(last);
}

// Where the system cannot tell (EOPNOTSUPP), the answer is no: asking a worker is slower, waiting
// on a shard is worse.
bool PosixFile::byte_is_resident(std::uint64_t position) const noexcept {
  std::byte probe{};
  const iovec vector{&probe, 1};
  return ::preadv2(descriptor_, &vector, 1, static_cast<off_t>(position), RWF_NOWAIT) >= 0;
}

}  // namespace millrace::kernel
