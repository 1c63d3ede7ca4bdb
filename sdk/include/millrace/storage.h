// Keeps the logs of partitions. The kernel decides offsets, retention and what compaction keeps;
// the backend owns files. `storage/memory` is the reference semantics; both it and `filelog` pass
// testing/storage_contract.h.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include <millrace/batch.h>
#include <millrace/payload.h>
#include <millrace/task.h>
#include <millrace/types.h>

namespace millrace {

/// The subset of a topic's settings that a log needs; Kafka's names and units.
struct LogOptions {
  std::uint64_t segment_bytes = 1'073'741'824;            // segment.bytes
  Duration segment_age = std::chrono::hours(168);         // segment.ms
  std::uint64_t index_interval_bytes = 4096;              // index.interval.bytes
  std::uint64_t segment_index_bytes = 10'485'760;         // segment.index.bytes
  Duration file_delete_delay = std::chrono::seconds(60);  // file.delete.delay.ms
  bool preallocate = false;                               // preallocate
  Uuid topic_id{};
};

/// Batches to append, offsets and leader epoch already assigned in the header. Header and body are
/// contiguous on disk: header bytes, then body bytes.
struct BatchParts {
  Buffer header;  ///< batch_header_bytes, made fresh by the kernel; none for a message set V0 or V1
  Buffer body;    ///< a slice of the request's buffer; or a whole message set, offsets in it
  Offset base_offset;
  Offset last_offset;
  Timestamp max_timestamp;
};

/// Names the order of an append; rising.
enum class Ticket : std::uint64_t {};

struct LogBounds {
  Offset start;           ///< first offset kept
  Offset end;             ///< the next offset to be written
  Offset recovery_point;  ///< everything below is on stable storage
  std::uint64_t bytes = 0;
};

struct SegmentInfo {
  Offset base;
  Offset next;  ///< base of the next segment, or the log's end
  std::uint64_t bytes = 0;
  Timestamp max_timestamp;  ///< none when empty or unknown
  Timestamp modified;
  bool active = false;
};

struct ReadRequest {
  Offset from;
  Offset limit;  ///< batches that start at or beyond it are not read
  std::uint64_t bytes_max = 0;
  bool at_least_one = true;  ///< the first batch is read even when it is larger than bytes_max
};

/// Where a lookup by time ends: the batch that may hold the first record at or after the time.
struct BatchPosition {
  Offset base_offset;  ///< none: every record is older
};

/// What is kept beside a log, each at an offset: of snapshots the newest few; of leader epochs one
/// text, wherever it is put; of aborted transactions one file for each segment, at its base, which
/// goes with the segment.
enum class AuxKind { producer_snapshot, leader_epochs, aggregate_snapshot, aborted_transactions };

struct AuxEntry {
  Offset at;
  Buffer value;
};

/// A run of segments that is written anew without some of its records: what compaction leaves. It
/// becomes one segment, an empty one if nothing is appended, with the first one's base, the last
/// one's `next`, and the newest of their `modified` (until the log is opened again). Destroyed
/// without a commit it has changed nothing, and what it wrote goes. Let go of it before its log is
/// closed: a log that is closed under it cannot be opened or removed while it lives.
class LogRewrite {
 public:
  virtual ~LogRewrite() = default;
  /// Whole batches, offsets rising, within the range, gaps allowed. May block: on a worker, one
  /// call at a time. Errc::out_of_range: such offsets do not belong here. Errc::too_large: one
  /// segment does not hold so much (2^31-1 bytes). After an error (disk full) drop the rewrite; the
  /// log is as it was.  [a worker]
  virtual Result<> append(std::span<const BatchParts> batches) = 0;
  /// What was appended.
  virtual std::uint64_t bytes() const noexcept = 0;
  /// Puts it in the place of its segments, after a crash at any point too either all of them or it.
  /// On stable storage when it completes, and bounds().recovery_point is not below the range's end
  /// then. Payloads that were read of the old segments stay readable. Aborted transactions that
  /// were put beside the old segments are all beside the new one, one text behind the other in the
  /// order of the segments; put fewer at its base afterwards if you like, and let no put_aux() of
  /// that kind whose offset was taken from segments() before overlap with this. Once, and not while
  /// an append runs. Errc::conflict: truncation, trimming or a reset has removed something of its
  /// range meanwhile. After an error the log is as it was.  [partition's shard]
  virtual Task<> commit() = 0;
};

/// The log of one partition.  [partition's shard]
class PartitionLog {
 public:
  virtual ~PartitionLog() = default;

  /// Appends whole batches in one gathered write, offsets rising from bounds().end on. Gaps are
  /// taken as they are: a replica of a compacted log has its leader's. Fixes their order at once.
  /// Nothing of a ticket may be shown or acknowledged before written(ticket).
  /// An error (disk full) leaves the log as it was before the call.
  virtual Result<Ticket> append(std::span<const BatchParts> batches) = 0;
  /// Completes when the ticket is readable; a page-cache backend completes at once.
  virtual Task<> written(Ticket ticket) = 0;

