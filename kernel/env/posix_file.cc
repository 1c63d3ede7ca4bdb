#include "kernel/env/posix_file.h"

#include <fcntl.h>
#include <sys/sendfile.h>
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

// More than the system takes at once, however far it may read ahead.
constexpr std::uint64_t ask_for_bytes = 128 << 10;

// Where bytes go that are only to be in memory: pages pass without being copied.
int nowhere() noexcept {
  static const int descriptor = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
  return descriptor;
}

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
  const auto pages = pages_in_memory(descriptor_, position, bytes);
  static const auto page_bytes = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  const bool all = pages && *pages > last / page_bytes - position / page_bytes;
  if (all && !was_cold_.load(std::memory_order_relaxed)) return true;
  if ((all || !pages) && probe(position, last)) return true;
  if (!was_cold_.exchange(true, std::memory_order_relaxed)) read_no_further();
  return false;
}

bool PosixFile::probe(std::uint64_t position, std::uint64_t last) const noexcept {
  const auto distance = std::max(probe_distance_bytes, (last - position) / probes_max);
  for (auto at = position; at < last; at += distance) {
    if (!byte_is_resident(at)) return false;
  }
  return byte_is_resident(last);
}

// Else whoever reads what is in memory, a shard, has the system fetch what follows, and waits where
// the disk is busy: who reads on is known better by who brings in.
void PosixFile::read_no_further() const noexcept {
  ::posix_fadvise(descriptor_, 0, 0, POSIX_FADV_RANDOM);
}

// First all of it is asked for, so that the disk has as much to do as it can; then it is waited
// for.
Result<> PosixFile::bring_in(std::uint64_t position, std::uint64_t bytes) const {
  if (!was_cold_.exchange(true, std::memory_order_relaxed)) read_no_further();
  for (std::uint64_t asked = 0; asked < bytes; asked += ask_for_bytes) {
    const auto some = static_cast<off_t>(std::min(ask_for_bytes, bytes - asked));
    ::posix_fadvise(descriptor_, static_cast<off_t>(position + asked), some, POSIX_FADV_WILLNEED);
  }
  auto at = static_cast<off_t>(position);
  const auto end = static_cast<off_t>(position + bytes);
  while (at < end) {
    const auto passed = ::sendfile(nowhere(), descriptor_, &at, static_cast<std::size_t>(end - at));
    if (passed > 0 || (passed < 0 && errno == EINTR)) continue;
    const auto here = static_cast<std::uint64_t>(at);
    if (passed < 0) return system_error(errno, "read " + path_ + at_byte(here));
    return Error{Errc::out_of_range, path_ + ": ends" + at_byte(here) + ", where " +
                                         std::to_string(end - at) + " more are expected"};
  }
  return {};
}

void PosixFile::forget(std::uint64_t position, std::uint64_t bytes) const noexcept {
  ::posix_fadvise(descriptor_, static_cast<off_t>(position), static_cast<off_t>(bytes),
                  POSIX_FADV_DONTNEED);
}

// Where the system cannot tell (EOPNOTSUPP), the answer is no: asking a worker is slower, waiting
// on a shard is worse.
bool PosixFile::byte_is_resident(std::uint64_t position) const noexcept {
  std::byte probe{};
  const iovec vector{&probe, 1};
  return ::preadv2(descriptor_, &vector, 1, static_cast<off_t>(position), RWF_NOWAIT) >= 0;
}

}  // namespace millrace::kernel
