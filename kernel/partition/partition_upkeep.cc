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

Result<std::vector<BatchHeader>> headers_of(const Payload& batches) {
  std::vector<BatchHeader> headers;
  MR_CHECK(for_each_batch(batches, [&headers](const FoundBatch& batch) {
    headers.push_back(batch.header);
    return true;
  }));
  return headers;
}

}  // namespace

Task<> Partition::recover() {
  MR_CO_CHECK(co_await restore_epochs());
  MR_CO_TRY(const auto from, co_await restore_producers());
  MR_CO_CHECK(co_await replay(from));
  const auto segments = log_->segments();
  if (!segments.empty()) snapshot_segment_ = segments.back().base;
  if (epochs_.assign(leader_epoch_, log_->bounds().end)) MR_CO_CHECK(co_await store_epochs());
  co_return {};
}

// Restores the newest snapshot that fits the log, and answers from where batches must be replayed.
// Snapshots beyond the end belong to records that a crash took: other records would follow them.
Task<Offset> Partition::restore_producers() {
  const auto bounds = log_->bounds();
  MR_CO_TRY(auto snapshots, co_await log_->aux(AuxKind::producer_snapshot));
  for (; !snapshots.empty(); snapshots.pop_back()) {
    const auto at = snapshots.back().at;
    if (at <= bounds.end) {
      const auto restored = producers_.restore(snapshots.back().value);
      if (restored) {
        snapshot_at_ = at;
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

Task<> Partition::replay(Offset from) {
  const auto end = log_->bounds().end;
  while (from < end) {
    const ReadRequest step{.from = from, .limit = end, .bytes_max = replay_step_bytes};
    MR_CO_TRY(auto batches, co_await log_->read(step));
    if (batches.empty()) break;
    auto work = [batches = std::move(batches)] { return headers_of(batches); };
    auto walking = on_worker(host_.environment.workers(), std::move(work));
    MR_CO_TRY(const auto headers, co_await std::move(walking));
    for (const auto& header : headers) {
      producers_.append(header, now());
      epochs_.assign(header.partition_leader_epoch, header.base_offset);
      from = header.last_offset() + 1;
    }
  }
  co_return {};
}

Task<> Partition::restore_epochs() {
  MR_CO_TRY(const auto stored, co_await log_->aux(AuxKind::leader_epochs));
  if (stored.empty()) co_return {};
  auto parsed = EpochCache::parse(stored.back().value.text());
  if (!parsed) {
    host_.log.warning("rebuilding leader epochs",
                      {{"partition", to_string(id_)}, {"error", to_string(parsed.error())}});
    co_return {};
  }
  epochs_ = *std::move(parsed);
  const auto bounds = log_->bounds();
  epochs_.truncate_from(bounds.end + 1);  // one that begins at the end may have no records yet
  epochs_.trim_before(bounds.start);
  co_return {};
}

Task<> Partition::store_epochs() {
  auto text = Buffer::copy_of(epochs_.checkpoint());
  co_return co_await log_->put_aux(AuxKind::leader_epochs, epochs_at, std::move(text));
}

Task<> Partition::maintain() {
  auto pass = running_.enter();
  if (closing_ || !pass) co_return {};
  producers_.expire(now(), config_.producer_id_expiration_ms);
  MR_CO_CHECK(co_await apply_retention());
  const auto segments = log_->segments();
  if (!segments.empty() && segments.back().base != snapshot_segment_) {
    MR_CO_CHECK(co_await snapshot_producers());
    snapshot_segment_ = segments.back().base;
  }
  co_return {};
}

Task<> Partition::apply_retention() {
  const auto plan = plan_retention(log_->segments(), config_, now(), high_watermark_);
  if (!plan) co_return {};
  if (plan->roll_active) MR_CO_CHECK(log_->roll());
  const auto before = log_->bounds();
  MR_CO_CHECK(log_->trim_before(plan->first_kept));
  host_.log.info("removed old records", {{"partition", to_string(id_)},
                                         {"from", before.start.value},
                                         {"below", plan->first_kept.value},
                                         {"bytes", before.bytes - log_->bounds().bytes}});
  epochs_.trim_before(plan->first_kept);
  co_return co_await store_epochs();
}

Task<> Partition::snapshot_producers() {
  const auto at = log_->bounds().end;
  if (at == snapshot_at_) co_return {};
  snapshot_at_ = at;
  co_return co_await log_->put_aux(AuxKind::producer_snapshot, at, producers_.snapshot());
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
