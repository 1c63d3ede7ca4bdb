// What keeps a partition in shape: recovery when it opens, retention, flushes, snapshots.
#include <algorithm>
#include <chrono>
#include <utility>

#include "kernel/partition/partition.h"
#include "kernel/partition/payload_reader.h"
#include "kernel/partition/retention.h"

namespace millrace::kernel {

namespace {

// Recovery walks headers; of a log in files a step costs no memory.
constexpr std::uint64_t replay_step_bytes = 16UL << 20;

// Times in settings may be longer than a clock can count.
constexpr std::int64_t wait_ms_max = 365LL * 24 * 3600 * 1000;

// There is one file of leader epochs, whatever the log's offsets are.
constexpr Offset epochs_at{0};

// What replay needs of a batch.
struct Noted {
  BatchHeader header;
  std::optional<TransactionMarker> marker;
};

Result<std::vector<Noted>> notes_of(const Payload& batches) {
  std::vector<FoundBatch> found;
  MR_CHECK(for_each_batch(batches, [&found](const FoundBatch& batch) {
    found.push_back(batch);
    return true;
  }));
  std::vector<Noted> notes;
  notes.reserve(found.size());
  for (const auto& batch : found) {
    Noted note{batch.header, {}};
    if (batch.header.control()) {
      MR_TRY(const auto bytes, copy_range(batches, batch.position, batch.header.total_bytes()));
      MR_TRY(note.marker, read_marker(batch.header, bytes));
    }
    notes.push_back(note);
  }
  return notes;
}

}  // namespace

Task<> Partition::recover() {
  if (!recovery_.created) MR_CO_CHECK(co_await restore());
  producers_.settle(high_watermark_);
  if (leading_) epochs_.assign(leader_epoch_, log_->bounds().end);
  const auto segments = log_->segments();
  if (!segments.empty()) snapshot_segment_ = segments.back().base;
  co_return {};
}

// The files beside the log are caches of what it says: where one is missing or wrong, all of the
// log is walked.
Task<> Partition::restore() {
  const auto start = log_->bounds().start;
  MR_CO_TRY(const bool epochs_known, co_await restore_epochs());
  MR_CO_TRY(const bool aborted_known, co_await restore_aborted());
  auto new_from = start;
  if (aborted_known) {
    MR_CO_TRY(new_from, co_await restore_producers());
  }
  if (!aborted_known || aborted_.ends_behind(new_from)) {
    MR_CO_CHECK(co_await cut_aborted(new_from));
  }
  aborted_stored_ = new_from;
  co_return co_await replay(epochs_known ? new_from : start, new_from);
}

Task<bool> Partition::restore_aborted() {
  MR_CO_TRY(const auto stored, co_await log_->aux(AuxKind::aborted_transactions));
  for (const auto& file : stored) {
    const auto added = aborted_.add_all(file.value);
    if (added) continue;
    host_.log.warning("rebuilding the index of aborted transactions",
                      {{"partition", to_string(id_)},
                       {"segment", file.at.value},
                       {"error", to_string(added.error())}});
    co_return false;
  }
  co_return true;
}

// Restores the newest snapshot that fits the log, and answers from where batches must be replayed.
// Snapshots beyond the end belong to records that a crash took: other records would follow them.
Task<Offset> Partition::restore_producers() {
  const auto bounds = log_->bounds();
  MR_CO_TRY(auto snapshots, co_await log_->aux(AuxKind::producer_snapshot));
  for (; !snapshots.empty(); snapshots.pop_back()) {
    const auto at = snapshots.back().at;
    if (at <= bounds.end) {
      const auto restored = producers_.restore(snapshots.back().value, now());
      if (restored) {
        snapshot_at_ = at;
        // What producers sent between it and the start is gone: they go on from where they are.
        if (at < bounds.start) producers_.clear();
        co_return std::max(at, bounds.start);
      }
      host_.log.warning("passed over a producer snapshot",
                        {{"partition", to_string(id_)},
                         {"offset", at.value},
                         {"error", to_string(restored.error())}});
    }
    MR_CO_CHECK(co_await log_->put_aux(AuxKind::producer_snapshot, at, {}));
  }
  co_return bounds.start;
}

// Epochs are learnt from `from` on, producers and transactions from `new_from` on.
Task<> Partition::replay(Offset from, Offset new_from) {
  const auto end = log_->bounds().end;
  while (from < end) {
    const ReadRequest step{.from = from, .limit = end, .bytes_max = replay_step_bytes};
    MR_CO_TRY(auto batches, co_await log_->read(step));
    if (batches.empty()) break;
    auto work = [batches = std::move(batches)] { return notes_of(batches); };
    auto walking = on_worker(host_.environment.workers(), std::move(work));
    MR_CO_TRY(const auto notes, co_await std::move(walking));
    for (const auto& note : notes) {
      epochs_.assign(note.header.partition_leader_epoch, note.header.base_offset);
      if (note.header.last_offset() >= new_from) take_note(note.header, note.marker);
      from = note.header.last_offset() + 1;
    }
  }
  co_return {};
}

void Partition::take_note(const BatchHeader& header,
                          const std::optional<TransactionMarker>& marker) {
  if (!marker) return producers_.append(header, now());
  if (const auto row = producers_.end_transaction(header, *marker, now())) aborted_.add(*row);
}

// False: what is stored cannot be used.
Task<bool> Partition::restore_epochs() {
  MR_CO_TRY(const auto stored, co_await log_->aux(AuxKind::leader_epochs));
  if (stored.empty()) co_return false;
  const auto text = stored.back().value.text();
  auto parsed = EpochCache::parse(text);
  if (!parsed) {
    host_.log.warning("rebuilding leader epochs",
                      {{"partition", to_string(id_)}, {"error", to_string(parsed.error())}});
    co_return false;
  }
  epochs_stored_ = text;
  epochs_ = *std::move(parsed);
  const auto bounds = log_->bounds();
  epochs_.truncate_from(bounds.end + 1);  // one that begins at the end may have no records yet
  epochs_.trim_before(bounds.start);
  co_return true;
}

// Everything that replay would have to find again. The snapshot comes last: replay begins behind
// it.
Task<> Partition::store_state() {
  if (log_->bounds().end == Offset{0}) co_return {};
  MR_CO_CHECK(co_await store_epochs());
  MR_CO_CHECK(co_await store_aborted());
  co_return co_await store_producers();
}

Task<> Partition::store_epochs() {
  auto text = epochs_.checkpoint();
  if (text == epochs_stored_) co_return {};
  auto value = Buffer::copy_of(as_bytes(text));
  MR_CO_CHECK(co_await log_->put_aux(AuxKind::leader_epochs, epochs_at, std::move(value)));
  epochs_stored_ = std::move(text);
  co_return {};
}

// Each segment has the rows of the transactions that ended in it.
Task<> Partition::store_aborted() {
  MR_CO_TRY(const auto held, co_await segments_stay_.lock());
  const auto end = log_->bounds().end;
  const auto segments = log_->segments();
  for (const auto& segment : segments) {
    if (segment.next <= aborted_stored_) continue;
    auto rows = aborted_.encode(segment.base, segment.next);
    if (rows.empty()) continue;
    auto put = log_->put_aux(AuxKind::aborted_transactions, segment.base, std::move(rows));
    MR_CO_CHECK(co_await std::move(put));
  }
  aborted_stored_ = end;
  co_return {};
}

// Also in the files, where rows of records that a crash took would be believed later.
Task<> Partition::cut_aborted(Offset from) {
  MR_CO_TRY(const auto held, co_await segments_stay_.lock());
  aborted_.truncate_from(from);
  const auto segments = log_->segments();
  for (const auto& segment : segments) {
    if (segment.next < from) continue;
    auto rows = aborted_.encode(segment.base, from);
    auto put = log_->put_aux(AuxKind::aborted_transactions, segment.base, std::move(rows));
    MR_CO_CHECK(co_await std::move(put));
  }
  co_return {};
}

Task<> Partition::store_producers() {
  const auto at = log_->bounds().end;
  if (at == snapshot_at_) co_return {};
  snapshot_at_ = at;
  co_return co_await log_->put_aux(AuxKind::producer_snapshot, at, producers_.snapshot());
}

Task<> Partition::maintain() {
  auto pass = running_.enter();
  if (closing_ || !pass) co_return {};
  producers_.expire(now(), config_.producer_id_expiration_ms);
  // A pass of compaction would have to begin anew, and a long one never come to its end.
  retention_due_ = compaction_.running;
  if (!retention_due_) MR_CO_CHECK(co_await apply_retention());
  const auto segments = log_->segments();
  if (!segments.empty() && segments.back().base != snapshot_segment_) {
    MR_CO_CHECK(co_await store_state());
    snapshot_segment_ = segments.back().base;
  }
  co_return {};
}

// A follower keeps what its leader keeps.
Task<> Partition::apply_retention() {
  if (!leading_) co_return {};
  const auto plan = plan_retention(log_->segments(), config_, now(), high_watermark_);
  if (!plan) co_return {};
  if (plan->roll_active) MR_CO_CHECK(log_->roll());
  const auto before = log_->bounds();
  MR_CO_CHECK(co_await move_start(plan->first_kept));
  host_.log.info("removed old records", {{"partition", to_string(id_)},
                                         {"from", before.start.value},
                                         {"below", plan->first_kept.value},
                                         {"bytes", before.bytes - log_->bounds().bytes}});
  co_return {};
}

Task<> Partition::move_start(Offset first_kept) {
  MR_CO_CHECK(log_->trim_before(first_kept));
  epochs_.trim_before(first_kept);
  aborted_.trim_before(first_kept);
  notify_watches();
  co_return co_await store_epochs();
}

// One flush at a time; whoever comes meanwhile waits for it and, if it did not reach far enough,
// begins the next, which then serves all who wait.
Task<> Partition::flush_to(Offset end) {
  while (log_->bounds().recovery_point < end) {
    if (flushing_) {
      MR_CO_CHECK(co_await flushed_.wait());
      continue;
    }
    flushing_ = true;
    auto flushed = co_await log_->flush(log_->bounds().end);
    flushing_ = false;
    flushed_.notify_all();
    co_return std::move(flushed);
  }
  co_return {};
}

// What stood behind the recovery point was in the page cache when the last process ended, and may
// be there alone. Whoever started this one does not wait for the disk.
void Partition::flush_recovered() {
  const auto bounds = log_->bounds();
  auto pass = running_.enter();
  if (bounds.recovery_point >= bounds.end || !pass) return;
  auto flushing = [](Partition& self, Gate::Pass inside, Offset end) -> Task<> {
    static_cast<void>(inside);  // keeps the partition open until the end
    co_return co_await self.flush_to(end);
  };
  spawn(host_.shard, flushing(*this, *std::move(pass), bounds.end), "flush after recovery",
        &background_);
}

void Partition::schedule_flush() {
  if (flush_scheduled_ || config_.flush_ms == TopicConfig::never_ms) return;
  auto pass = running_.enter();
  if (!pass) return;
  flush_scheduled_ = true;
  spawn(host_.shard, flush_later(*std::move(pass)), "flush.ms", &background_);
}

Task<> Partition::flush_later(Gate::Pass pass) {
  static_cast<void>(pass);  // keeps the partition open until the end
  const std::chrono::milliseconds delay(std::min(config_.flush_ms, wait_ms_max));
  MR_CO_CHECK(co_await sleep(delay));
  flush_scheduled_ = false;
  co_return co_await flush_to(log_->bounds().end);
}

}  // namespace millrace::kernel
