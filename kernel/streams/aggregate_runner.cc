#include "kernel/streams/aggregate_runner.h"

#include <algorithm>
#include <utility>

#include "kernel/env/spawn_held.h"
#include "kernel/streams/snapshots.h"

namespace millrace::kernel {

namespace {

constexpr Duration reload_first = std::chrono::milliseconds(100);
constexpr Duration reload_longest = std::chrono::seconds(30);

// So much of the log is read and opened on a worker while what came before is applied.
constexpr std::uint64_t load_step_bytes = 4UL << 20;
// How long a load may hold its shard at a time.
constexpr Duration turn_max = std::chrono::milliseconds(2);
// A load takes some milliseconds, mostly, and whoever has made the topic by asking gets the answer.
constexpr Duration load_wait_max = std::chrono::seconds(5);
constexpr std::size_t calls_waiting_max = 100;
// How long events may take to be on all replicas when another version is to take over.
constexpr Duration settle_max = std::chrono::seconds(5);
// What takes less to replay is not worth a snapshot at the end.
constexpr std::uint64_t closing_events_min = 1000;

Task<> yield_turn(Shard& shard) {
  auto [resolver, pending] = make_pending<>();
  shard.post([mine = std::move(resolver)]() mutable { mine.resolve(); });
  co_return co_await pending;
}

}  // namespace

AggregateRunner::AggregateRunner(AggregateHost& host, std::shared_ptr<AggregateFactory> factory,
                                 CompressionId compression, ShardState& shard,
                                 std::shared_ptr<Partition> partition, std::optional<Uuid> beside)
    : host_(host),
      factory_(std::move(factory)),
      compression_(compression),
      shard_(shard),
      partition_(std::move(partition)),
      beside_(beside),
      subject_(partition_->id()),
      backoff_(reload_first, reload_longest) {}

void AggregateRunner::start() {
  spawn_held(host_.running, host_.shard, load(shared_from_this(), life_, nullptr), "aggregate load",
             &scope_);
}

// ---- calls ----

bool AggregateRunner::refuse(Asker& asker) const {
  switch (state_) {
    case State::serving: return false;
    case State::loading:
      asker.refuse(host_.shard, ErrorCode::coordinator_load_in_progress, "it is being loaded");
      return true;
    case State::failed:
      asker.refuse(host_.shard, ErrorCode::coordinator_not_available, why_not_);
      return true;
    case State::ended:
      asker.refuse(host_.shard, ErrorCode::not_coordinator, "its partition is not here any more");
      return true;
  }
  return true;
}

bool AggregateRunner::may_wait() const {
  return state_ == State::loading && !patience_over_ && waiting_.size() < calls_waiting_max;
}

void AggregateRunner::wait(Waiting call) {
  waiting_.push_back(std::move(call));
  if (patience_ != TimerId::none) return;
  patience_ = host_.shard.schedule(host_.shard.now() + load_wait_max, [this] {
    patience_ = TimerId::none;
    patience_over_ = true;
    wait_no_more();
  });
}

// As the state is now they are made, or refused.
void AggregateRunner::wait_no_more() {
  host_.shard.unschedule(std::exchange(patience_, TimerId::none));
  for (auto& call : std::exchange(waiting_, {})) {
    if (call.asker.is_abandoned(host_.shard)) continue;
    if (call.reply_to) {
      command(call.key, std::move(call.body), *call.reply_to, std::move(call.asker));
    } else {
      query(call.key, std::move(call.body), std::move(call.asker));
    }
  }
}

void AggregateRunner::command(std::string_view key, std::unique_ptr<Message> body, ReplyTo reply_to,
                              Asker asker) {
  if (may_wait()) return wait({std::string(key), std::move(body), reply_to, std::move(asker)});
  if (refuse(asker)) return;
  instance_->command(key, std::move(body), reply_to, std::move(asker));
}

void AggregateRunner::query(std::string_view key, std::unique_ptr<Message> question, Asker asker) {
  if (may_wait()) {
    return wait({std::string(key), std::move(question), std::nullopt, std::move(asker)});
  }
  if (refuse(asker)) return;
  instance_->query(key, std::move(question), std::move(asker));
}

void AggregateRunner::release(ReplyTo reply_to) noexcept {
  if (instance_) instance_->release(reply_to);
  std::erase_if(waiting_, [reply_to](const Waiting& call) { return call.reply_to == reply_to; });
}

void AggregateRunner::cluster_changed() {
  if (state_ == State::serving) instance_->cluster_changed();
}

// ---- its life ----

void AggregateRunner::drop(ErrorCode error, std::string_view detail) {
  if (!instance_) return;
  const auto dropped = std::exchange(instance_, nullptr);
  dropped->drop(error, detail);
}

void AggregateRunner::end() {
  state_ = State::ended;
  scope_.cancel();
  give_up();
  drop(ErrorCode::not_coordinator, "its partition is not here any more");
  wait_no_more();
}

Task<> AggregateRunner::close() {
  Offset at;
  Buffer file;
  const bool worth = instance_ && instance_->events_since_snapshot() >= closing_events_min &&
                     partition_->high_watermark() >= instance_->applied() &&
                     take_snapshot(at, file);
  end();
  if (worth) co_return co_await partition_->put_aggregate_snapshot(at, std::move(file));
  co_return {};
}

void AggregateRunner::failed(Error why) {
  if (state_ != State::serving) return;
  host_.log.error("an aggregate has failed; it is loaded again",
                  {{"partition", to_string(id())}, {"error", to_string(why)}});
  load_later(why);
}

void AggregateRunner::load_later(const Error& why) {
  state_ = State::failed;
  why_not_ = "it has failed, and is loaded again soon: " + why.detail;
  drop(ErrorCode::coordinator_not_available, why_not_);
  wait_no_more();
  auto again = [](std::shared_ptr<AggregateRunner> self, std::uint64_t life,
                  Duration wait) -> Task<> {
    MR_CO_CHECK(co_await sleep(wait));
    if (self->life_ == life) self->start();
    co_return {};
  };
  spawn_held(host_.running, host_.shard, again(shared_from_this(), life_, backoff_.next()),
             "aggregate reload", &scope_);
}

Task<> AggregateRunner::load(std::shared_ptr<AggregateRunner> self, std::uint64_t life,
                             Instance prepared) {
  static_cast<void>(self);  // stays until this ends
  const auto began = host_.shard.now();
  auto loaded = prepared ? Result<Instance>(std::move(prepared)) : co_await load_once(factory_);
  if (loaded) {
    auto completed = co_await complete(**loaded);
    if (!completed) {
      (*loaded)->drop(ErrorCode::coordinator_not_available, completed.error().detail);
      loaded = std::move(completed).error();
    }
  }
  if (state_ == State::ended || partition_->closing() || life != life_) {
    if (loaded) (*loaded)->drop(ErrorCode::not_coordinator, "");
    co_return {};
  }
  Result<> served = loaded ? Result<>() : Result<>(loaded.error());
  if (served) {
    instance_ = *loaded;
    state_ = State::serving;
    served = instance_->serve();
  }
  if (!served) {
    host_.log.error("an aggregate cannot be loaded; it is tried again",
                    {{"partition", to_string(id())}, {"error", to_string(served.error())}});
    load_later(served.error());
    co_return {};
  }
  const auto took =
      std::chrono::duration_cast<std::chrono::milliseconds>(host_.shard.now() - began);
  host_.log.debug("an aggregate is loaded", {{"partition", to_string(id())},
                                             {"events", instance_->events_since_snapshot()},
                                             {"ms", took.count()}});
  backoff_ = Backoff(reload_first, reload_longest);
  wait_no_more();
  co_return {};
}

// Before anybody asks: it knows all events, and what it sees of the cluster is what there is.
Task<> AggregateRunner::complete(AggregateInstance& instance) {
  MR_CO_CHECK(co_await shard_.joined());
  MR_CO_CHECK(co_await replay(instance));
  // What another replica may not have, another leader would not know of.
  co_return co_await partition_->reached(instance.applied());
}

Task<AggregateRunner::Instance> AggregateRunner::load_once(
    std::shared_ptr<AggregateFactory> maker) {
  if (beside_) MR_CO_CHECK(co_await find_subject());
  MR_CO_TRY(auto instance, co_await restored(std::move(maker)));
  auto replayed = co_await replay(*instance);
  if (replayed) co_return std::move(instance);
  instance->drop(ErrorCode::coordinator_not_available, replayed.error().detail);
  co_return replayed.error();
}

// By its id: a topic of the same name may be another one.
Task<> AggregateRunner::find_subject() {
  MR_CO_TRY(const auto cluster, co_await shard_.joined());
  const auto found = cluster->names.find(*beside_);
  if (found == cluster->names.end()) {
    co_return Error{Errc::not_found, "the topic that it is beside is gone"};
  }
  subject_.topic = found->second;
  co_return {};
}

Result<AggregateRunner::Instance> AggregateRunner::make(std::shared_ptr<AggregateFactory> maker) {
  try {
    auto made = maker->make(subject_);
    if (!made) return Error{Errc::internal, "its factory makes nothing"};
    return std::make_shared<AggregateInstance>(host_, static_cast<AggregateOwner&>(*this),
                                               partition_, subject_, std::move(maker),
                                               std::move(made), compression_);
  } catch (const std::exception& e) {
    return Error{Errc::internal, std::string("its factory has thrown: ") + e.what()};
  } catch (...) {
    return Error{Errc::internal, "its factory has thrown"};
  }
}

// As the newest snapshot that is whole says, or new.
Task<AggregateRunner::Instance> AggregateRunner::restored(std::shared_ptr<AggregateFactory> maker) {
  MR_CO_TRY(auto snapshots, co_await partition_->aggregate_snapshots());
  for (; !snapshots.empty(); snapshots.pop_back()) {
    auto& newest = snapshots.back();
    if (newest.at > partition_->log_end()) {
      // Of events that a crash has taken: others will stand there.
      MR_CO_CHECK(co_await partition_->put_aggregate_snapshot(newest.at, {}));
      continue;
    }
    MR_CO_TRY(auto instance, make(maker));
    auto reader = SnapshotFileReader::open(std::move(newest.value), newest.at);
    auto read = reader ? instance->restore(*reader, newest.at) : Result<>(reader.error());
    if (read) co_return std::move(instance);
    instance->drop(ErrorCode::coordinator_not_available, "");
    if (read.error().code == Errc::unsupported) break;  // it has none any more
    host_.log.warning("passed over a snapshot of an aggregate; more of its log is replayed",
                      {{"partition", to_string(id())},
                       {"offset", newest.at.value},
                       {"error", to_string(read.error())}});
  }
  MR_CO_TRY(auto fresh, make(std::move(maker)));
  co_return std::move(fresh);
}

Task<> AggregateRunner::replay(AggregateInstance& instance) {
  auto& workers = host_.environment.workers();
  CancelScope* scope = co_await this_scope();
  const auto begin = [&](Offset from) {
    return millrace::start(
        host_.shard, read_step(partition_, from, load_step_bytes, host_.codecs, workers), scope);
  };
  auto next = begin(instance.applied());
  auto turn_began = host_.shard.now();
  while (true) {
    auto step = co_await next;
    if (!step) co_return std::move(step).error();
    if (step->batches.empty()) co_return {};
    next = begin(step->next);
    for (const auto& batch : step->batches) {
      MR_CO_CHECK(instance.replay(batch));
      if (host_.shard.now() - turn_began < turn_max) continue;
      MR_CO_CHECK(co_await yield_turn(host_.shard));
      turn_began = host_.shard.now();
    }
  }
}

// ---- another version ----

Task<> AggregateRunner::prepare(std::shared_ptr<AggregateFactory> next) {
  return load_beside(shared_from_this(), std::move(next)).within(scope_);
}

Task<> AggregateRunner::load_beside(std::shared_ptr<AggregateRunner> self,
                                    std::shared_ptr<AggregateFactory> next) {
  static_cast<void>(self);  // stays until this ends
  if (state_ == State::ended) co_return {};
  auto loading = load_once(std::move(next));
  auto loaded = co_await std::move(loading);
  if (state_ == State::ended) {
    if (loaded) (*loaded)->drop(ErrorCode::not_coordinator, "");
    co_return {};
  }
  if (!loaded) co_return std::move(loaded).error();
  give_up();
  prepared_ = *std::move(loaded);
  // Answers could not leave before it takes over.
  auto settling = with_deadline(partition_->reached(partition_->log_end()), settle_max);
  const auto settled = co_await std::move(settling);
  if (settled || state_ == State::ended) co_return {};
  co_return Error{Errc::conflict, "its last events are not on all replicas yet"};
}

void AggregateRunner::give_up() {
  const auto dropped = std::exchange(prepared_, nullptr);
  if (dropped) dropped->drop(ErrorCode::coordinator_not_available, "");
}

Task<> AggregateRunner::take_over(std::shared_ptr<AggregateFactory> next) {
  return change_to(shared_from_this(), std::move(next)).within(scope_);
}

Task<> AggregateRunner::change_to(std::shared_ptr<AggregateRunner> self,
                                  std::shared_ptr<AggregateFactory> next) {
  factory_ = std::move(next);
  if (state_ == State::ended) co_return {};
  const auto life = ++life_;
  state_ = State::loading;  // who calls now waits
  patience_over_ = false;
  if (instance_) {
    auto settling = with_deadline(partition_->reached(instance_->applied()), settle_max);
    static_cast<void>(co_await std::move(settling));
    if (state_ == State::ended) co_return {};
    instance_->release_held();
  }
  drop(ErrorCode::coordinator_load_in_progress, "another version of it takes over; ask again");
  auto loading = load(self, life, std::exchange(prepared_, nullptr));
  MR_CO_CHECK(co_await std::move(loading));
  if (state_ == State::serving || state_ == State::ended) co_return {};
  co_return Error{Errc::internal, why_not_};
}

// ---- snapshots ----

bool AggregateRunner::take_snapshot(Offset& at, Buffer& file) {
  auto made = instance_->snapshot();
  if (made) {
    at = instance_->applied();
    file = *std::move(made);
    return true;
  }
  if (made.error().code != Errc::unsupported) {
    host_.log.error("an aggregate cannot be snapshotted",
                    {{"partition", to_string(id())}, {"error", to_string(made.error())}});
  }
  return false;
}

void AggregateRunner::snapshot_due() {
  if (snapshotting_ || !instance_) return;
  Offset at;
  Buffer file;
  if (!take_snapshot(at, file)) return;
  snapshotting_ = true;
  spawn_held(host_.running, host_.shard, store_snapshot(shared_from_this(), at, std::move(file)),
             "snapshot");
}

// What it holds must be there to stay.
Task<> AggregateRunner::store_snapshot(std::shared_ptr<AggregateRunner> self, Offset at,
                                       Buffer file) {
  static_cast<void>(self);  // stays until this ends
  // Where the write of its events was lost, it waits until the end.
  auto committed = partition_->reached(at).within(scope_);
  auto stored = co_await std::move(committed);
  if (stored) stored = co_await partition_->put_aggregate_snapshot(at, std::move(file));
  snapshotting_ = false;
  if (stored || stored.error().code == Errc::closed || stored.error().code == Errc::cancelled) {
    co_return {};
  }
  host_.log.warning("a snapshot of an aggregate could not be stored; its next load replays more",
                    {{"partition", to_string(id())}, {"error", to_string(stored.error())}});
  co_return {};
}

}  // namespace millrace::kernel
