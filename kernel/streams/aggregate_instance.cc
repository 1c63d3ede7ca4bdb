// Calls of an aggregate, and what becomes of what they emit.
#include "kernel/streams/aggregate_instance.h"

#include <exception>
#include <utility>

#include "kernel/env/spawn_held.h"
#include "kernel/streams/snapshots.h"

namespace millrace::kernel {

namespace {

// A timer, an outcome or a change of the cluster whose events were not appended is told again.
constexpr Duration retell_after = std::chrono::seconds(1);

// What the client is told when an append is refused.
ErrorCode code_of(const Refusal& refusal) {
  switch (refusal.error) {
    case ErrorCode::message_too_large:
    case ErrorCode::record_list_too_large: return refusal.error;
    case ErrorCode::not_leader_or_follower: return ErrorCode::not_coordinator;
    default: return ErrorCode::coordinator_not_available;
  }
}

}  // namespace

AggregateInstance::AggregateInstance(AggregateHost& host, AggregateOwner& owner,
                                     std::shared_ptr<Partition> partition, TopicPartition subject,
                                     std::shared_ptr<AggregateFactory> maker,
                                     std::unique_ptr<PartitionAggregate> aggregate,
                                     CompressionId compression)
    : host_(host),
      owner_(owner),
      partition_(std::move(partition)),
      subject_(std::move(subject)),
      maker_(std::move(maker)),
      aggregate_(std::move(aggregate)),
      compression_(compression),
      applied_(partition_->offsets().log_start) {}

AggregateInstance::~AggregateInstance() = default;

// ---- load ----

Result<> AggregateInstance::restore(SnapshotReader& in, Offset at) {
  try {
    MR_CHECK(aggregate_->restore(in));
  } catch (...) {
    return thrown_error();
  }
  applied_ = std::max(at, applied_);
  return {};
}

Result<> AggregateInstance::replay(const ReplayBatch& batch) {
  const auto& header = batch.header;
  if (header.magic < 2) {
    for (const auto& message : batch.legacy) {
      if (message.offset < applied_) continue;
      RecordView record{.offset = message.offset, .timestamp = message.timestamp, .headers = {}};
      if (message.key) record.key = message.key->bytes();
      if (message.value) record.value = message.value->bytes();
      MR_CHECK(
          apply_one(record, {.offset = message.offset, .time = message.timestamp, .replay = true}));
      applied_ = message.offset + 1;
    }
    return {};
  }
  events_since_ += static_cast<std::uint64_t>(std::max(header.record_count, 0));
  bytes_since_ += header.total_bytes();
  if (!header.control()) return apply(header, batch.records, true);
  if (batch.marker) {
    const EventInfo info{.offset = header.base_offset,
                         .time = header.max_timestamp,
                         .replay = true,
                         .producer_id = header.producer_id,
                         .producer_epoch = header.producer_epoch,
                         .transactional = true};
    try {
      aggregate_->end_transaction(header.producer_id, header.producer_epoch, batch.marker->commit,
                                  info);
    } catch (...) {
      return thrown_error();
    }
  }
  applied_ = header.last_offset() + 1;
  return {};
}

Result<> AggregateInstance::serve() {
  const auto ended = call([this] { aggregate_->loaded(*this); });
  if (ended != Ended::well) return Error{Errc::unsupported, "its first events are not appended"};
  follow();
  return {};
}

// ---- calls ----

void AggregateInstance::begin_call() {
  MR_ASSERT(!in_call_);
  in_call_ = true;
}

AggregateInstance::Ended AggregateInstance::end_call(std::optional<Error> failure) {
  in_call_ = false;
  if (!failure) return commit();
  events_.reset();
  effects_.clear();
  // Who has made it throw does not get it to throw again and again.
  if (current_asker_) {
    std::exchange(current_asker_, {})
        .refuse(host_.shard, ErrorCode::unknown_server_error, failure->detail);
  }
  refuse_answers(ErrorCode::coordinator_not_available, failure->detail);
  fail(*std::move(failure));
  return Ended::failed;
}

// The events of the call that has just ended, then its answers and effects.
AggregateInstance::Ended AggregateInstance::commit() {
  auto ended = Ended::well;
  if (events_) {
    auto batch = std::move(*events_).finish(host_.codecs);
    events_.reset();
    if (!batch) {
      refuse_answers(ErrorCode::coordinator_not_available, batch.error().detail);
      effects_.clear();
      return Ended::not_appended;
    }
    in_call_ = true;  // what the append moves is looked at when the events are applied
    auto appended = partition_->append_own(*batch);
    in_call_ = false;
    if (!appended) {
      refuse_answers(code_of(appended.error()), appended.error().message);
      effects_.clear();
      return Ended::not_appended;
    }
    auto header = read_batch_header(*batch);
    const auto records = open_records(*header, *batch, host_.codecs, records_bytes_max);
    MR_ASSERT(records.has_value());  // made by us
    header->base_offset = appended->base;
    header->last_offset_delta = static_cast<std::int32_t>(appended->end - appended->base) - 1;
    MR_ASSERT(appended->base == applied_);  // events of others have been read before the call
    auto applied = apply(*header, *records, false);
    events_since_ += static_cast<std::uint64_t>(header->record_count);
    bytes_since_ += batch->size();
    if (!applied) {
      refuse_answers(ErrorCode::coordinator_not_available, applied.error().detail);
      effects_.clear();
      fail(std::move(applied).error());
      return Ended::failed;
    }
    note_write(*std::move(appended));
    follow();
  }
  give_answers();
  if (snapshots_ && bytes_since_ >= snapshot_size_ &&
      (events_since_ >= host_.snapshot_events || bytes_since_ >= host_.snapshot_bytes)) {
    owner_.snapshot_due();
  }
  return ended;
}

void AggregateInstance::give_answers() {
  if (answers_.empty() && effects_.empty()) return;
  if (partition_->high_watermark() >= applied_) {
    for (auto& one : answers_) send(std::move(one));
    answers_.clear();
    if (!effects_.empty()) begin(std::exchange(effects_, {}));
    return;
  }
  held_.push_back({applied_, std::exchange(answers_, {}), std::exchange(effects_, {})});
}

void AggregateInstance::refuse_answers(ErrorCode error, const std::string& detail) {
  for (auto& one : std::exchange(answers_, {})) one.asker.refuse(host_.shard, error, detail);
}

void AggregateInstance::command(std::string_view key, std::unique_ptr<Message> body,
                                ReplyTo reply_to, Asker asker) {
  if (!behind()) return decide(key, *body, reply_to, std::move(asker));
  waiting_.push_back(
      [this, key = std::string(key), body = std::move(body), reply_to,
       asker = std::move(asker)]() mutable { decide(key, *body, reply_to, std::move(asker)); });
}

void AggregateInstance::decide(std::string_view key, Message& body, ReplyTo reply_to, Asker asker) {
  if (dropped_) return asker.refuse(host_.shard, drop_answer_.error, drop_answer_.detail);
  current_ = reply_to;
  current_asker_ = std::move(asker);
  Command command{.key = key, .body = body, .reply_to = reply_to};
  call([&] { aggregate_->decide(command, *this); });
  current_ = ReplyTo::nobody;
  if (!current_asker_) return;
  park(reply_to, std::exchange(current_asker_, {}));
}

// The answer comes later.
void AggregateInstance::park(ReplyTo reply_to, Asker asker) {
  if (dropped_) return asker.refuse(host_.shard, drop_answer_.error, drop_answer_.detail);
  if (asker.is_home(host_.shard)) {
    asker.on_abandoned([self = weak_from_this(), reply_to] {
      if (const auto alive = self.lock()) alive->release(reply_to);
    });
  }
  parked_.insert_or_assign(reply_to, std::move(asker));
}

void AggregateInstance::release(ReplyTo reply_to) noexcept { parked_.erase(reply_to); }

void AggregateInstance::query(std::string_view key, std::unique_ptr<Message> question,
                              Asker asker) {
  if (!behind()) return answer_query(key, *question, std::move(asker));
  waiting_.push_back(
      [this, key = std::string(key), question = std::move(question),
       asker = std::move(asker)]() mutable { answer_query(key, *question, std::move(asker)); });
}

void AggregateInstance::answer_query(std::string_view key, const Message& question, Asker asker) {
  if (dropped_) return asker.refuse(host_.shard, drop_answer_.error, drop_answer_.detail);
  AggregateAnswer answer;
  try {
    auto found = aggregate_->query(key, question);
    if (found) {
      answer.message = *std::move(found);
    } else {
      answer.error = error_code_of(found.error());
      answer.detail = std::move(found).error().detail;
    }
  } catch (...) {
    // It has changed nothing, so nothing is lost.
    const auto error = thrown_error();
    answer = {ErrorCode::unknown_server_error, error.detail, nullptr};
    host_.log.error("an aggregate has thrown when it was asked",
                    {{"partition", to_string(partition_->id())}, {"error", error.detail}});
  }
  answers_.push_back({std::move(asker), std::move(answer)});
  give_answers();
}

void AggregateInstance::cluster_changed() {
  when_caught_up([this] {
    if (call([this] { aggregate_->cluster_changed(*this); }) == Ended::not_appended) {
      later([this] { cluster_changed(); });
    }
  });
}

// What an append has refused is tried again.
void AggregateInstance::later(Job body) {
  if (dropped_) return;
  const auto id = next_retry_++;
  auto again = [self = weak_from_this(), id, body = std::move(body)]() mutable {
    const auto alive = self.lock();
    if (!alive || alive->dropped_) return;
    alive->retries_.erase(id);
    body();
  };
  retries_[id] = host_.shard.schedule(now() + retell_after, std::move(again));
}

// ---- what it does in a call ----

void AggregateInstance::emit(Bytes key, std::optional<Bytes> value) {
  MR_ASSERT(in_call_);
  if (!events_) events_.emplace(BatchBuilder::Settings{.compression = compression_});
  events_->add(wall(), key, value);
}

Asker AggregateInstance::take_asker(ReplyTo to) {
  if (to == ReplyTo::nobody) return {};
  if (to == current_) return std::exchange(current_asker_, {});
  const auto found = parked_.extract(to);
  return found.empty() ? Asker() : std::move(found.mapped());
}

void AggregateInstance::answer(ReplyTo to, std::unique_ptr<Message> message) {
  auto asker = take_asker(to);
  if (!asker) return;
  answers_.push_back({std::move(asker), {ErrorCode::none, {}, std::move(message)}});
}

void AggregateInstance::refuse(ReplyTo to, ErrorCode error, std::string detail) {
  auto asker = take_asker(to);
  if (!asker) return;
  answers_.push_back({std::move(asker), {error, std::move(detail), nullptr}});
}

void AggregateInstance::set_timer(std::string_view name, Duration after) {
  auto found = timers_.find(name);
  if (found == timers_.end()) {
    found = timers_.emplace(std::string(name), TimerId::none).first;
  } else {
    host_.shard.unschedule(found->second);
  }
  const auto* kept = &found->first;
  found->second = host_.shard.schedule(now() + after, [this, kept] { run_timer(*kept); });
}

void AggregateInstance::cancel_timer(std::string_view name) {
  const auto found = timers_.find(name);
  if (found == timers_.end()) return;
  host_.shard.unschedule(found->second);
  timers_.erase(found);
}

// The name is a copy: its place goes, and may be taken again in the call.
void AggregateInstance::run_timer(std::string name) {
  timers_.erase(timers_.find(name));
  const auto self = shared_from_this();
  when_caught_up([this, name = std::move(name)] {
    const auto ended = call([this, &name] { aggregate_->timer(name, *this); });
    if (ended == Ended::not_appended && !timers_.contains(name)) set_timer(name, retell_after);
  });
}

void AggregateInstance::start(Effect effect) { effects_.push_back(std::move(effect)); }

// ---- what follows an append ----

Result<> AggregateInstance::apply_one(const RecordView& record, const EventInfo& info) {
  try {
    auto evolved = aggregate_->evolve(record, info);
    if (evolved) return {};
    auto error = std::move(evolved).error();
    error.detail = "event at offset " + std::to_string(info.offset.value) + ": " + error.detail;
    return error;
  } catch (...) {
    auto error = thrown_error();
    error.detail = "event at offset " + std::to_string(info.offset.value) + ": " + error.detail;
    return error;
  }
}

Result<> AggregateInstance::apply(const BatchHeader& header, const Buffer& records, bool replay) {
  EventInfo info{.offset = {},
                 .time = {},
                 .replay = replay,
                 .producer_id = header.producer_id,
                 .producer_epoch = header.producer_epoch,
                 .transactional = header.transactional()};
  Result<> applied;
  MR_CHECK(for_each_record(header, records, [&](const RecordView& record) {
    if (record.offset < applied_) return true;
    info.offset = record.offset;
    info.time = record.timestamp;
    applied = apply_one(record, info);
    return applied.has_value();
  }));
  MR_CHECK(applied);
  applied_ = header.last_offset() + 1;
  return {};
}

void AggregateInstance::note_write(OwnAppend appended) {
  if (appended.written.is_ready()) {
    auto written = appended.written.await_resume();
    if (!written) fail(std::move(written).error());
    return;
  }
  auto watch = [](std::shared_ptr<AggregateInstance> self, Pending<> written) -> Task<> {
    auto result = co_await written;
    if (!result) self->fail(std::move(result).error());
    co_return {};
  };
  spawn_held(host_.running, host_.shard, watch(shared_from_this(), std::move(appended.written)),
             "append");
}

void AggregateInstance::fail(Error why) {
  if (dropped_) return;
  // The owner drops this, which something is still under way of.
  dropped_ = true;
  host_.shard.post([self = shared_from_this(), why = std::move(why)]() mutable {
    if (self->aggregate_) self->owner_.failed(std::move(why));
  });
}

void AggregateInstance::drop(ErrorCode error, std::string_view detail) noexcept {
  dropped_ = true;
  drop_answer_ = {error, std::string(detail), nullptr};
  stop();
  scope_.cancel();
  for (const auto& [name, timer] : timers_) host_.shard.unschedule(timer);
  timers_.clear();
  for (const auto& [id, timer] : retries_) host_.shard.unschedule(timer);
  retries_.clear();
  running_.clear();
  for (auto& held : std::exchange(held_, {})) {
    for (auto& one : held.answers) one.asker.refuse(host_.shard, error, drop_answer_.detail);
  }
  for (auto& [token, asker] : std::exchange(parked_, {})) {
    asker.refuse(host_.shard, error, drop_answer_.detail);
  }
  for (auto& job : std::exchange(waiting_, {})) job();  // they find that it is dropped
  aggregate_.reset();
}

Result<Buffer> AggregateInstance::snapshot() {
  SnapshotFileWriter writer;
  try {
    if (auto made = aggregate_->snapshot(writer); !made) {
      snapshots_ = made.error().code != Errc::unsupported;
      return std::move(made).error();
    }
  } catch (...) {
    return thrown_error();
  }
  auto file = std::move(writer).finish(applied_);
  events_since_ = 0;
  bytes_since_ = 0;
  snapshot_size_ = file.size();
  return file;
}

}  // namespace millrace::kernel