  /// Batches from the one containing `from` (or the next after it, in a gap), in order. Whole
  /// batches; at least one if asked, else as many as fit into bytes_max (or fewer, where they are
  /// in very many segments). Empty at the end. Errc::out_of_range outside [start, end]. Completes
  /// without suspension when it needs no disk; what is not in the page cache is brought in by a
  /// worker first. The payload stays readable after trim, truncate and remove.
  virtual Task<Payload> read(ReadRequest request) = 0;

  /// The first batch whose max timestamp is at or after `time`; the kernel finds the record in it.
  virtual Task<BatchPosition> batch_at(Timestamp time) = 0;

  /// Everything below `up_to` on stable storage; moves bounds().recovery_point.
  virtual Task<> flush(Offset up_to) = 0;

  /// Removes the tail from `first_removed` (a batch boundary) on.
  virtual Result<> truncate_from(Offset first_removed) = 0;
  /// Moves the start. Whole segments below it go; bytes may stay until then.
  virtual Result<> trim_before(Offset first_kept) = 0;
  /// Starts a new segment, if the active one holds anything.
  virtual Result<> roll() = 0;
  /// Empties the log and starts anew at `start`.
  virtual Result<> reset_to(Offset start) = 0;

  virtual std::vector<SegmentInfo> segments() const = 0;
  virtual LogBounds bounds() const noexcept = 0;

  /// Entries of one kind, oldest first; put replaces one at the same offset and keeps it durably
  /// before it completes. Empty value removes.
  virtual Task<std::vector<AuxEntry>> aux(AuxKind kind) = 0;
  virtual Task<> put_aux(AuxKind kind, Offset at, Buffer value) = 0;

  /// The topic's settings have changed. What is appended from now on follows them; the topic's id
  /// stays as it was opened.
  virtual void reconfigure(const LogOptions& options) = 0;

  /// Flushes and lets files go; the log is not used afterwards. When the caller's scope is
  /// cancelled it ends soon, without what is not on stable storage yet.
  virtual Task<> close() = 0;

  /// Begins to write the segments [from, to) anew; both are bases of segments, so that the active
  /// one is never among them. Appends, reads, flushes, rolls, and cuts elsewhere go on as ever.
  /// Errc::conflict while another rewrite of this log lives. Errc::invalid_argument: no such
  /// segments. Errc::out_of_range: more than 2^31-1 offsets, which no segment spans.
  /// Errc::unsupported where a backend cannot; nothing is compacted there then.
  virtual Result<std::unique_ptr<LogRewrite>> rewrite(Offset from, Offset to) {
    (void)from, (void)to;
    return Error{Errc::unsupported, "this storage rewrites no segments"};
  }
};

struct Opened {
  std::unique_ptr<PartitionLog> log;
  bool created = false;
  Offset checked_from;          ///< recovery read everything behind this offset
  std::uint64_t bytes_cut = 0;  ///< torn tail that recovery removed
  std::string cut_reason;       ///< one line, when bytes_cut > 0
};

struct PartitionOffset {
  TopicPartition partition;
  Offset offset;
};
/// Of `cleaner` it is the first offset that compaction has not cleaned.
enum class CheckpointKind { recovery_point, high_watermark, log_start, cleaner };

struct FoundPartition {
  TopicPartition partition;
  Uuid topic_id;  ///< none when the folder has no partition.metadata
};

/// Whose a data directory is.
struct DirectoryOwner {
  std::string cluster_id;       ///< empty: none is known
  std::int32_t broker_id = -1;  ///< none: -1
};

/// One data directory.  [control thread and data shards; a log belongs to the shard that opened it]
class Storage {
 public:
  virtual ~Storage() = default;
  /// Takes the data directory. Errc::conflict names the owner; Errc::io when it cannot be made.
  virtual Task<> lock() = 0;
  /// Who has used the directory before; nobody, when it is new.
  virtual Task<DirectoryOwner> owner() = 0;
  /// Marks it. Errc::conflict when it is another cluster's or another broker's.
  virtual Task<> set_owner(DirectoryOwner owner) = 0;
  virtual Task<std::vector<FoundPartition>> list() = 0;
  /// Opens or creates. Call on the partition's shard. Recovers what follows the recovery point.
  virtual Task<Opened> open(TopicPartition partition, LogOptions options) = 0;
  /// Removes a log that is closed, durably.
  virtual Task<> remove(TopicPartition partition) = 0;
  virtual Task<> checkpoint(CheckpointKind kind, std::vector<PartitionOffset> offsets) = 0;
  virtual Task<std::vector<PartitionOffset>> checkpointed(CheckpointKind kind) = 0;
  /// A clean end: what is open has been closed by the caller. Writes the clean-shutdown mark.
  virtual Task<> close() = 0;
};

}  // namespace millrace
