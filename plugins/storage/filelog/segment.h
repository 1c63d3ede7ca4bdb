// One segment: a log file and its two indexes. Reading and opening may block and run on a worker;
// what changes a segment runs on the partition's shard.
#pragma once

#include <atomic>
#include <list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <millrace/environment.h>
#include <millrace/filelog/entry.h>
#include <millrace/filelog/index.h>
#include <millrace/storage.h>

namespace millrace::filelog {

std::uint64_t total_bytes(std::span<const BatchParts> batches) noexcept;

/// How a log file is opened.
struct SegmentSource {
  std::string folder;
  Offset base;
  /// The next segment's base, which no entry may reach; none for the last segment.
  Offset next;
  std::uint64_t index_interval_bytes = 0;
  /// How large the file of a new segment is made at once, of zeros that take no space.
  std::uint64_t preallocated_bytes = 0;
  /// What stands behind the files' names while the segment is not one of the log.
  std::string_view mark;
};

/// What a walk over a segment's entries found wrong.
struct Damage {
  std::uint64_t position = 0;  ///< everything before it is sound
  bool torn = false;           ///< the file ends within a batch, or in zeros
  bool zeros = false;          ///< in zeros alone: what a preallocated file has at its end
  std::string what;
};

/// A read, decided on the shard and carried out anywhere: it shares the file and no state.
struct ReadPlan {
  std::shared_ptr<File> file;
  std::uint64_t file_end = 0;
  std::uint64_t scan_from = 0;  ///< the start of an entry at or before the one that is sought
  std::uint64_t found_by = 0;   ///< the one that is sought starts here at the latest
  std::uint64_t jump_to = 0;  ///< the start of an entry: all between are surely part of the answer
  Offset from;
  Offset limit;
  std::uint64_t bytes_max = 0;
  bool at_least_one = false;
};
struct FoundRange {
  std::uint64_t position = 0;
  std::uint64_t bytes = 0;
  bool to_end = false;  ///< the segment has nothing behind it; the read may go on in the next
};
/// [any thread; may block on the disk]
Result<FoundRange> find_range(const ReadPlan& plan);

/// What makes a segment durable, decided on the shard and carried out by a worker.
struct SyncPlan {
  std::shared_ptr<File> log;  ///< none: it is not open
  std::string log_path;
  std::string offset_index_path;
  std::string time_index_path;
  std::size_t offset_rows_from = 0;
  std::size_t time_rows_from = 0;
  std::vector<std::byte> offset_rows;
  std::vector<std::byte> time_rows;
  std::optional<std::uint64_t> log_bytes;  ///< where a preallocated file is to end
  bool complete = false;      ///< no rows will follow: what stands behind them is cut off
  bool durable_rows = false;  ///< the rows are synced too
};
/// [a worker]
Result<> write_indexes(FileSystem& files, const SyncPlan& plan);
/// The records. After an error it is unknown what is on the disk.  [a worker]
Result<> sync_log(FileSystem& files, const SyncPlan& plan);

/// What ends a series of plans early, and what it came to.
struct SyncProgress {
  const std::atomic<bool>& give_up;
  bool records_failed = false;  ///< a sync_log() did
};
/// The first half of that, up to a sync of the whole disk, and the second one behind it.  [a
/// worker]
Result<> write_out(FileSystem& files, const std::string& folder, std::span<SyncPlan> plans,
                   const SyncProgress& progress);
Result<> sync_logs(FileSystem& files, const std::string& folder, std::span<const SyncPlan> plans,
                   SyncProgress& progress);
/// All of the plans, whose files are in `folder`. Many are synced with the whole disk at once: one
/// by one, each would wait for the disk.  [a worker]
Result<> carry_out(FileSystem& files, const std::string& folder, std::span<SyncPlan> plans,
                   SyncProgress& progress);

class Segment {
 public:
  /// Its place among the segments whose files are open; see open_files.h.
  using Place = std::list<std::weak_ptr<Segment>>::iterator;

  /// A new, empty segment; its file is made or emptied.
  static Result<std::shared_ptr<Segment>> create(FileSystem& files, const SegmentSource& source,
                                                 Timestamp now);
  /// One that is complete, from its file's size and the last row of its time index. Nothing else is
  /// read until it is needed: loaded() is false.
  static Result<std::shared_ptr<Segment>> glance(FileSystem& files, const SegmentSource& source,
                                                 const FileInfo& log_file);
  /// With its indexes, which are rebuilt when missing or wrong.  [a worker]
  static Result<std::shared_ptr<Segment>> load(FileSystem& files, const SegmentSource& source,
                                               Timestamp modified);
  /// As load(), and checks every entry from the last indexed one below `sound_below` on. What is
  /// damaged is described and left out.  [a worker]
  static Result<std::shared_ptr<Segment>> check(FileSystem& files, const SegmentSource& source,
                                                Timestamp modified, Offset sound_below,
                                                std::optional<Damage>& damage);

