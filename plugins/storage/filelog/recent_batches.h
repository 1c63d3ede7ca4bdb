// The newest batches of a log, kept in memory for those who read each one as it comes: they cost
// no look into the file, and leave with the head of their answer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <optional>
#include <span>
#include <vector>

#include <millrace/storage.h>

namespace millrace::filelog {

class RecentBatches;

/// What all logs of a shard keep together: beyond its bound the log that was not appended to for
/// the longest time lets go of all it has. So logs at rest hold nothing for long where others are
/// busy, and no more than the bound otherwise.  [that shard]
class RecentMemory {
 public:
  static constexpr std::size_t default_bytes_max = 256 << 10;

  explicit RecentMemory(std::size_t bytes_max = default_bytes_max) : bytes_max_(bytes_max) {}
  RecentMemory(const RecentMemory&) = delete;
  RecentMemory& operator=(const RecentMemory&) = delete;

  std::size_t bytes() const noexcept { return bytes_; }

 private:
  friend class RecentBatches;
  const std::size_t bytes_max_;
  std::size_t bytes_ = 0;
  std::list<RecentBatches*> longest_ago_first_;  // those who keep something
};

/// Keeps copies, since a slice would hold the whole block that a request came in, and small batches
/// only: the bytes of large ones go from file to network without passing through the process. And
/// only while somebody reads them.  [its shard]
class RecentBatches {
 public:
  static constexpr std::size_t batch_bytes_max = 4 << 10;
  static constexpr std::size_t bytes_max = 16 << 10;
  /// After so many appends that nobody has read it keeps none any more.
  static constexpr unsigned unread_max = 64;

  explicit RecentBatches(RecentMemory& memory) : memory_(memory) {}
  ~RecentBatches() { clear(); }
  RecentBatches(const RecentBatches&) = delete;
  RecentBatches& operator=(const RecentBatches&) = delete;

  /// Somebody has read up to the log's end, and most likely waits there.
  void wanted() noexcept { unread_ = 0; }
  /// What was appended where the log ended at `from`.
  void add(Offset from, std::span<const BatchParts> batches);
  /// As PartitionLog::read(), of a request whose start is in the log; none where it begins before
  /// what is here, or behind it.
  std::optional<Payload> read(const ReadRequest& request) const;
  /// The log has changed in another way than by an append.
  void clear() noexcept;

 private:
  struct Batch {
    Offset from;  // the log's end before it
    Offset base;
    Offset last;
    Buffer bytes;
  };

  bool take(Offset from, const BatchParts& parts);
  void drop_oldest() noexcept;

  RecentMemory& memory_;
  std::vector<Batch> batches_;  // one behind the other, without anything in between
  std::size_t bytes_ = 0;
  unsigned unread_ = unread_max;
  std::list<RecentBatches*>::iterator place_;  // while there are batches
};

}  // namespace millrace::filelog
