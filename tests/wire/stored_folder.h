// A partition's folder, opened by the storage plugin as it is shipped.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>

#include <millrace/result.h>
#include <millrace/types.h>

namespace millrace::wire {

struct StoredBatch {
  Offset base;
  Offset last;
  std::uint64_t position = 0;  ///< in all of the folder's log files, one behind the other
  std::uint64_t bytes = 0;
  std::int8_t magic = 2;
};

/// Copies the folder to a simulated disk, opens it after what was a clean stop, reads it whole and
/// from each of `batches`, and closes it; its indexes must then be as they were, for they were
/// good. What is kept beside the log (producers, epochs, aborted transactions) must be understood
/// and written back to the same bytes. `batches` are in the order of the log.
Result<> check_stored_folder(const std::filesystem::path& folder,
                             std::span<const StoredBatch> batches);

}  // namespace millrace::wire
