#include "space_guard.h"

#include <algorithm>

#include <millrace/filelog/text.h>

namespace millrace::filelog {

namespace {

// Others write to the disk too: the system is asked again after so much at the latest.
constexpr std::uint64_t look_bytes_max = 16UL << 20;
constexpr std::uint64_t small_disk_part = 64;

}  // namespace

Result<> SpaceGuard::admit(std::uint64_t bytes) {
  const auto wanted = static_cast<std::int64_t>(bytes);
  if (admitted_ahead_.fetch_sub(wanted, std::memory_order_relaxed) >= wanted) return {};
  return look(bytes);
}

// Several shards may look at once; each takes what it sees for the truth, and the worst that comes
// of it is a part of the reserve.
Result<> SpaceGuard::look(std::uint64_t bytes) {
  const auto space = files_.space(folder_);
  if (!space) return {};  // then the write itself will tell
  const auto reserve = std::min(reserve_bytes_, space->bytes_total / small_disk_part);
  if (space->bytes_free < reserve || space->bytes_free - reserve < bytes) {
    admitted_ahead_.store(0, std::memory_order_relaxed);
    full_.store(true, std::memory_order_relaxed);
    doomed_.hurry();
    return Error{Errc::io, say(folder_, ": the disk is full: ", space->bytes_free,
                               " bytes are free, ", reserve,
                               " of them are kept for what goes on (storage.reserve_bytes); remove "
                               "topics, lower retention or add space, and writing resumes")};
  }
  full_.store(false, std::memory_order_relaxed);
  const auto ahead = std::min((space->bytes_free - reserve - bytes) / 2, look_bytes_max);
  admitted_ahead_.store(static_cast<std::int64_t>(ahead), std::memory_order_relaxed);
  return {};
}

}  // namespace millrace::filelog
