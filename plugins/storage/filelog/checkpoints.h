// The offsets that a data directory keeps for its partitions, one text file a kind, in Kafka's
// format: "0", the number of lines, then "topic partition offset" lines.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <millrace/environment.h>
#include <millrace/filelog/checkpoint_text.h>
#include <millrace/storage.h>

namespace millrace::filelog {

/// All kinds. A change is on disk when a call returns.  [any thread; may block on the disk]
class Checkpoints {
  static constexpr std::size_t kinds = 4;

 public:
  Checkpoints(FileSystem& files, std::string data_folder)
      : files_(files), folder_(std::move(data_folder)) {}

  /// Reads the files. One that is missing or unreadable counts as empty, for then everything is
  /// checked; `unreadable` names it.
  Result<> load(std::vector<Error>& unreadable);
  std::optional<Offset> find(CheckpointKind kind, const TopicPartition& partition);
  std::vector<PartitionOffset> all(CheckpointKind kind);
  /// Replaces the offsets of those partitions by what `claimable` makes of them; it is asked while
  /// no other change can come between.
  using Claimable = std::function<Offset(const PartitionOffset& wanted)>;
  Result<> put(CheckpointKind kind, const std::vector<PartitionOffset>& offsets,
               const Claimable& claimable);
  /// As put(), for one that is claimed whatever it is; it is on disk once store() has been called
  /// with the number that is returned. What is noted meanwhile costs no write of its own.
  std::uint64_t note(CheckpointKind kind, const PartitionOffset& offset);
  Result<> store(CheckpointKind kind, std::uint64_t change);
  /// Lowers a recovery point that is beyond `offset`.
  Result<> lower_recovery_point(const TopicPartition& partition, Offset offset);
  /// Raises one that is below `offset`.
  Result<> raise_recovery_point(const TopicPartition& partition, Offset offset);
  /// Drops the partition from all kinds; on disk once store() has been called with what is
  /// returned.
  using Changes = std::array<std::uint64_t, kinds>;
  Changes note_forgotten(const TopicPartition& partition);
  Result<> store(const Changes& changes);

 private:
  struct Kept {
    std::map<TopicPartition, Offset> offsets;
    std::uint64_t changes = 0;
    std::uint64_t stored = 0;  ///< so many of the changes are in the file
    std::mutex writing;        ///< taken before mutex_
  };

  std::string path_of(CheckpointKind kind) const;
  Kept& of(CheckpointKind kind) { return kept_[static_cast<std::size_t>(kind)]; }

  FileSystem& files_;
  const std::string folder_;
  std::mutex mutex_;
  std::array<Kept, kinds> kept_;
};

}  // namespace millrace::filelog
