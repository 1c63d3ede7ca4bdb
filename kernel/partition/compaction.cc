#include "kernel/partition/compaction.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include "kernel/partition/payload_reader.h"

namespace millrace::kernel {

namespace {

// A pass that is held back looks so often whether it is to end.
constexpr Duration pause_max = std::chrono::milliseconds(200);

// The last segment that was clean says since when what is in it was: a tombstone of an old format
// goes when that is long enough ago.
Timestamp clean_since(std::span<const SegmentInfo> segments, Offset first_dirty) {
  Timestamp since{0};
  for (const auto& segment : segments) {
    if (segment.base >= first_dirty) break;
    since = segment.modified;
  }
  return since;
}

}  // namespace

// What the steps of a group share. Workers use it, one at a time.
struct Compaction::Rewriting {
  SegmentGroup group;
  std::unique_ptr<LogRewrite> rewrite;
  CompactionRules rules;
  const BatchOpening& opening;
  const OffsetMap& map;
  TransactionWalk& transactions;
  bool changed = false;
  std::int64_t removed = 0;

  /// The batches of a step; answers the offset behind the last one.
  Result<Offset> step(const Payload& batches) {
    Result<> failed;
    Offset behind;
    std::vector<BatchParts> kept;
    MR_CHECK(for_each_batch(batches, [&](const FoundBatch& found) {
      const auto bytes = copy_range(batches, found.position, found.header.total_bytes());
      auto left = bytes ? compact_batch(*bytes, rules, opening, transactions, map)
                        : Result<CompactedBatch>(bytes.error());
      if (!left) {
        failed = left.error();
        return false;
      }
      changed = changed || left->changed;
      removed += left->removed;
      if (left->parts) kept.push_back(*std::move(left->parts));
      behind = found.header.last_offset() + 1;
      return true;
    }));
    MR_CHECK(failed);
    if (!kept.empty()) MR_CHECK(rewrite->append(kept));
    return behind;
  }
};

Task<CompactionDone> Compaction::run() {
  const auto& range = job_.range;
  done_.from = done_.cleaned_to = range.first_dirty;
  MR_CO_CHECK(co_await map_dirty());
  const auto segments = job_.log.segments();
  const auto since = clean_since(segments, range.first_dirty);
  const auto old_since = since.ms - std::min(job_.config.delete_retention_ms, since.ms);
  transactions_.emplace(std::move(job_.aborted), job_.log.bounds().start);
  for (const auto& group : group_segments(segments, mapped_, job_.config)) {
    MR_CO_CHECK(co_await rewrite_group(group, group.modified.ms > old_since));
  }
  done_.cleaned_to = mapped_;
  done_.spent_markers = transactions_->spent();
  co_return std::move(done_);
}

Task<> Compaction::map_dirty() {
  const auto& range = job_.range;
  const auto& means = job_.means;
  MR_CO_TRY(auto map, OffsetMap::make(means.secret, means.map_bytes_max, means.map_load_factor_max,
                                      static_cast<std::uint64_t>(range.limit - range.first_dirty)));
  map_.emplace(std::move(map));
  transactions_.emplace(job_.aborted, range.first_dirty);
  mapped_ = range.first_dirty;
  while (mapped_ < range.limit && !done_.map_was_full) {
    MR_CO_CHECK(job_.go_on());
    const ReadRequest wanted{.from = mapped_, .limit = range.limit, .bytes_max = means.step_bytes};
    MR_CO_TRY(auto batches, co_await job_.log.read(wanted));
    if (batches.empty()) {  // nothing but a gap is left
      mapped_ = range.limit;
      break;
    }
    const auto bytes = batches.size();
    auto work = [this, batches = std::move(batches)] {
      return map_batches(batches, job_.range.first_dirty, job_.opening, *transactions_, *map_);
    };
    auto mapping = on_worker(job_.environment.workers(), std::move(work));
    MR_CO_TRY(const auto mapped, co_await std::move(mapping));
    mapped_ = std::max(mapped_, mapped.next);
    done_.map_was_full = mapped.full;
    done_.bytes_read += bytes;
    MR_CO_CHECK(co_await pace(bytes));
  }
  done_.map_used = static_cast<double>(map_->keys()) / static_cast<double>(map_->keys_max());
  if (mapped_ > range.first_dirty) co_return {};
  co_return Error{Errc::too_large, "the keys of the batch at offset " +
                                       std::to_string(mapped_.value) + " do not fit a map of " +
                                       std::to_string(map_->keys_max()) +
                                       "; raise log.cleaner.dedupe.buffer.size"};
}

Task<> Compaction::rewrite_group(SegmentGroup group, bool old_tombstones) {
  CompactionRules rules{.now = job_.environment.clock().wall(),
                        .delete_retention_ms = job_.config.delete_retention_ms,
                        .mapped = mapped_,
                        .producers = job_.producers,
                        .old_tombstones = old_tombstones};
  MR_CO_CHECK(job_.go_on());
  MR_CO_TRY(auto rewrite, job_.log.rewrite(group.from, group.to));
  Rewriting rewriting{.group = group,
                      .rewrite = std::move(rewrite),
                      .rules = std::move(rules),
                      .opening = job_.opening,
                      .map = *map_,
                      .transactions = *transactions_};
  const auto read_before = done_.bytes_read;
  for (auto next = std::max(group.from, job_.log.bounds().start); next < group.to;) {
    MR_CO_CHECK(job_.go_on());
    MR_CO_TRY(next, co_await rewrite_step(&rewriting, next));
  }
  const auto before = done_.bytes_read - read_before;
  // One segment that stays as it is need not be replaced by itself.
  const bool needed = rewriting.changed || group.segments > 1;
  done_.bytes_before += before;
  done_.bytes_after += needed ? rewriting.rewrite->bytes() : before;
  done_.records_removed += rewriting.removed;
  if (needed) MR_CO_CHECK(co_await job_.commit(*rewriting.rewrite));
  co_return {};
}

Task<Offset> Compaction::rewrite_step(Rewriting* rewriting, Offset from) {
  const auto to = rewriting->group.to;
  const ReadRequest wanted{.from = from, .limit = to, .bytes_max = job_.means.step_bytes};
  MR_CO_TRY(auto batches, co_await job_.log.read(wanted));
  if (batches.empty()) co_return to;  // a gap up to the end
  const auto bytes = batches.size();
  const auto written_before = rewriting->rewrite->bytes();
  auto work = [rewriting, batches = std::move(batches)] { return rewriting->step(batches); };
  auto compacting = on_worker(job_.environment.workers(), std::move(work));
  MR_CO_TRY(const auto behind, co_await std::move(compacting));
  const auto written = rewriting->rewrite->bytes() - written_before;
  done_.bytes_read += bytes;
  done_.bytes_written += written;
  MR_CO_CHECK(co_await pace(bytes + written));
  co_return behind;
}

// At most as many bytes per second as all passes together may read and write.
Task<> Compaction::pace(std::uint64_t bytes) {
  job_.progress(bytes);
  if (!job_.means.rate) co_return {};
  auto& rate = *job_.means.rate;
  rate.charge(bytes, job_.shard.now());
  for (auto left = rate.wait(job_.shard.now()); left > Duration::zero();
       left = rate.wait(job_.shard.now())) {
    MR_CO_CHECK(job_.go_on());
    MR_CO_CHECK(co_await sleep(std::min(left, pause_max)));
  }
  co_return {};
}

}  // namespace millrace::kernel
