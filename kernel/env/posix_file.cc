#include "kernel/env/posix_file.h"

#include <fcntl.h>
#include <sys/mman.h>
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
constexpr std::size_t pages_per_look = 4096;
// The system reads ahead, and so forgets, in pieces of about this size.
constexpr std::uint64_t probe_distance_bytes = 128 << 10;
constexpr std::uint64_t probes_max = 16;

std::string at_byte(std::uint64_t position) { return " at byte " + std::to_string(position); }

// More than the system takes at once, however far it may read ahead.
constexpr std::uint64_t ask_for_bytes = 128 << 10;
// No further does the system read ahead of who reads on: two windows, each of twice what is set for
// the disk, which is 128 KiB for most and 8 MiB for some.
constexpr std::uint64_t ahead_bytes_max = 32 << 20;

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

std::uint64_t page_bytes() noexcept {
  static const auto bytes = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  return bytes;
}

bool byte_is_there(int descriptor, std::uint64_t position) noexcept {
  std::byte byte{};
  const iovec vector{&byte, 1};
  return ::preadv2(descriptor, &vector, 1, static_cast<off_t>(position), RWF_NOWAIT) >= 0;
}

// Which of the pages from there on are whole in memory: mincore(2) tells of what is mapped. Nothing
// is touched there. False where that is not permitted.
bool look_at_pages(int descriptor, std::uint64_t position,
                   std::span<unsigned char> pages) noexcept {
  const auto bytes = pages.size() * page_bytes();
  void* seen =
      ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, descriptor, static_cast<off_t>(position));
  if (seen == MAP_FAILED) return false;
  const bool told = ::mincore(seen, bytes, pages.data()) == 0;
  ::munmap(seen, bytes);
  return told;
}

// A look at a few of the pages: a fifth of what it takes to look at each.
bool some_are_there(int descriptor, std::uint64_t position, std::uint64_t last) noexcept {
  const auto distance = std::max(probe_distance_bytes, (last - position) / probes_max);
  for (auto at = position; at < last; at += distance) {
    if (!byte_is_there(descriptor, at)) return false;
  }
  return byte_is_there(descriptor, last);
}

// Whether no page of it is missing or still on its way.
bool whole_in_memory(int descriptor, std::uint64_t position, std::uint64_t last) noexcept {
  std::array<unsigned char, pages_per_look> pages;
  const auto page = page_bytes();
  for (auto from = position / page * page; from <= last; from += pages.size() * page) {
    const auto count = std::min<std::uint64_t>(pages.size(), (last - from) / page + 1);
    const auto seen = std::span(pages).first(count);
    const bool told = look_at_pages(descriptor, from, seen);
    for (std::size_t at = 0; at < count; ++at) {
      const bool there = told ? (seen[at] & 1) != 0 : byte_is_there(descriptor, from + at * page);
      if (!there) return false;
    }
  }
  return true;
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

PosixFile::~PosixFile() {
  ::close(descriptor_);
  if (const int reader = reader_.load(); reader >= 0) ::close(reader);
}

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
  bool there = !pages || *pages > last / page_bytes() - position / page_bytes();
  if (was_cold_.load(std::memory_order_relaxed)) {
    there = there && whole_in_memory(descriptor_, position, last);
  } else if (!pages) {
    there = some_are_there(descriptor_, position, last);
  }
  if (!there) turn_cold();
  return there;
}

// Else whoever reads what is in memory, a shard, has the system fetch what follows, and waits where
// the disk is busy: who reads on is known better by who brings in.
void PosixFile::turn_cold() const noexcept {
  if (was_cold_.exchange(true, std::memory_order_relaxed)) return;
  ::posix_fadvise(descriptor_, 0, 0, POSIX_FADV_RANDOM);
}

// All of it at once, so that the disk has as much to do as it can.
void PosixFile::ask_for(std::uint64_t position, std::uint64_t bytes) const noexcept {
  for (std::uint64_t asked = 0; asked < bytes; asked += ask_for_bytes) {
    const auto some = static_cast<off_t>(std::min(ask_for_bytes, bytes - asked));
    ::posix_fadvise(descriptor_, static_cast<off_t>(position + asked), some, POSIX_FADV_WILLNEED);
  }
}

Result<> PosixFile::pass(int descriptor, std::uint64_t position, std::uint64_t bytes) const {
  auto at = static_cast<off_t>(position);
  const auto end = static_cast<off_t>(position + bytes);
  while (at < end) {
    const auto passed = ::sendfile(nowhere(), descriptor, &at, static_cast<std::size_t>(end - at));
    if (passed > 0 || (passed < 0 && errno == EINTR)) continue;
    const auto here = static_cast<std::uint64_t>(at);
    if (passed < 0) return system_error(errno, "read " + path_ + at_byte(here));
    return Error{Errc::out_of_range, path_ + ": ends" + at_byte(here) + ", where " +
                                         std::to_string(end - at) + " more are expected"};
  }
  return {};
}

Result<> PosixFile::bring_in(std::uint64_t position, std::uint64_t bytes) const {
  turn_cold();
  ask_for(position, bytes);
  return pass(descriptor_, position, bytes);
}

// Where nobody has read up to, the system would begin with little; from there it goes on by itself.
Result<std::uint64_t> PosixFile::read_on(std::uint64_t position, std::uint64_t bytes) const {
  turn_cold();
  const int from = reader();
  const auto end = position + bytes;
  const auto read_to = read_to_.load();
  const bool goes_on = position <= read_to && read_to - position <= ahead_bytes_max;
  read_to_ = goes_on ? std::max(read_to, end) : end;
  const auto before = pages_in_memory(descriptor_, position, bytes + ahead_bytes_max);
  if (from < 0 || !goes_on) ask_for(position, bytes);
  MR_CHECK(pass(from < 0 ? descriptor_ : from, position, bytes));
  const auto after = pages_in_memory(descriptor_, position, bytes + ahead_bytes_max);
  return before && after && *after <= *before ? end : end + ahead_bytes_max;
}

// The same file, whatever its name is by now.
int PosixFile::reader() const noexcept {
  int known = reader_.load();
  if (known >= 0) return known;
  const auto link = "/proc/self/fd/" + std::to_string(descriptor_);
  const int opened = ::open(link.c_str(), O_RDONLY | O_CLOEXEC);
  if (opened < 0) return -1;  // it goes without, if more slowly
  ::posix_fadvise(opened, 0, 0, POSIX_FADV_SEQUENTIAL);
  if (reader_.compare_exchange_strong(known, opened)) return opened;
  ::close(opened);
  return known;
}

void PosixFile::forget(std::uint64_t position, std::uint64_t bytes) const noexcept {
  ::posix_fadvise(descriptor_, static_cast<off_t>(position), static_cast<off_t>(bytes),
                  POSIX_FADV_DONTNEED);
}

}  // namespace millrace::kernel
