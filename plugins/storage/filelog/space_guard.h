// Keeps the last bytes of a disk free of records, for what must go on when it is full: checkpoints,
// indexes, metadata, and the deletions that make room.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include <millrace/environment.h>

#include "doomed_files.h"

namespace millrace::filelog {

/// [any thread]
class SpaceGuard {
 public:
  /// Of a small disk, a part of it is kept instead of `reserve_bytes`.
  /// Of `doomed`, which outlives this, nothing waits while the disk is full.
  SpaceGuard(FileSystem& files, std::string folder, std::uint64_t reserve_bytes,
             DoomedFiles& doomed)
      : files_(files), folder_(std::move(folder)), reserve_bytes_(reserve_bytes), doomed_(doomed) {}

  /// Errc::io when so many bytes more would use what is kept. Asks the system now and then; each
  /// time while the disk is full.
  Result<> admit(std::uint64_t bytes);
  /// The last append was refused.
  bool full() const noexcept { return full_.load(std::memory_order_relaxed); }

 private:
  Result<> look(std::uint64_t bytes);

  FileSystem& files_;
  const std::string folder_;
  const std::uint64_t reserve_bytes_;
  DoomedFiles& doomed_;
  std::atomic<std::int64_t> admitted_ahead_{0};  // bytes until the next look
  std::atomic<bool> full_{false};
};

}  // namespace millrace::filelog
