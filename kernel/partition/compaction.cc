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

std::optional<Timestamp> earlier(std::optional<Timestamp> one, std::optional<Timestamp> other) {
  if (!one || !other) return one ? one : other;
  return std::min(*one, *other);
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
  std::optional<Timestamp> horizon;  // the first one

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
      horizon = earlier(horizon, left->horizon);
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
  const auto since = clean_since(job_.log.segments(), range.first_dirty);
  const auto old_since_ms = since.ms - std::min(job_.config.delete_retention_ms, since.ms);
  MR_CO_CHECK(co_await rewrite_all(old_since_ms));
  done_.cleaned_to = mapped_;
  done_.spent_markers = transactions_->spent();
  co_return std::move(done_);
}

// None: the log begins behind `wanted.from` by now.
Task<std::optional<Payload>> Compaction::read(ReadRequest wanted) {
  auto batches = co_await job_.log.read(wanted);
  const bool known = batches && !batches->empty();
  if (!known && job_.log.bounds().start > wanted.from) co_return std::optional<Payload>();
  if (!batches) co_return batches.error();
  co_return std::optional<Payload>(*std::move(batches));
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
    MR_CO_TRY(auto batches, co_await read(wanted));
    if (!batches) {
      mapped_ = std::min(job_.log.bounds().start, range.limit);
      transactions_->skip_to(mapped_);
      continue;
    }
    if (batches->empty()) {  // nothing but a gap is left
      mapped_ = range.limit;
      break;
    }
    const auto bytes = batches->size();
    auto work = [this, batches = *std::move(batches)] {
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
  if (mapped_ > range.first_dirty || range.limit <= range.first_dirty) co_return {};
  co_return Error{Errc::too_large, "the keys of the batch at offset " +
                                       std::to_string(mapped_.value) + " do not fit a map of " +
                                       std::to_string(map_->keys_max()) +
                                       "; raise log.cleaner.dedupe.buffer.size"};
}

Task<> Compaction::rewrite_all(std::int64_t old_since_ms) {
  start_ = job_.log.bounds().start;
  transactions_.emplace(std::move(job_.aborted), start_);
  auto groups = group_segments(job_.log.segments(), mapped_, job_.config);
  for (std::size_t at = 0; at < groups.size();) {
    MR_CO_CHECK(job_.go_on());
    if (const auto start = job_.log.bounds().start; start != start_) {
      start_ = start;
      transactions_->skip_to(start);
      auto left = job_.log.segments();
      std::erase_if(left, [from = groups[at].from](const auto& one) { return one.base < from; });
      groups = group_segments(left, mapped_, job_.config);
      at = 0;
      continue;
    }
    const bool old_tombstones = groups[at].modified.ms > old_since_ms;
    MR_CO_TRY(const bool whole, co_await rewrite_group(groups[at], old_tombstones));
    if (whole) ++at;
  }
  co_return {};
}

bool Compaction::has_moved_into(const SegmentGroup& group) const {
  const auto start = job_.log.bounds().start;
  return start != start_ && start > group.from;
}

// False: it has lost its first records meanwhile, and nothing of it is replaced.
Task<bool> Compaction::rewrite_group(SegmentGroup group, bool old_tombstones) {
  CompactionRules rules{.now = job_.environment.clock().wall(),
                        .delete_retention_ms = job_.config.delete_retention_ms,
                        .mapped = mapped_,
                        .end = job_.log.bounds().end,
                        .producers = job_.producers,
                        .old_tombstones = old_tombstones};
  MR_CO_TRY(auto rewrite, job_.log.rewrite(group.from, group.to));
  Rewriting rewriting{.group = group,
                      .rewrite = std::move(rewrite),
                      .rules = std::move(rules),
                      .opening = job_.opening,
                      .map = *map_,
                      .transactions = *transactions_};
  const auto transactions_before = *transactions_;
  const auto read_before = done_.bytes_read;
  auto done = co_await rewrite_steps(&rewriting);
  // One segment that stays as it is need not be replaced by itself.
  const bool needed = rewriting.changed || group.segments > 1;
  const bool whole = done && !has_moved_into(group);
  const auto written = rewriting.rewrite->bytes();
  if (whole && needed) done = co_await job_.commit(*rewriting.rewrite);
  if (!(whole && done) && has_moved_into(group)) {
    MR_CO_CHECK(job_.go_on());
    *transactions_ = transactions_before;
    co_return false;
  }
  MR_CO_CHECK(std::move(done));
  const auto before = done_.bytes_read - read_before;
  done_.bytes_before += before;
  done_.bytes_after += needed ? written : before;
  done_.records_removed += rewriting.removed;
  done_.next_horizon = earlier(done_.next_horizon, rewriting.horizon);
  co_return true;
}

Task<> Compaction::rewrite_steps(Rewriting* rewriting) {
  const auto& group = rewriting->group;
  for (auto next = std::max(group.from, start_); next < group.to && !has_moved_into(group);) {
    MR_CO_CHECK(job_.go_on());
    MR_CO_TRY(next, co_await rewrite_step(rewriting, next));
  }
  co_return {};
}

Task<Offset> Compaction::rewrite_step(Rewriting* rewriting, Offset from) {
  const auto to = rewriting->group.to;
  const ReadRequest wanted{.from = from, .limit = to, .bytes_max = job_.means.step_bytes};
  MR_CO_TRY(auto found, co_await read(wanted));
  if (!found || found->empty()) co_return to;  // it has gone, or is a gap up to the end
  auto batches = *std::move(found);
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