  Offset base() const noexcept { return source_.base; }
  /// Behind the last entry; known of segments that were created or checked.
  Offset end() const noexcept { return end_; }
  std::uint64_t bytes() const noexcept { return bytes_; }
  Timestamp max_timestamp() const noexcept { return max_timestamp_; }
  Timestamp modified() const noexcept { return modified_; }
  /// Its indexes are in memory: what plans reads, cuts and syncs may be called.
  bool loaded() const noexcept { return loaded_; }
  std::string path(std::string_view suffix) const;

  /// Whether `batches` may join what is here.
  bool has_room(std::span<const BatchParts> batches, const LogOptions& options,
                Timestamp now) const;
  /// One segment can hold so much, and offsets so far from its base.
  Result<> check_reach(std::span<const BatchParts> batches) const;
  /// One gathered write. After an error the segment is as before, or says so in `broken`.
  Result<> append(std::span<const BatchParts> batches, Timestamp now, bool& broken);
  /// A piece of what is appended later, `at` bytes behind the end; `entry`: once it is written a
  /// whole entry may stand there.
  Result<> write_ahead(std::uint64_t at, std::span<const Bytes> piece, bool entry);
  /// All of `batches` has been written ahead: they are entries now.
  void append_written(std::span<const BatchParts> batches, Timestamp now);
  /// What was written ahead goes; durably, where recovery would take it for an entry.
  Result<> drop_ahead();
  /// The file ends where its entries do. Before another segment follows this one, since zeros in
  /// between would be taken for a tear.
  Result<> drop_preallocated();
  /// No more appends: the time index gets its last row.
  void complete(Offset next);
  /// Where the file is to be cut so that the entry of `first_removed` is the first one gone.
  /// Errc::invalid_argument when that offset is within a batch.
  Result<std::uint64_t> plan_truncation(Offset first_removed);
  /// Removes everything from `position` on, durably. A file that a reader still holds is replaced
  /// by a copy.
  Result<> truncate(std::uint64_t position);

  Result<ReadPlan> plan_read(Offset from, Offset limit, std::uint64_t bytes_max, bool at_least_one);
  /// A position to scan from for the first entry whose timestamp is at or after `time`.
  std::uint64_t scan_for(Timestamp time) const;
  /// The log file, opened if need be.
  Result<std::shared_ptr<File>> file();
  /// Closes the file, which whoever else holds keeps open; a complete segment that is on disk
  /// forgets its indexes too, unless they are small, and is no longer loaded().
  void let_go() noexcept;
  /// What readers still hold of the file of `before`, the same segment, is what this one uses too.
  void take_over(const Segment& before);
  std::optional<Place>& place() noexcept { return place_; }

  /// Its files have lost their mark.
  void take_name(Timestamp modified);
  /// Its indexes were read from their files, whole.
  bool indexed() const noexcept { return indexes_sound_; }
  bool dirty() const noexcept { return dirty_; }
  void set_dirty(bool dirty) noexcept { dirty_ = dirty; }
  SyncPlan plan_sync() const;
  /// The rows of a plan are in the files.
  void synced(const SyncPlan& plan);

 private:
  Segment(FileSystem& files, SegmentSource source) : files_(files), source_(std::move(source)) {}
  static Result<std::shared_ptr<Segment>> open(FileSystem& files, const SegmentSource& source,
                                               Timestamp modified);

  std::int64_t relative(Offset offset) const noexcept { return offset - source_.base; }
  std::uint64_t position_at_or_before(Offset offset) const;
  std::uint64_t position_behind(Offset offset) const;
  void read_indexes();
  bool leads_to_its_batch(OffsetIndex::Row row) const;
  void restart_behind(std::optional<OffsetIndex::Row> row);
  Result<> check_order(const Entry& entry) const;
  Result<std::optional<Damage>> walk(std::uint64_t file_bytes, bool check_crcs);
  void add_entries(std::span<const BatchParts> batches, Timestamp now);
  void account(Offset last, std::uint64_t bytes, Timestamp timestamp);
  Result<> replace_by_copy(std::uint64_t bytes);

  FileSystem& files_;
  SegmentSource source_;
  std::shared_ptr<File> log_;    // none while closed
  std::weak_ptr<File> readers_;  // the last one that was open
  std::optional<Place> place_;
  bool loaded_ = false;
  OffsetIndex offsets_;
  TimeIndex times_;
  bool indexes_sound_ = false;
  std::size_t offset_rows_written_ = 0;
  std::size_t time_rows_written_ = 0;
  std::uint64_t bytes_ = 0;
  std::uint64_t bytes_since_row_ = 0;
  Offset end_;
  Timestamp first_timestamp_;
  Timestamp max_timestamp_;
  Offset max_timestamp_offset_;  // the last of its batch, as in Kafka since 3.8
  Timestamp created_;
  Timestamp modified_;
  bool preallocated_ = false;  // the file may be longer than its entries
  bool ahead_ = false;         // so, too: by what is not appended yet
  bool ahead_entry_ = false;   // which has an entry, maybe
  bool complete_ = false;
  bool dirty_ = false;
};

}  // namespace millrace::filelog
