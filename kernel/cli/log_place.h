// Partitions as they lie on a disk, whether a broker runs or not.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <millrace/environment.h>
#include <millrace/storage.h>

namespace millrace::kernel::cli {

/// One `N.log`; its indexes have the same name with other ends.
struct SegmentFile {
  Offset base;
  Offset next;  ///< the next segment's base; none for the last one
  std::uint64_t bytes = 0;
};

struct PartitionFolder {
  std::string path;
  std::string name;                         ///< "orders-3"
  std::optional<TopicPartition> partition;  ///< none: the folder is called otherwise
  std::vector<FileInfo> files;
  std::vector<SegmentFile> segments;  ///< by offset
  /// Called as a segment is, without one sound batch, within the offsets of the segment before: no
  /// part of the log.
  std::vector<SegmentFile> strangers;

  std::string path_of(const SegmentFile& segment, std::string_view suffix) const;
};

/// A checkpoint file that cannot be read, and why.
struct UnreadableFile {
  std::string path;
  std::string detail;
};

/// A data directory, or the folder that holds a partition's.
struct DataDirectory {
  std::string path;
  bool marked = false;  ///< it has a lock file or an owner: a broker has used it
  std::string holder;   ///< who has it open now; empty: nobody
  /// By CheckpointKind.
  std::array<std::map<TopicPartition, Offset>, 4> checkpoints;
  std::vector<UnreadableFile> unreadable;  ///< of its checkpoint files

  std::optional<Offset> checkpointed(CheckpointKind kind,
                                     const std::optional<TopicPartition>& partition) const;
};

/// What somebody has named: some or all partitions of a data directory.
struct LogPlace {
  DataDirectory directory;
  std::vector<std::string> folders;  ///< paths
};

/// Sorts out paths of data directories and of partition folders. Errc::not_found or
/// Errc::invalid_argument says which is neither.
Result<std::vector<LogPlace>> find_places(FileSystem& files, const std::vector<std::string>& paths);

/// Reads as much of the segments as tells which are strangers: of sound ones the first batch.
/// Errc::not_found when the folder is gone.
Result<PartitionFolder> look_at_folder(FileSystem& files, const std::string& path);

}  // namespace millrace::kernel::cli
