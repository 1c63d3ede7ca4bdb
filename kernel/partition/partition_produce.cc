// The way of a produce request: checked and prepared, given its place, written, acknowledged.
#include <algorithm>
#include <utility>

#include "kernel/partition/conversion.h"
#include "kernel/partition/partition.h"

namespace millrace::kernel {

namespace {

// So much is written at once, and others of the shard wait for it.
constexpr std::size_t at_once_bytes_max = 1UL << 20;

// What the broker itself appends may come in between so often before all of it is written at once.
constexpr int ahead_attempts = 3;

Producing answered(PartitionProduced answer) {
  return {Pending<>::ready({}), {}, Pending<PartitionProduced>::ready(std::move(answer))};
}

std::size_t bytes_kept(const std::vector<ReadyBatch>& batches) {
  std::size_t bytes = 0;
  for (const auto& batch : batches) bytes += batch.set ? batch.set->bytes() : batch.body.size();
  return bytes;
}

Refusal not_leading() {
  return {ErrorCode::not_leader_or_follower, "this broker does not lead the partition", {}};
}

Refusal storage_failure(const Error& error) {
  const auto code = error.code == Errc::io ? ErrorCode::kafka_storage_error : error_code_of(error);
  return {code, error.detail, {}};
}

}  // namespace

// As Kafka does, tells where the log starts once records have been looked at.
PartitionProduced Partition::refused(Refusal refusal, Offset log_start) const {
  return {.partition = id_.partition,
          .error = refusal.error,
          .message = std::move(refusal.message),
          .record_errors = std::move(refusal.record_errors),
          .log_start = log_start,
          .opens_too_large = refusal.opens_too_large};
}

std::optional<Refusal> Partition::check_context(const ProduceContext& context) {
  if (closing_) return Refusal{ErrorCode::not_leader_or_follower, "the partition is closing", {}};
  if (!serving()) return not_leading();
  if (write_failed_) {
    ask_for_relief();
    return Refusal{ErrorCode::kafka_storage_error, "an earlier write to this log failed", {}};
  }
  if (context.acks < -1 || context.acks > 1) {
    return Refusal{ErrorCode::invalid_required_acks,
                   "acks is " + std::to_string(context.acks) + ", expected -1, 0 or 1",
                   {}};
  }
  if (context.acks == -1) return check_in_sync(ErrorCode::not_enough_replicas);
  return std::nullopt;
}

std::optional<Refusal> Partition::check_in_sync(ErrorCode error) const {
  const auto in_sync = replicas_ ? static_cast<std::int64_t>(replicas_->in_sync().size()) : 1;
  if (config_.min_insync_replicas <= in_sync) return std::nullopt;
  return Refusal{error,
                 "min.insync.replicas is " + std::to_string(config_.min_insync_replicas) +
                     ", in sync are " + std::to_string(in_sync),
                 {}};
}

Producing Partition::produce(const PartitionRecords& records, ProduceContext context) {
  if (auto refusal = check_context(context)) return answered(refused(*std::move(refusal)));
  auto pass = running_.enter();
  MR_ASSERT(pass.has_value());  // closed only after closing_
  auto intake = check_intake(records.records, config_, context.features, host_.codecs);
  if (!intake) return answered(refused(std::move(intake.error())));
  if (intake->needs_worker || draining_) {
    return enqueue(*std::move(intake), context, *std::move(pass));
  }
  const auto prepared = prepare(*intake, config_, host_.codecs, now());
  if (!prepared) return answered(refused(prepared.error(), log_->bounds().start));
  auto appended = append(*prepared);
  if (!appended) return answered(refused(std::move(appended.error()), log_->bounds().start));
  auto acknowledged = acknowledge(*std::move(pass), *std::move(appended), context);
  return {Pending<>::ready({}), {}, start(host_.shard, std::move(acknowledged))};
}

// Preparation begins at once, on the workers; appends keep the order of arrival.
Producing Partition::enqueue(Intake intake, ProduceContext context, Gate::Pass pass) {
  auto preparing = prepare_on_worker(std::move(intake));
  auto [released, when_released] = make_pending<>();
  auto [done, answer] = make_pending<PartitionProduced>();
  queue_.push_back({start(host_.shard, std::move(preparing)), context, std::move(pass),
                    std::move(released), std::move(done)});
  if (!std::exchange(draining_, true)) spawn(host_.shard, drain(), "produce");
  return {Pending<>::ready({}), std::move(when_released), std::move(answer)};
}

Task<Partition::Kept> Partition::prepare_on_worker(Intake intake) {
  const auto limit = opened_limit(intake, config_);
  const auto kept_max = kept_limit(intake, config_);
  auto work = [intake = std::move(intake), config = config_, codecs = host_.codecs, time = now(),
               limit](std::size_t opened_max) -> Result<Prepared> {
    auto prepared = prepare(intake, config, codecs, time, opened_max);
    if (prepared || !prepared.error().opens_too_large || opened_max == limit) return prepared;
    return Error{Errc::too_large, prepared.error().message};
  };
  MemoryBudget::Lease memory;
  if (kept_max > 0) {
    MR_CO_TRY(memory, co_await host_.opening.kept().acquire(kept_max));
  }
  MR_CO_TRY(auto prepared, co_await host_.opening.run(limit, std::move(work)));
  memory.shrink_to(prepared ? bytes_kept(*prepared) : 0);
  co_return Kept{std::move(prepared), std::move(memory)};
}

Task<> Partition::drain() {
  while (!queue_.empty()) {
    auto kept = co_await queue_.front().prepared;
    auto next = std::move(queue_.front());
    queue_.pop_front();
    if (!kept) {
      next.done.resolve(kept.error());
      continue;
    }
    Result<Prepared> prepared = std::move(kept->prepared);
    if (*prepared && (*prepared)->front().set) {
      prepared = co_await place_sets(**std::move(prepared));
      if (!prepared) {
        next.done.resolve(prepared.error());
        continue;
      }
    }
    auto appending = append_in_turns(*std::move(prepared));
    auto appended = co_await std::move(appending);
    if (!appended) {
      next.done.resolve(appended.error());
      continue;
    }
    if (!*appended) {
      next.done.resolve(refused(std::move(appended->error()), log_->bounds().start));
      continue;
    }
    auto finish = [](Task<PartitionProduced> acknowledged,
                     Resolver<PartitionProduced> done) -> Task<> {
      auto result = co_await std::move(acknowledged);
      done.resolve(std::move(result));
      co_return {};
    };
    auto acknowledged = acknowledge(std::move(next.pass), **std::move(appended), next.context);
    spawn(host_.shard, finish(std::move(acknowledged), std::move(next.done)), "produce");
  }
  draining_ = false;
  co_return {};
}

// Requests stand behind the one that is drained; only what the broker itself appends may come
// between, and then the offsets are others.
Task<Partition::Prepared> Partition::place_sets(std::vector<ReadyBatch> batches) {
  while (true) {
    const auto base = log_->bounds().end;
    auto work = [batches, base, config = config_,
                 codecs = host_.codecs]() mutable -> Result<Prepared> {
      return place_message_sets(std::move(batches), base, config, codecs);
    };
    MR_CO_TRY(auto placed, co_await on_worker(host_.environment.workers(), std::move(work)));
    if (!placed || log_->bounds().end == base) co_return std::move(placed);
  }
}

// A batch of an idempotent producer may have been appended before; a request has one such at most.
Checked<Partition::Appended> Partition::append(const std::vector<ReadyBatch>& batches) {
  if (batches.front().header.producer_id < 0) return append_new(batches);
  auto verdict = producers_.check(batches.front().header);
  if (auto* refusal = std::get_if<ProducerStates::Refused>(&verdict)) {
    // What was sent behind a batch that storage has not taken comes again, after that one. Told
    // that it is out of order, librdkafka begins another epoch and sends what other partitions may
    // have.
    if (append_failed_ && refusal->error == ErrorCode::out_of_order_sequence_number) {
      return std::unexpected(Refusal{ErrorCode::kafka_storage_error,
                                     "storage has not taken what comes before this batch",
                                     {}});
    }
    return std::unexpected(Refusal{refusal->error, std::move(refusal->message), {}});
  }
  if (const auto* duplicate = std::get_if<ProducerStates::Duplicate>(&verdict)) {
    return Appended{.term = term_,
                    .answer = {.partition = id_.partition,
                               .base_offset = duplicate->base_offset,
                               .log_start = log_->bounds().start},
                    .end = duplicate->last_offset + 1};
  }
  return append_new(batches);
}

Checked<Partition::Appended> Partition::append_new(const std::vector<ReadyBatch>& batches) {
  if (!sole_leader()) return std::unexpected(not_leading());  // while they were prepared
  const auto base = log_->bounds().end;
  const auto parts = place(batches, base);
  const auto ticket = log_->append(parts);
  if (!ticket) return not_taken(ticket.error());
  append_taken(true);
  for (std::size_t at = 0; at < batches.size(); ++at) {
    auto header = batches[at].header;
    header.base_offset = parts[at].base_offset;
    if (header.producer_id >= 0) producers_.append(header, now());
    traffic_.appended_bytes += header.total_bytes();
  }
  const auto end = parts.back().last_offset + 1;
  const bool flush_due = end - flush_from_ >= config_.flush_messages;
  if (flush_due) flush_from_ = end;
  schedule_flush();
  const auto& header = batches.front().header;
  return Appended{
      .term = term_,
      .answer = {.partition = id_.partition,
                 .base_offset = base,
                 .log_append_time = header.log_append_time() ? header.max_timestamp : Timestamp{},
                 .log_start = log_->bounds().start},
      .end = end,
      .ticket = *ticket,
      .flush_due = flush_due};
}

Checked<Partition::Appended> Partition::not_taken(const Error& error) {
  append_taken(false);
  host_.log.error("append failed", {{"partition", to_string(id_)}, {"error", to_string(error)}});
  return std::unexpected(storage_failure(error));
}

// Others of the shard run while a large one is written; requests of this partition stand behind it.
Task<Checked<Partition::Appended>> Partition::append_in_turns(Prepared prepared) {
  if (!prepared) co_return Checked<Appended>(std::unexpected(std::move(prepared.error())));
  auto* log = log_in_turns(bytes_kept(*prepared));
  for (int attempt = 0; log && attempt < ahead_attempts && appends_anew(*prepared); ++attempt) {
    const auto base = log_->bounds().end;
    auto writing = log->write_ahead(place(*prepared, base));
    const auto ahead = co_await std::move(writing);
    if (!ahead) co_return not_taken(ahead.error());
    if (log_->bounds().end == base) co_return append(*prepared);  // while `ahead` lives
  }
  co_return append(*prepared);
}

// None: so much is written at once, or the storage knows no other way.
WriteAheadLog* Partition::log_in_turns(std::size_t bytes) const noexcept {
  return bytes > at_once_bytes_max ? WriteAheadLog::of(*log_) : nullptr;
}

bool Partition::appends_anew(const std::vector<ReadyBatch>& batches) const {
  if (!sole_leader()) return false;
  const auto& header = batches.front().header;
  return header.producer_id < 0 ||
         std::holds_alternative<ProducerStates::Accepted>(producers_.check(header));
}

// Gives the batches their offsets and our epoch, in fresh headers in front of the bodies as they
// came. Message sets of old formats have their offsets already, in their bodies.
std::vector<BatchParts> Partition::place(const std::vector<ReadyBatch>& batches, Offset base) {
  MutableBuffer headers(batches.size() * batch_header_bytes);
  std::vector<BatchParts> parts;
  parts.reserve(batches.size());
  for (const auto& batch : batches) {
    auto header = batch.header;
    header.base_offset = base;
    header.partition_leader_epoch = leader_epoch_;
    Buffer front;
    if (header.magic == 2) {
      write_batch_header(header, headers.space());
      headers.filled(batch_header_bytes);
      front = headers.share(headers.size() - batch_header_bytes, batch_header_bytes);
    }
    parts.push_back({.header = std::move(front),
                     .body = batch.body,
                     .base_offset = base,
                     .last_offset = header.last_offset(),
                     .max_timestamp = header.max_timestamp});
    base = header.last_offset() + 1;
  }
  return parts;
}

Task<PartitionProduced> Partition::acknowledge(Gate::Pass pass, Appended appended,
                                               ProduceContext context) {
  static_cast<void>(pass);  // keeps the partition open until the end
  if (appended.ticket) {
    auto settled = co_await settle(appended);
    if (!settled) co_return refused(storage_failure(settled.error()));
  }
  if (context.acks == -1 && high_watermark_ < appended.end) {
    auto reaching = reach_high_watermark(appended.end, appended.term);
    auto reached = co_await with_deadline(std::move(reaching), context.timeout);
    if (!reached && appended.term == term_) {
      co_return refused({error_code_of(reached.error()), reached.error().detail, {}});
    }
  }
  // Who may be led by another one by now acknowledges nothing: it may be gone there.
  if (appended.term != term_ || !sole_leader()) co_return refused(not_leading());
  if (context.acks == -1) {
    if (auto refusal = check_in_sync(ErrorCode::not_enough_replicas_after_append)) {
      co_return refused(*std::move(refusal));
    }
  }
  co_return std::move(appended.answer);
}

// Written, flushed where that is due, readable.
Task<> Partition::settle(const Appended& appended) {
  auto written = co_await log_->written(*appended.ticket);
  if (written && appended.flush_due) written = co_await flush_to(appended.end);
  if (!written) {
    lose_write();
    host_.log.error("a write was lost; the log takes no more until it is opened again",
                    {{"partition", to_string(id_)}, {"error", to_string(written.error())}});
    co_return std::move(written);
  }
  if (appended.term == term_) advance(appended.end);
  co_return {};
}

// Of another term, other records may stand there.
Task<> Partition::reach_high_watermark(Offset end, std::uint64_t term) {
  while (term == term_ && high_watermark_ < end) {
    if (closing_) co_return Error{Errc::closed, "the partition is closing"};
    MR_CO_CHECK(co_await high_watermark_moved_.wait());
  }
  if (term != term_) co_return Error{Errc::closed, "this broker leads the partition no more"};
  co_return {};
}

}  // namespace millrace::kernel
