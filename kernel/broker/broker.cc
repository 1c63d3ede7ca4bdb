// The broker's life: join, open, announce, run, close.
#include "kernel/broker/broker.h"

#include <algorithm>
#include <chrono>

#include "kernel/broker/config_sources.h"
#include "kernel/broker/session.h"
#include "kernel/cluster/topics.h"
#include "kernel/cluster/znodes.h"

namespace millrace::kernel {

namespace {

// A stop ends in time, however much there is to bring to disk: in the page cache it is safe but
// from a power cut, as it was before.
constexpr Duration flush_time_max = std::chrono::milliseconds(1500);
constexpr Duration flush_time_each = std::chrono::milliseconds(1);

// Retention and snapshots of one shard's partitions.  [that shard]
Task<> maintain_loop(ShardState& state, Duration interval, Log log) {
  MR_CO_TRY(auto pass, state.running().enter());
  while (true) {
    MR_CO_CHECK(co_await sleep(interval));
    for (const auto& partition : state.all()) {
      auto done = co_await partition->maintain();
      if (done || done.error().code == Errc::cancelled) continue;
      log.error("maintenance of a partition failed; it is tried again",
                {{"partition", to_string(partition->id())}, {"error", to_string(done.error())}});
    }
  }
}

Task<> start_shard(ShardState& state, Duration interval, Scrubber& scrubber, Log log) {
  auto loop = maintain_loop(state, interval, std::move(log));
  spawn(state.shard(), std::move(loop), "maintenance", &state.background());
  spawn(state.shard(), scrubber.run(state), "scrubbing", &state.background());
  co_return {};
}

// Ends what runs on a shard by itself: maintenance and long polls.
Task<> quiesce_shard(ShardState& state) {
  state.background().cancel();
  co_return co_await state.running().close();
}

Task<> end_sessions(FetchSessionCache& sessions) {
  sessions.clear();
  co_return {};
}

// All at once: many wait for the disk, and one sync does for many.
Task<> close_shard(ShardState& state, MonoTime deadline, Log log) {
  std::size_t late = 0;
  const auto partitions = state.all();
  const auto left = std::max(deadline - state.shard().now(), Duration::zero());
  std::vector<Pending<>> closing;
  closing.reserve(partitions.size());
  for (const auto& partition : partitions) {
    closing.push_back(start(state.shard(), with_deadline(partition->close(), left)));
  }
  for (std::size_t at = 0; at < partitions.size(); ++at) {
    const auto& partition = partitions[at];
    const auto closed = co_await closing[at];
    if (!closed && closed.error().code == Errc::timed_out) {
      ++late;
    } else if (!closed) {
      log.error("a partition did not close cleanly; it is checked at the next start",
                {{"partition", to_string(partition->id())}, {"error", to_string(closed.error())}});
    }
    state.take(partition->id());
  }
  if (late > 0) {
    log.warning("partitions were not brought to disk in time; they are checked at the next start",
                {{"partitions", late}});
  }
  co_return {};
}

Task<> use_on(ShardState& state, Codecs codecs) {
  state.use(codecs);
  co_return {};
}

Task<> hold_on(ShardState& state, TopicPartition id, bool held) {
  const auto partition = state.find(id.topic, id.partition);
  if (!partition) co_return Error{Errc::not_found, to_string(id) + " is not here"};
  partition->hold_high_watermark(held);
  co_return {};
}

void tell_recovery(Metrics& metrics, const Recovery& recovery) {
  metrics.gauge("millrace_recovery_checked_offsets", "Offsets checked when logs were last opened")
      .set(recovery.offsets_checked);
  metrics.gauge("millrace_recovery_cut_bytes", "Torn tails cut when logs were last opened")
      .set(static_cast<std::int64_t>(recovery.bytes_cut));
}

}  // namespace

KernelBroker::KernelBroker(BrokerParts parts, BrokerConfig config)
    : parts_(std::move(parts)),
      config_(std::move(config)),
      partitions_(parts_.environment, config_.memory_bytes),
      replicas_(parts_, config_, partitions_, lease_),
      cluster_(parts_, config_, partitions_, replicas_, lease_),
      cluster_service_(parts_, cluster_),
      topics_(parts_, config_, cluster_),
      declared_topics_(parts_, config_, cluster_,
                       [this](NewTopic topic) { return create_declared(std::move(topic)); }),
      checkpoints_(parts_, partitions_),
      cleaner_(
          parts_, partitions_, [this] { return ConfigSources(config_, cluster_.state()).merged(); },
          config_.data),
      admin_(parts_, config_, partitions_, topics_, cluster_.controller(), checkpoints_),
      configs_(*this, parts_, config_, cluster_),
      producer_ids_(parts_.coordination, config_.id),
      scrubber_(parts_, config_) {
  const auto shards = partitions_.shards().size();
  const auto slots = config_.number_of("max.incremental.fetch.session.cache.slots", 1000);
  const auto share = (static_cast<std::size_t>(slots) + shards - 1) / shards;
  for (std::size_t at = 0; at < shards; ++at) {
    fetch_sessions_.emplace_back(share, at, shards, parts_.environment.random(),
                                 FetchSessionMetrics(parts_.metrics));
  }
  for (const auto& state : partitions_.shards()) state->use(parts_.codecs);
  offer<ClusterService>(cluster_service_);
}

KernelBroker::~KernelBroker() = default;

Task<> KernelBroker::open() {
  MR_CO_CHECK(co_await parts_.storage.lock());
  MR_CO_CHECK(co_await cluster_.join());
  MR_CO_CHECK(co_await warn_of_strays());
  MR_CO_CHECK(co_await cluster_.open_replicas());
  tell_recovery(parts_.metrics, replicas_.recovered());
  opened_ = true;
  co_return {};
}

// A folder that no topic claims is left alone: metadata may be what is damaged.
Task<> KernelBroker::warn_of_strays() {
  MR_CO_TRY(const auto found, co_await parts_.storage.list());
  for (const auto& one : found) {
    const auto* topic = cluster_.state().find(one.partition.topic);
    const auto number = static_cast<std::size_t>(one.partition.partition);
    if (topic && number < topic->partitions.size()) continue;
    parts_.log.warning("a log belongs to no known topic; it is left as it is",
                       {{"partition", to_string(one.partition)}});
  }
  co_return {};
}

Task<> KernelBroker::announce(std::vector<Endpoint> endpoints) {
  MR_CO_CHECK(co_await cluster_.announce(endpoints));

  const std::chrono::milliseconds interval(
      config_.number_of("log.retention.check.interval.ms", 300'000));
  for (const auto& state : partitions_.shards()) {
    auto make = [this, &state = *state, interval] {
      return start_shard(state, interval, scrubber_, parts_.log);
    };
    MR_CO_CHECK(co_await run_on(state->shard(), std::move(make)));
  }
  checkpoints_.start(std::chrono::milliseconds(
      config_.number_of("replica.high.watermark.checkpoint.interval.ms", 5000)));
  cleaner_.start();
  co_return {};
}

// Goes on after a failure, so that every shard is closed; the first one is answered.
Task<> KernelBroker::close() {
  Result<> first_failure;
  const auto keep = [&first_failure](Result<> result) {
    if (!result && first_failure) first_failure = std::move(result);
  };
  // Changes come to their end while there still is a controller.
  keep(co_await declared_topics_.close());
  keep(co_await admin_.close());
  keep(co_await configs_.close());
  keep(co_await running_.close());
  keep(co_await cleaner_.close());
  keep(co_await cluster_.close());
  keep(co_await replicas_.close());
  auto checkpoints = co_await checkpoints_.close(opened_);
  if (!checkpoints) {
    parts_.log.error("checkpoints could not be written",
                     {{"error", to_string(checkpoints.error())}});
  }
  // First all shards come to rest, then partitions close: what a poll has posted to another shard
  // arrives there before the partition goes.
  for (const auto& state : partitions_.shards()) {
    auto make = [&state = *state] { return quiesce_shard(state); };
    keep(co_await run_on(state->shard(), std::move(make)));
  }
  for (const auto& state : partitions_.shards()) {
    auto make = [&sessions = fetch_sessions_[state->shard().index()]] {
      return end_sessions(sessions);
    };
    keep(co_await run_on(state->shard(), std::move(make)));
  }
  std::vector<Pending<>> closing;
  for (const auto& state : partitions_.shards()) {
    auto make = [&state = *state,
                 deadline =
                     control().now() + flush_time_max + flush_time_each * partitions_.count(),
                 log = parts_.log] { return close_shard(state, deadline, log); };
    closing.push_back(start(control(), run_on(state->shard(), std::move(make))));
  }
  for (auto& closed : closing) keep(co_await closed);
  keep(co_await parts_.storage.close());
  cluster_.leave();
  co_return first_failure;
}

Task<> KernelBroker::use(Codecs codecs) {
  for (const auto& state : partitions_.shards()) {
    auto make = [&state = *state, codecs] { return use_on(state, codecs); };
    MR_CO_CHECK(co_await run_on(state->shard(), std::move(make)));
  }
  co_return {};
}

std::unique_ptr<Session> KernelBroker::open_session(const ClientInfo& client) {
  return std::make_unique<KernelSession>(client, partitions_.here());
}

MemoryBudget& KernelBroker::memory(Shard& shard) noexcept {
  return partitions_.state_of(shard).memory();
}

void* KernelBroker::service(std::string_view id) noexcept {
  const auto found = services_.find(id);
  if (found != services_.end()) return found->second;
  for (auto* provider : providers_) {
    if (auto* offered = provider->service(id)) return offered;
  }
  return nullptr;
}

Task<> KernelBroker::hold_high_watermark(TopicPartition partition, bool held) {
  auto& owner = partitions_.owner_of(partition.topic, partition.partition);
  auto make = [&owner, partition, held] { return hold_on(owner, partition, held); };
  co_return co_await run_on(owner.shard(), std::move(make));
}

Task<std::int64_t> KernelBroker::next_producer_id() {
  MR_CO_TRY(const auto pass, running_.enter());
  co_return co_await producer_ids_.next();
}

Task<InitProducerIdAnswer> KernelBroker::init_producer_id(Session&, InitProducerIdRequest request) {
  if (request.transactional_id) {
    // Transactions come with their plugin; no coordinator is loaded.
    co_return InitProducerIdAnswer{.error = ErrorCode::coordinator_not_available};
  }
  auto make = [this] { return next_producer_id(); };
  MR_CO_TRY(const auto id, co_await run_on(control(), std::move(make)));
  co_return InitProducerIdAnswer{.error = ErrorCode::none, .producer_id = id, .producer_epoch = 0};
}

}  // namespace millrace::kernel
