// What compaction needs of a partition, and what it must know of it.
#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include <millrace/bytes.h>

#include "kernel/partition/partition.h"
#include "kernel/partition/payload_reader.h"

namespace millrace::kernel {

namespace {

// Of the first batch; none in an old format, which may not say.
Result<Timestamp> first_timestamp(const Payload& batches) {
  Timestamp first;
  MR_CHECK(for_each_batch(batches, [&first](const FoundBatch& batch) {
    if (batch.header.magic == 2) first = batch.header.max_timestamp;
    return false;
  }));
  return first;
}

}  // namespace

std::int32_t CompactionStatus::percent() const noexcept {
  if (!running) return -1;
  constexpr std::uint64_t all = 100;
  if (bytes_to_do == 0) return 0;
  return static_cast<std::int32_t>(std::min(bytes_done * all / bytes_to_do, all));
}

// What begins anew behind a cut is dirty.
void Partition::note_cut(Offset end) {
  ++cuts_;
  if (compaction_.cleaned_to != Offset{}) {
    compaction_.cleaned_to = std::min(compaction_.cleaned_to, end);
  }
  oldest_dirty_in_ = {};
}

CleanableRange Partition::cleanable() const {
  return plan_cleaning(log_->segments(), config_, now(), log_->bounds(),
                       readable_end(Horizon::last_stable), compaction_.cleaned_to);
}

Timestamp Partition::after_retention() const {
  return delete_horizon(now(), config_.delete_retention_ms);
}

// What waits there from before a start is not noted: one pass will say. Not of all logs at once,
// and not always so late that a broker which is started anew every day never comes to it.
Timestamp Partition::within_retention() const {
  const auto by_chance = crc32c(as_bytes(to_string(id_) + std::to_string(now().ms)));
  const auto part = static_cast<double>(by_chance) / std::numeric_limits<std::uint32_t>::max();
  const auto wait_ms = static_cast<double>(config_.delete_retention_ms) * part;
  constexpr double longest_ms = 1e15;  // thirty thousand years: no number runs over
  return delete_horizon(now(), static_cast<std::int64_t>(std::min(wait_ms, longest_ms)));
}

bool Partition::tombstones_due() const { return compaction_.due && *compaction_.due <= now(); }

Task<CompactionNeed> Partition::compaction_need(std::optional<Offset> checkpointed) {
  MR_CO_TRY(const auto pass, running_.enter());
  CompactionNeed need{.compacted = config_.cleanup_compact};
  if (closing_) co_return CompactionNeed{};
  if (!need.compacted) {
    if (!compaction_.running) compaction_ = {};
    co_return need;
  }
  const auto bounds = log_->bounds();
  if (compaction_.cleaned_to == Offset{}) {
    compaction_.cleaned_to = recovery_.created ? bounds.start : checkpointed.value_or(bounds.start);
    if (compaction_.cleaned_to > bounds.start) compaction_.due = within_retention();
  }
  need.range = cleanable();
  compaction_.cleaned_to = need.range.first_dirty;
  MR_CO_TRY(const auto oldest, co_await oldest_dirty(need.range));
  if (is_overdue(config_, now(), oldest)) {
    need.overdue_ms = now().ms - oldest.ms - config_.max_compaction_lag_ms;
    const auto segments = log_->segments();
    const bool active = !segments.empty() && segments.back().base == oldest_dirty_in_;
    if (active && readable_end(Horizon::last_stable) >= bounds.end) MR_CO_CHECK(log_->roll());
    need.range = cleanable();
  }
  need.wanted = tombstones_due() || wants_cleaning(need.range, config_, now(), oldest);
  compaction_.clean_bytes = need.range.clean_bytes;
  compaction_.cleanable_bytes = need.range.dirty_bytes;
  co_return need;
}

// Of what is not clean yet, the active segment too. Asked for only where it matters.
Task<Timestamp> Partition::oldest_dirty(CleanableRange range) {
  if (config_.max_compaction_lag_ms == TopicConfig::never_ms) co_return Timestamp{};
  const auto segments = log_->segments();
  const auto first = std::ranges::find_if(segments, [&range](const SegmentInfo& segment) {
    return segment.bytes > 0 && segment.next > range.first_dirty;
  });
  if (first == segments.end()) co_return Timestamp{};
  if (first->base == oldest_dirty_in_) co_return oldest_dirty_;
  const auto from = std::max(first->base, range.first_dirty);
  const ReadRequest one{.from = from, .limit = first->next, .bytes_max = 1};
  MR_CO_TRY(auto batches, co_await log_->read(one));
  auto work = [batches = std::move(batches)] { return first_timestamp(batches); };
  auto reading = on_worker(host_.environment.workers(), std::move(work));
  MR_CO_TRY(const auto found, co_await std::move(reading));
  oldest_dirty_in_ = first->base;
  oldest_dirty_ = found.ms >= 0 ? found : first->modified;
  co_return oldest_dirty_;
}

Task<CompactionDone> Partition::compact(CompactionMeans means, std::function<bool()> stopping) {
  MR_CO_TRY(const auto pass, running_.enter());
  if (closing_) co_return Error{Errc::closed, "the partition is closing"};
  MR_ASSERT(!compaction_.running);
  compaction_.running = true;
  auto done = co_await run_compaction(means, std::move(stopping));
  compaction_.running = false;
  compaction_.bytes_done = compaction_.bytes_to_do = 0;
  compaction_.failed = !done;
  compaction_.ended = now();
  if (std::exchange(retention_due_, false) && !closing_) {
    const auto kept = co_await apply_retention();
    if (done && !kept) done = kept.error();
  }
  if (done) {
    const auto range = cleanable();
    compaction_.clean_bytes = range.clean_bytes;
    compaction_.cleanable_bytes = range.dirty_bytes;
  }
  co_return std::move(done);
}

// Where tombstones alone want it, what is clean: what is dirty would give new ones their horizon,
// and each pass ask for the next one, however clean the log is.
Task<CleanableRange> Partition::range_of_pass() {
  if (!tombstones_due()) co_return cleanable();
  MR_CO_TRY(const auto oldest, co_await oldest_dirty(cleanable()));
  auto range = cleanable();
  if (wants_cleaning(range, config_, now(), oldest)) co_return range;
  range.limit = std::min(range.limit, range.first_dirty);
  range.dirty_bytes = 0;
  co_return range;
}

Task<CompactionDone> Partition::run_compaction(CompactionMeans means,
                                               std::function<bool()> stopping) {
  MR_CO_TRY(auto range, co_await range_of_pass());
  if (range.limit <= range.first_dirty && !tombstones_due()) {
    co_return CompactionDone{.from = range.first_dirty, .cleaned_to = range.first_dirty};
  }
  // The dirty part is read twice, and everything is written once at most.
  compaction_.bytes_to_do = range.dirty_bytes + 2 * (range.clean_bytes + range.dirty_bytes);
  auto go_on = [this, stopping = std::move(stopping), cuts = cuts_]() -> Result<> {
    if (stopping()) return Error{Errc::cancelled, "compaction is told to stop"};
    if (closing_) return Error{Errc::closed, "the partition is closing"};
    if (!config_.cleanup_compact) return Error{Errc::cancelled, "it is not compacted any more"};
    if (cuts_ == cuts) return {};
    return Error{Errc::conflict, "the log was cut while it was compacted"};
  };
  Compaction compaction(
      {.environment = host_.environment,
       .shard = host_.shard,
       .log = *log_,
       .means = means,
       .range = range,
       .config = config_,
       .opening = {.codecs = host_.codecs},
       .aborted = aborted_.rows(),
       .producers = producers_.ends(),
       .go_on = go_on,
       .progress = [this](std::uint64_t bytes) { compaction_.bytes_done += bytes; },
       .commit = [this](LogRewrite& rewrite) { return commit_rewrite(&rewrite); }});
  // Workers use what is in there until it ends.
  CancelScope never_cancelled;
  auto running = compaction.run().within(never_cancelled);
  MR_CO_TRY(auto done, co_await std::move(running));
  MR_CO_CHECK(go_on());
  compaction_.cleaned_to = done.cleaned_to;
  oldest_dirty_in_ = {};
  // A log that is cleaned more often than that loses what is due on the way.
  compaction_.due.reset();
  if (done.next_horizon) compaction_.due = std::max(*done.next_horizon, after_retention());
  MR_CO_CHECK(co_await forget_aborted(done.spent_markers));
  co_return std::move(done);
}

Task<> Partition::commit_rewrite(LogRewrite* rewrite) {
  MR_CO_TRY(const auto held, co_await segments_stay_.lock());
  co_return co_await rewrite->commit();
}

// Nothing is left that these rows hide. Once they are forgotten, their markers may go too.
Task<> Partition::forget_aborted(std::vector<Offset> markers) {
  if (markers.empty()) co_return {};
  std::ranges::sort(markers);
  MR_CO_TRY(const auto held, co_await segments_stay_.lock());
  aborted_.forget(markers);
  const auto segments = log_->segments();
  for (const auto& segment : segments) {
    const auto first = std::ranges::lower_bound(markers, segment.base);
    if (first == markers.end() || *first >= segment.next) continue;
    auto rows = aborted_.encode(segment.base, segment.next);
    auto put = log_->put_aux(AuxKind::aborted_transactions, segment.base, std::move(rows));
    MR_CO_CHECK(co_await std::move(put));
  }
  co_return {};
}

}  // namespace millrace::kernel
