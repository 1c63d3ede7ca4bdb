// What the broker itself writes and reads: events of aggregates, ends of transactions.
#include <utility>

#include "kernel/partition/partition.h"

namespace millrace::kernel {

Checked<OwnAppend> Partition::append_own(const Buffer& batch) {
  if (auto refusal = check_context({})) return std::unexpected(*std::move(refusal));
  if (auto refusal = check_size(batch.size(), config_)) return std::unexpected(*std::move(refusal));
  auto pass = running_.enter();
  MR_ASSERT(pass.has_value());  // closed only after closing_
  auto header = read_batch_header(batch);
  MR_ASSERT(header.has_value());  // made by us
  std::vector<ReadyBatch> ready(1);
  ready.front().header = *header;
  ready.front().body = batch.slice(batch_header_bytes);
  auto appended = append_new(ready);
  if (!appended) return std::unexpected(std::move(appended.error()));
  return own(*std::move(pass), *std::move(appended));
}

Checked<OwnAppend> Partition::append_marker(std::int64_t producer_id, std::int16_t producer_epoch,
                                            const TransactionMarker& marker) {
  if (auto refusal = check_context({})) return std::unexpected(*std::move(refusal));
  auto verdict = producers_.check_marker(producer_id, producer_epoch, marker);
  if (verdict) return std::unexpected(Refusal{verdict->error, std::move(verdict->message), {}});
  auto pass = running_.enter();
  MR_ASSERT(pass.has_value());  // closed only after closing_
  const auto batch = write_marker(producer_id, producer_epoch, marker, now());
  auto header = read_batch_header(batch);
  MR_ASSERT(header.has_value());  // made by us
  std::vector<ReadyBatch> ready(1);
  ready.front().header = *header;
  ready.front().body = batch.slice(batch_header_bytes);
  auto appended = append_new(ready);
  if (!appended) return std::unexpected(std::move(appended.error()));
  header->base_offset = appended->answer.base_offset;
  // Before the high watermark passes it, which settles the transaction.
  take_note(*header, marker);
  return own(*std::move(pass), *std::move(appended));
}

OwnAppend Partition::own(Gate::Pass pass, Appended appended) {
  OwnAppend done{.base = appended.answer.base_offset, .end = appended.end, .written = {}};
  auto settling = settle_own(std::move(pass), std::move(appended));
  done.written = start(host_.shard, std::move(settling));
  return done;
}

Task<> Partition::settle_own(Gate::Pass pass, Appended appended) {
  static_cast<void>(pass);  // keeps the partition open until the end
  co_return co_await settle(appended);
}

Task<> Partition::reached(Offset end) {
  auto pass = running_.enter();
  if (closing_ || !pass) co_return Error{Errc::closed, "the partition is closing"};
  co_return co_await reach_high_watermark(end, term_);
}

Task<Payload> Partition::read_own(Offset from, std::uint64_t bytes_max) {
  auto pass = running_.enter();
  if (closing_ || !pass) co_return Error{Errc::closed, "the partition is closing"};
  const auto end = log_->bounds().end;
  if (from == end) co_return Payload();
  const ReadRequest wanted{.from = from, .limit = end, .bytes_max = bytes_max};
  co_return co_await log_->read(wanted);
}

Task<std::vector<AuxEntry>> Partition::aggregate_snapshots() {
  auto pass = running_.enter();
  if (closing_ || !pass) co_return Error{Errc::closed, "the partition is closing"};
  co_return co_await log_->aux(AuxKind::aggregate_snapshot);
}

Task<> Partition::put_aggregate_snapshot(Offset at, Buffer value) {
  auto pass = running_.enter();
  if (closing_ || !pass) co_return Error{Errc::closed, "the partition is closing"};
  MR_CO_CHECK(co_await flush_to(at));
  co_return co_await log_->put_aux(AuxKind::aggregate_snapshot, at, std::move(value));
}

}  // namespace millrace::kernel
