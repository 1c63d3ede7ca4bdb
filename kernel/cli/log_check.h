// What is wrong with a partition's files: batches, indexes, and what stands beside them.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <millrace/environment.h>

#include "kernel/cli/log_place.h"
#include "kernel/cli/log_walk.h"

namespace millrace::kernel::cli {

enum class FindingKind {
  torn,     ///< the end of the last segment is no batch: what a crash leaves
  damaged,  ///< bytes that are no batch with sound ones behind them, or offsets that are gone
  index,    ///< an index that does not fit to its log
  beside,   ///< a file beside the log that cannot be read, or claims what is not there
  note,     ///< nothing wrong, but good to know
};
std::string_view name_of(FindingKind kind) noexcept;

struct Finding {
  FindingKind kind = FindingKind::note;
  std::string file;  ///< path
  std::uint64_t position = 0;
  std::uint64_t bytes = 0;
  /// Those that are lost; none: -1, or not known.
  Offset from;
  Offset to;
  std::string what;
};

/// A region of a segment that is no batch, with the segment it is in.
struct SegmentRegion {
  std::size_t segment = 0;  ///< among the folder's
  BadRegion region;
};

struct PartitionReport {
  std::string name;
  std::string path;
  std::size_t segments = 0;
  std::uint64_t batches = 0;
  std::uint64_t bytes = 0;
  Offset start;
  Offset end;  ///< behind the last sound batch
  bool being_written = false;
  std::vector<Finding> findings;
  std::vector<SegmentRegion> regions;  ///< torn or damaged, by position

  /// Of the findings; note: nothing is wrong.
  FindingKind worst() const noexcept;
};

/// Tells how many bytes were read since the last call.
using ReadProgress = std::function<void(std::uint64_t bytes)>;

/// Reads all of it. Errors are those of the disk, not of what stands there.
/// [any thread; blocks on the disk]
Result<PartitionReport> check_partition(FileSystem& files, const DataDirectory& directory,
                                        const PartitionFolder& folder,
                                        const ReadProgress& progress);

}  // namespace millrace::kernel::cli
