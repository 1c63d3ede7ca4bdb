#include "kernel/partition/scrub.h"

#include <algorithm>

#include <millrace/cached_file.h>
#include <millrace/filelog/entry.h>

namespace millrace::kernel {

namespace {

// Whole pages, whatever a page is.
constexpr std::uint64_t window_bytes = 128 << 10;

// Brings windows of a file into memory, one behind the other, and lets those go that were not there
// before: others need the memory more.
class Windows {
 public:
  Windows(const File& file, std::uint64_t from, std::uint64_t end)
      : file_(file), cached_(CachedFile::of(file)), end_(end), next_(from - from % window_bytes) {}
  ~Windows() { forget(end_); }
  Windows(const Windows&) = delete;
  Windows& operator=(const Windows&) = delete;

  /// All below `to` is in memory.
  Result<> reach(std::uint64_t to) {
    for (to = std::min(to, end_); cached_ && next_ < to; next_ += window_bytes) {
      const auto bytes = std::min(window_bytes, end_ - next_);
      if (file_.resident(next_, bytes)) continue;
      cold_.push_back(next_);
      MR_CHECK(cached_->bring_in(next_, bytes));
    }
    return {};
  }
  /// Nothing below `done` is needed any more.
  void forget(std::uint64_t done) {
    std::erase_if(cold_, [&](std::uint64_t at) {
      const auto bytes = std::min(window_bytes, end_ - at);
      if (at + bytes > done) return false;
      cached_->forget(at, bytes);
      return true;
    });
  }

 private:
  const File& file_;
  const CachedFile* cached_;
  const std::uint64_t end_;
  std::uint64_t next_;
  std::vector<std::uint64_t> cold_;
};

bool is_of_the_bytes(const Error& error) {
  return error.code == Errc::corrupt || error.code == Errc::out_of_range;
}

struct Looked {
  filelog::Entry entry;
  Result<> sum;
};

// An error is of the disk, or says that the bytes there are no entry.
Result<Looked> look_at_next(const File& file, Windows& windows, filelog::EntryScanner& scanner,
                            std::uint64_t position) {
  MR_CHECK(windows.reach(position + window_bytes));  // whatever the scanner reads of heads
  MR_TRY(const auto entry, scanner.next());
  if (!entry) return Error{Errc::corrupt, file.path() + " ends before its segment does"};
  MR_CHECK(windows.reach(entry->end()));
  auto sum = filelog::check_crc(file, *entry);
  if (!sum && sum.error().code != Errc::corrupt) return sum.error();
  return Looked{*entry, std::move(sum)};
}

}  // namespace

Result<ScrubStep> scrub_step(const File& file, std::uint64_t position, std::uint64_t end,
                             std::uint64_t bytes_max) {
  ScrubStep step{.next = position};
  const auto stop = position + bytes_max;
  Windows windows(file, position, end);
  filelog::EntryScanner scanner(file, position, end);
  while (step.next < std::min(stop, end)) {
    const auto found = look_at_next(file, windows, scanner, step.next);
    if (!found && !is_of_the_bytes(found.error())) return found.error();
    if (!found) {
      step.corrupt.push_back(
          {.position = step.next, .end = end, .from = {}, .to = {}, .what = found.error().detail});
      step.next = end;
      break;
    }
    if (!found->sum) {
      step.corrupt.push_back({.position = step.next,
                              .end = found->entry.end(),
                              .from = found->entry.base,
                              .to = found->entry.last,
                              .what = found->sum.error().detail});
    }
    step.next = found->entry.end();
    windows.forget(step.next);
  }
  step.bytes = step.next - position;
  return step;
}

}  // namespace millrace::kernel
