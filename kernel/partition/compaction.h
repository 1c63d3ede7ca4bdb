// One pass of compaction over a log: maps the keys of its dirty part, then writes its segments anew
// without what is superseded. Reading, opening and writing are workers' jobs; the shard only says
// what is next.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include <millrace/environment.h>
#include <millrace/storage.h>

#include "kernel/partition/compaction_filter.h"
#include "kernel/partition/compaction_plan.h"
#include "kernel/partition/rate_limit.h"

namespace millrace::kernel {

/// What a broker gives its passes, and may change between them.
struct CompactionMeans {
  OffsetMap::Secret secret{};
  std::uint64_t map_bytes_max = 134'217'728;  ///< log.cleaner.dedupe.buffer.size / threads
  double map_load_factor_max = 0.9;           ///< log.cleaner.io.buffer.load.factor
  std::uint64_t step_bytes = 524'288;         ///< log.cleaner.io.buffer.size: read at once
  RateLimit* rate = nullptr;                  ///< of bytes read and written; outlives the pass
};

/// What a pass has done.
struct CompactionDone {
  Offset from;                     ///< of the dirty part
  Offset cleaned_to;               ///< where the dirty part begins now
  std::uint64_t bytes_before = 0;  ///< of what it has gone through
  std::uint64_t bytes_after = 0;
  std::uint64_t bytes_read = 0;
  std::uint64_t bytes_written = 0;
  std::int64_t records_removed = 0;
  double map_used = 0;  ///< of what the map may hold
  bool map_was_full = false;
  std::vector<Offset> spent_markers;  ///< see TransactionWalk
  /// The first delete horizon of what it has left; none: no tombstone and no marker waits for one.
  std::optional<Timestamp> next_horizon;
};

/// What is removed at the log's start while a pass runs is nothing to it: the segments that were
/// about to be replaced by then are looked at once more, without it.  [partition's shard]
class Compaction {
 public:
  struct Job {
    Environment& environment;
    Shard& shard;
    PartitionLog& log;
    CompactionMeans means;
    CleanableRange range;
    TopicConfig config;
    BatchOpening opening;
    std::vector<AbortedRow> aborted;
    ProducerEnds producers;
    /// Why the pass is to end early, asked between two steps.
    std::function<Result<>()> go_on;
    /// Is told of bytes that were read or written.
    std::function<void(std::uint64_t bytes)> progress;
    /// Commits a group; what must not run beside that is the caller's to see to.
    std::function<Task<>(LogRewrite& rewrite)> commit;
  };

  explicit Compaction(Job job) : job_(std::move(job)) {}

  /// After an error the groups that were committed stay so, and the rest is as it was.
  /// Errc::corrupt names the batch that cannot be read. Not to be cancelled: workers use what is in
  /// here.
  Task<CompactionDone> run();

 private:
  struct Rewriting;

  Task<> map_dirty();
  Task<std::optional<Payload>> read(ReadRequest wanted);
  Task<> rewrite_all(std::int64_t old_since_ms);
  Task<bool> rewrite_group(SegmentGroup group, bool old_tombstones);
  Task<> rewrite_steps(Rewriting* rewriting);
  Task<Offset> rewrite_step(Rewriting* rewriting, Offset from);
  bool has_moved_into(const SegmentGroup& group) const;
  Task<> pace(std::uint64_t bytes);

  Job job_;
  std::optional<OffsetMap> map_;
  std::optional<TransactionWalk> transactions_;
  Offset start_;  // of the log, as the pass has taken note of it
  Offset mapped_;
  CompactionDone done_;
};

}  // namespace millrace::kernel
