// Looks for what a disk has spoilt: reads a log file as it stands, batch by batch, and compares
// checksums. What was not in memory before is not afterwards.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <millrace/environment.h>
#include <millrace/result.h>
#include <millrace/types.h>

namespace millrace::kernel {

/// Bytes of a log file that are no sound batch.
struct CorruptBatch {
  std::uint64_t position = 0;
  std::uint64_t end = 0;
  /// As its own head says, which may be wrong too; none where there is no head.
  Offset from;
  Offset to;
  std::string what;
};

struct ScrubStep {
  std::uint64_t next = 0;   ///< where to go on; the end when all is done
  std::uint64_t bytes = 0;  ///< that were looked at
  std::vector<CorruptBatch> corrupt;
};

/// Looks at the entries of `file` from `position`, where one begins, until about `bytes_max` are
/// read, or `end`. Where an entry is no entry at all, nobody knows where the next one begins: the
/// rest counts as corrupt. An error is of the disk.  [a worker]
Result<ScrubStep> scrub_step(const File& file, std::uint64_t position, std::uint64_t end,
                             std::uint64_t bytes_max);

}  // namespace millrace::kernel
