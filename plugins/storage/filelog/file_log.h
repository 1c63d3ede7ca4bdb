// The log of one partition: its segments in order.  [partition's shard]
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <millrace/environment.h>
#include <millrace/storage.h>
#include <millrace/write_ahead.h>

#include "cold_reads.h"
#include "doomed_files.h"
#include "open_files.h"
#include "recent_batches.h"
#include "recovery.h"
#include "segment.h"
#include "space_guard.h"
#include "sync_group.h"
#include "write_turns.h"

namespace millrace::filelog {

/// What outlives a log, for the next one who opens it.  [any thread]
struct LogFacts {
  /// Below it the log is on disk, as far as this process knows; -1 before it is opened.
  std::atomic<std::int64_t> durable_end = -1;
  /// The recovery point on disk may not fall below it, but by a cut: there are gaps of compaction.
  std::atomic<std::int64_t> claimed_below = -1;
  /// It has ended without a clean close.
  std::atomic<bool> lost = false;
};

/// Held by a log from before it is opened until it is closed; the storage watches it.  [any thread]
class OpenMark {
 public:
  explicit OpenMark(std::shared_ptr<LogFacts> log_facts) : facts(std::move(log_facts)) {}
  ~OpenMark() {
    if (!closed_clean) facts->lost = true;
  }
  OpenMark(const OpenMark&) = delete;
  OpenMark& operator=(const OpenMark&) = delete;

  const std::shared_ptr<LogFacts> facts;
  /// A close has brought everything to the disk. Else the log counts as lost.
  std::atomic<bool> closed_clean = false;
};

/// What a log uses and does not own; outlives it.
struct LogHost {
  /// Makes the checkpoint claim no more than `offset` durable. Blocks on the disk.
  using LowerRecoveryPoint = std::function<Result<>(Offset offset)>;
  /// Makes the checkpoint claim everything below `offset` at least. Blocks on the disk.
  using KeepRecoveryPoint = std::function<Result<>(Offset offset)>;

  Environment& environment;
  Shard& shard;
  OpenFiles& open_files;  ///< the shard's
  RecentMemory& recent;   ///< the shard's
  WriteTurns& turns;      ///< the shard's
  SpaceGuard& space;
  DoomedFiles& doomed;
  ColdReads& cold_reads;
  SyncGroup& syncs;
  LowerRecoveryPoint lower_recovery_point;
  KeepRecoveryPoint keep_recovery_point;
};

class FileRewrite;
struct RewriteClaim;

class FileLog final : public PartitionLog, public WriteAheadLog {
 public:
  FileLog(LogHost host, std::string folder, LogOptions options, RecoveredLog recovered,
          std::shared_ptr<OpenMark> mark);
  ~FileLog() override;
  FileLog(const FileLog&) = delete;
  FileLog& operator=(const FileLog&) = delete;

  Result<Ticket> append(std::span<const BatchParts> batches) override;
  Task<> written(Ticket ticket) override;
  Task<std::shared_ptr<const void>> write_ahead(std::vector<BatchParts> batches) override;
  Task<Payload> read(ReadRequest request) override;
  Task<BatchPosition> batch_at(Timestamp time) override;
  Task<> flush(Offset up_to) override;
  Result<> truncate_from(Offset first_removed) override;
  Result<> trim_before(Offset first_kept) override;
  Result<> roll() override;
  Result<> reset_to(Offset start) override;
  std::vector<SegmentInfo> segments() const override;
  LogBounds bounds() const noexcept override;
  Task<std::vector<AuxEntry>> aux(AuxKind kind) override;
  Task<> put_aux(AuxKind kind, Offset at, Buffer value) override;
  void reconfigure(const LogOptions& options) override;
  /// A caller that stops waiting (its scope is cancelled) has it end soon, without what is not on
  /// disk yet: the log counts as lost then, and is checked when it is opened again.
  Task<> close() override;
  Result<std::unique_ptr<LogRewrite>> rewrite(Offset from, Offset to) override;
  /// The commit of a rewrite, which lives until it ends.
  Task<> exchange(FileRewrite& rewrite);

 private:
  using SegmentPointer = std::shared_ptr<Segment>;
  // Batches that stand behind the end, or will.
  struct Ahead {
    std::vector<BatchParts> batches;
    bool whole = false;
  };

  Segment& active() const { return *segments_.back(); }
  Result<> usable() const;
  Result<> check_order(std::span<const BatchParts> batches) const;
  Result<> make_room(std::span<const BatchParts> batches, Timestamp now);
  bool is_ahead(std::span<const BatchParts> batches) const;
  Task<> write_in_turns(std::shared_ptr<Ahead> ahead);
  Result<> drop_ahead();
  SegmentSource source(Offset base, Offset next) const;
  /// The segment that has `offset`, or would have it.
  std::size_t segment_at(Offset offset) const;
  Offset next_of(std::size_t at) const;
  /// Puts `segment`, with its indexes, in its own place; does nothing when it is no longer there.
  Task<> load(SegmentPointer segment);
  void put_in_place(SegmentPointer& place, SegmentPointer loaded);
  bool in_memory(const ReadPlan& plan) const;
  Task<FoundRange> find_and_bring_in(ReadPlan plan, std::uint64_t batch_bytes_max);
  Result<> forget_durable(Offset from);
  Result<> add_segment(Offset base);
  Result<> cut_behind(std::size_t at, std::uint64_t position);
  /// An error when a log file has kept its name.
  Result<> discard(std::span<const SegmentPointer> segments);
  Result<> lose_rewrite();
  Result<> lose_rewrite_from(Offset first_removed);
  Result<> lose_rewrite_before(Offset first_kept);
  Task<> exchange_alone(FileRewrite& rewrite);
  Task<> stage(FileRewrite& rewrite);
  Result<> replace_segments(FileRewrite& rewrite);
  Task<> flush_all();
  Task<> sync_all(std::vector<SyncPlan> plans);
  Task<> flush_rolled();
  Task<> flush_to_close();
  Task<> aux_turn();

  const LogHost host_;
  const std::string folder_;
  LogOptions options_;
  std::shared_ptr<OpenMark> mark_;

  ColdReaders cold_readers_;
  RecentBatches recent_;
  std::vector<SegmentPointer> segments_;  // never empty; the last one is active
  Offset start_;
  Offset end_;
  Offset recovery_point_;
  std::uint64_t tickets_ = 0;
  std::uint64_t cuts_ = 0;  // truncations so far: a flush that was overtaken by one proves nothing
  std::optional<Error> failed_;  // what is on disk is unknown: nothing is written any more
  std::weak_ptr<Ahead> ahead_;   // what is written ahead, while somebody will append it
  bool folder_changed_ = false;
  bool as_closed_;  // nothing has changed since a clean close: there is nothing to close
  bool closed_ = false;
  bool flushing_ = false;
  bool flushing_rolled_ = false;
  Offset rolled_end_;  // what flush_rolled() brings to the disk
  Event flushed_;
  /// Flushes that are under way, also in a worker, end before their next segment.
  std::shared_ptr<std::atomic<bool>> give_up_ = std::make_shared<std::atomic<bool>>(false);
  std::size_t loads_ = 0;  // load() runs so often
  Event loaded_;
  std::weak_ptr<RewriteClaim> claim_;  // expired: no rewrite is under way
  bool exchanging_ = false;            // no flush and no load begins
  bool aux_busy_ = false;
  Event aux_free_;
  Gate background_;
};

}  // namespace millrace::filelog
