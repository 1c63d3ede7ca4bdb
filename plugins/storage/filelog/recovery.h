// Opens a partition's folder: finishes what a crash left half done, finds the log's end, checks
// what may not have reached the disk. Blocks on the disk.  [a worker]
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <millrace/environment.h>
#include <millrace/storage.h>

#include "segment.h"

namespace millrace::filelog {

struct RecoveryRequest {
  std::string data_folder;
  TopicPartition partition;
  LogOptions options;
  /// The last stop was clean: everything is on disk.
  bool clean = false;
  /// From the checkpoints; none when they do not know the partition. Then all of it is checked, and
  /// gaps between segments are taken as they are.
  std::optional<Offset> recovery_point;
  std::optional<Offset> log_start;
  Timestamp now;
};

struct RecoveredLog {
  std::vector<std::shared_ptr<Segment>> segments;  ///< at least one; the last is open for appends
  Offset start;
  Offset end;
  Offset durable;          ///< below it everything is on disk; the rest is to be synced soon
  bool created = false;    ///< its folder is new, and not durable yet
  bool as_closed = false;  ///< never written to; or all, indexes too, is as a clean close left it
  Offset checked_from;
  std::uint64_t bytes_cut = 0;
  std::string cut_reason;
};

/// The folder of a new log is not on disk, nor is what stands behind a recovery point and was found
/// sound: it was written before a crash, and nobody has to wait until it is flushed. What had
/// to be cut, or no recovery point was known for, is. Errc::conflict: the folder belongs to another
/// topic of the same name. Errc::corrupt: there is damage with sound
/// batches behind it, in a log of which no recovery point is known.
Result<RecoveredLog> recover(FileSystem& files, const RecoveryRequest& request);

/// The topic's id in partition.metadata; none when there is no such file, or a torn one.
Result<Uuid> read_topic_id(FileSystem& files, const std::string& folder);
/// Makes that file's content durable, where there is one.
Result<> sync_topic_id(FileSystem& files, const std::string& folder);

}  // namespace millrace::filelog
