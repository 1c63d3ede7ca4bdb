#include "kernel/replication/replica_shard.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <utility>

#include "kernel/env/spawn_held.h"

namespace millrace::kernel {

namespace {

using std::chrono::milliseconds;

// What is alone is replicated as far as it is written.
constexpr Offset all_of_it{std::numeric_limits<std::int64_t>::max()};

constexpr Duration ask_time_max = std::chrono::seconds(10);
constexpr Duration ask_again_after = milliseconds(500);
constexpr Duration watch_interval_min = milliseconds(50);

FetchSettings fetch_settings(const BrokerConfig& config) {
  const auto bytes = [&config](const std::string& name, std::int64_t fallback) {
    const auto number = config.number_of(name, fallback);
    return static_cast<std::int32_t>(
        std::clamp<std::int64_t>(number, 1, std::numeric_limits<std::int32_t>::max()));
  };
  return {.wait_max = milliseconds(config.number_of("replica.fetch.wait.max.ms", 500)),
          .bytes_min = bytes("replica.fetch.min.bytes", 1),
          .partition_bytes_max = bytes("replica.fetch.max.bytes", 1 << 20),
          .bytes_max = bytes("replica.fetch.response.max.bytes", 10 << 20),
          .backoff_max = milliseconds(config.number_of("replica.fetch.backoff.ms", 1000))};
}

// The controller will not do it, however often it is asked.
bool refused_for_good(ErrorCode error) {
  return error == ErrorCode::ineligible_replica || error == ErrorCode::invalid_request ||
         error == ErrorCode::unknown_topic_or_partition || error == ErrorCode::unknown_topic_id;
}

// Something newer is on its way here.
bool out_of_date(ErrorCode error) {
  return error == ErrorCode::invalid_update_version || error == ErrorCode::fenced_leader_epoch ||
         error == ErrorCode::new_leader_elected;
}

}  // namespace

ReplicaShard::ReplicaShard(BrokerParts& parts, const BrokerConfig& config, ShardState& state,
                           const LeaseClock& lease, ReplicationThrottle& throttle)
    : parts_(parts),
      config_(config),
      state_(state),
      lease_(lease),
      throttle_(throttle),
      log_(parts.log.sink(), "replication"),
      lost_(parts.metrics.counter("millrace_replication_lost_records_total",
                                  "Replicated records that unclean elections have cost, as far as "
                                  "this broker knows")),
      limits_{.time = milliseconds(config.number_of("replica.lag.time.max.ms", 30'000)),
              .messages = config.number_of("replica.lag.max.messages", 0)} {}

void ReplicaShard::connect(ReplicationLinks links) {
  links_ = links;
  if (links_.peers) {
    fetcher_host_.emplace(
        FetcherHost{.shard = state_.shard(),
                    .peers = *links_.peers,
                    .log = log_,
                    .broker = config_.id,
                    .settings = fetch_settings(config_),
                    .address_of = [this](std::int32_t broker) -> std::optional<Address> {
                      const auto found = brokers_.find(broker);
                      if (found == brokers_.end()) return std::nullopt;
                      return found->second;
                    },
                    .broker_epoch = [this] { return broker_epoch_; }});
    // Those that were told whom to follow before.
    for (const auto& [id, whom] : std::exchange(followed_, {})) {
      if (const auto partition = state_.find(id.topic, id.partition)) follow(partition, whom);
    }
  }
  if (links_.authority) {
    spawn_held(running_, state_.shard(), watch_in_sync(), "in-sync sets", &scope_);
  }
}

void ReplicaShard::set_brokers(std::map<std::int32_t, Address> brokers, std::int64_t broker_epoch) {
  brokers_ = std::move(brokers);
  broker_epoch_ = broker_epoch;
  for (const auto& [key, fetcher] : fetchers_) fetcher->brokers_changed();
}

Task<> ReplicaShard::close() {
  scope_.cancel();
  // First, so that no order that is being carried out starts another fetcher meanwhile.
  CancelScope never_cancelled;
  auto ending = running_.close().within(never_cancelled);
  MR_CO_CHECK(co_await std::move(ending));
  auto closed = co_await close_fetchers();
  fetcher_host_.reset();
  co_return closed;
}

Task<> ReplicaShard::stop_following() {
  MR_CO_TRY(const auto pass, running_.enter());
  leaving_ = true;
  co_return co_await close_fetchers();
}

Task<> ReplicaShard::close_fetchers() {
  Result<> first_failure;
  for (const auto& [key, fetcher] : fetchers_) {
    auto closed = co_await fetcher->close();
    if (!closed && first_failure) first_failure = std::move(closed);
  }
  fetchers_.clear();
  co_return first_failure;
}

// ---- orders ----

// All at once: many wait for the disk.
Task<ReplicasApplied> ReplicaShard::apply(std::vector<ReplicaOrder> orders,
                                          std::shared_ptr<const HighWatermarks> high_watermarks) {
  // Whoever has ordered may give up before it is done, and close us.
  MR_CO_TRY(const auto pass, running_.enter());
  std::vector<Pending<Recovery>> running;
  running.reserve(orders.size());
  for (const auto& order : orders) {
    running.push_back(start(state_.shard(), apply_one(order, *high_watermarks)));
  }
  ReplicasApplied applied;
  for (std::size_t at = 0; at < running.size(); ++at) {
    auto done = co_await running[at];
    if (done) {
      applied.recovery.offsets_checked += done->offsets_checked;
      applied.recovery.bytes_cut += done->bytes_cut;
      continue;
    }
    applied.failures.push_back({.partition = orders[at].id,
                                .error = ErrorCode::kafka_storage_error,
                                .message = to_string(done.error())});
  }
  co_return std::move(applied);
}

Task<Recovery> ReplicaShard::apply_one(const ReplicaOrder& order,
                                       const HighWatermarks& high_watermarks) {
  if (const auto partition = state_.find(order.id.topic, order.id.partition)) {
    if (partition->config() != order.config) partition->set_config(order.config);
    MR_CO_CHECK(co_await give_role(partition, order));
    co_return Recovery{};
  }
  auto high_watermark = all_of_it;
  if (order.state.replicas.size() > 1) {
    const auto noted = high_watermarks.find(order.id);
    high_watermark = noted == high_watermarks.end() ? Offset{0} : noted->second;
  }
  MR_CO_TRY(auto partition, co_await open(order, high_watermark));
  state_.add(partition);
  MR_CO_CHECK(co_await give_role(partition, order));
  co_return partition->recovery();
}

Task<std::shared_ptr<Partition>> ReplicaShard::open(const ReplicaOrder& order,
                                                    Offset high_watermark) {
  PartitionHost host{.environment = parts_.environment,
                     .shard = state_.shard(),
                     .storage = parts_.storage,
                     .codecs = state_.codecs(),
                     .log = parts_.log,
                     .opening = state_.opening(),
                     .broker = config_.id,
                     .lease = &lease_,
                     .in_sync = this,
                     .lost = &lost_};
  auto opening = Partition::open(std::move(host), order.id, order.topic_id, order.config, Epoch{-1},
                                 high_watermark);
  MR_CO_TRY(auto opened, co_await std::move(opening));
  if (opened->recovery().created && order.known) {
    parts_.log.warning(
        "the log of a known topic is missing; it begins anew, empty. If it was not just being "
        "created, stop the broker and bring its folder back from a copy",
        {{"partition", to_string(order.id)}});
  }
  co_return std::shared_ptr<Partition>(std::move(opened));
}

Task<> ReplicaShard::give_role(std::shared_ptr<Partition> partition, const ReplicaOrder& order) {
  const auto& state = order.state;
  if (state.leader_epoch < partition->leader_epoch()) co_return {};
  hold_back(*partition, order);
  const bool led = partition->leading();
  if (state.leader == config_.id) {
    unfollow(order.id);
    Leadership leadership{.leader_epoch = state.leader_epoch,
                          .partition_epoch = state.partition_epoch,
                          .replicas = state.replicas,
                          .in_sync = state.in_sync,
                          .unclean = order.unclean};
    MR_CO_CHECK(co_await partition->lead(std::move(leadership)));
    if (!led) state_.led(order.id);
    co_return {};
  }
  auto followed = co_await partition->follow(state.leader_epoch, state.leader >= 0);
  if (led && !partition->leading()) state_.left(order.id);
  MR_CO_CHECK(std::move(followed));
  if (partition->leading() || partition->leader_epoch() != state.leader_epoch) co_return {};
  if (state.leader < 0) {
    unfollow(order.id);
  } else {
    follow(partition, {state.leader, pace_of(order)});
  }
  co_return {};
}

Task<> ReplicaShard::stop(TopicPartition id) {
  unfollow(id);
  due_.erase(id);
  const auto partition = state_.take(id);
  if (!partition) co_return {};
  const auto closed = co_await partition->abandon();
  if (!closed) {
    parts_.log.warning("a partition that is being removed did not close cleanly",
                       {{"partition", to_string(id)}, {"error", to_string(closed.error())}});
  }
  co_return {};
}

// ---- followers ----

// Who is in sync is not held back; what an operator has set comes before what is set by itself.
ReplicaShard::Pace ReplicaShard::pace_of(const ReplicaOrder& order) const noexcept {
  const auto among = [this](const std::vector<std::int32_t>& some) {
    return std::ranges::find(some, config_.id) != some.end();
  };
  if (among(order.state.in_sync)) return Pace::own;
  if (order.follower_throttled) return Pace::throttled;
  return among(order.state.adding) ? Pace::moving : Pace::own;
}

RateLimit* ReplicaShard::limit_of(Pace pace) noexcept {
  if (pace == Pace::own) return nullptr;
  return pace == Pace::throttled ? &throttle_.follower : &throttle_.moves_in;
}

void ReplicaShard::hold_back(Partition& partition, const ReplicaOrder& order) {
  partition.set_send_limits({.listed = order.leader_throttled ? &throttle_.leader : nullptr,
                             .moving = &throttle_.moves_out,
                             .adding = order.state.adding});
}

FollowerFetcher& ReplicaShard::fetcher(const Followed& whom, const TopicPartition& id) {
  const auto fetchers = static_cast<std::size_t>(
      std::max<std::int64_t>(config_.number_of("num.replica.fetchers", 1), 1));
  const auto at = whom.pace == Pace::own ? std::hash<TopicPartition>{}(id) % fetchers : 0;
  auto& found = fetchers_[{whom.leader, whom.pace, at}];
  if (!found) {
    found = std::make_unique<FollowerFetcher>(*fetcher_host_, whom.leader, limit_of(whom.pace));
    found->start();
  }
  return *found;
}

void ReplicaShard::follow(const std::shared_ptr<Partition>& partition, Followed whom) {
  const auto& id = partition->id();
  const auto before = followed_.find(id);
  if (before != followed_.end() && before->second != whom) unfollow(id);
  followed_[id] = whom;
  if (fetches()) fetcher(whom, id).add(partition, partition->leader_epoch());
}

void ReplicaShard::unfollow(const TopicPartition& id) {
  const auto found = followed_.find(id);
  if (found == followed_.end()) return;
  if (fetches()) fetcher(found->second, id).remove(id);
  followed_.erase(found);
}

// ---- in-sync sets ----

void ReplicaShard::in_sync_due(const TopicPartition& id) {
  if (!links_.authority || running_.closed()) return;
  due_.insert(id);
  if (std::exchange(asking_, true)) return;
  spawn_held(running_, state_.shard(), ask_in_sync(), "in-sync sets", &scope_);
}

// A follower that fetches nothing tells nothing: who lags is looked for.
Task<> ReplicaShard::watch_in_sync() {
  const auto interval = std::max<Duration>(limits_.time / 4, watch_interval_min);
  while (true) {
    MR_CO_CHECK(co_await sleep(interval));
    for (const auto& partition : state_.all()) {
      if (partition->replicas() || partition->cannot_follow()) in_sync_due(partition->id());
    }
  }
}

// One request at a time, of all that is wanted by then. The first waits for what else is due at
// once: a follower that is back has thousands of partitions in one fetch.
Task<> ReplicaShard::ask_in_sync() {
  MR_CO_CHECK(co_await sleep(Duration::zero()));
  while (!due_.empty()) {
    auto changes = wanted_changes();
    if (changes.empty()) continue;
    std::vector<TopicPartition> asked;
    asked.reserve(changes.size());
    for (const auto& change : changes) asked.push_back(change.partition);
    auto make = [authority = links_.authority, changes = std::move(changes)]() mutable {
      return authority->change_in_sync(std::move(changes));
    };
    auto asking = run_on(parts_.environment.control(), std::move(make));
    auto answers = co_await with_deadline(std::move(asking), ask_time_max);
    if (answers) {
      told_ = false;
      MR_CO_CHECK(co_await take_answers(*std::move(answers)));
      continue;
    }
    if (scope_.cancelled()) co_return {};
    if (!std::exchange(told_, true)) {
      log_.warning("the controller cannot be asked for other in-sync sets; it is tried again",
                   {{"error", to_string(answers.error())}});
    }
    due_.insert(asked.begin(), asked.end());
    MR_CO_CHECK(co_await sleep(ask_again_after));
  }
  asking_ = false;
  co_return {};
}

// Who follows and cannot store is not waited for: the leader would find out when it lags.
std::optional<WantedInSync> ReplicaShard::without_this(const Partition& follower) const {
  const auto& id = follower.id();
  const auto* topic =
      state_.cluster() ? state_.cluster()->find(std::string_view(id.topic)) : nullptr;
  const auto at = static_cast<std::size_t>(id.partition);
  if (!topic || at >= topic->partitions.size() || !follower.cannot_follow()) return std::nullopt;
  const auto& known = topic->partitions[at];
  if (known.leader < 0 || known.leader_epoch != follower.leader_epoch()) return std::nullopt;
  WantedInSync wanted{.partition_epoch = known.partition_epoch, .in_sync = known.in_sync};
  if (std::erase(wanted.in_sync, config_.id) == 0) return std::nullopt;
  wanted.broker_epochs.assign(wanted.in_sync.size(), -1);
  log_.warning(
      "this broker's storage takes no more of a partition that it follows; it asks to be "
      "out of sync",
      {{"partition", to_string(id)}, {"leader", known.leader}});
  return wanted;
}

std::vector<InSyncChange> ReplicaShard::wanted_changes() {
  std::vector<InSyncChange> changes;
  for (const auto& id : std::exchange(due_, {})) {
    const auto partition = state_.find(id.topic, id.partition);
    if (!partition) continue;
    auto wanted =
        partition->leading() ? partition->want_in_sync(limits_) : without_this(*partition);
    if (!wanted) continue;
    changes.push_back({.partition = id,
                       .topic_id = partition->topic_id(),
                       .leader_epoch = partition->leader_epoch(),
                       .partition_epoch = wanted->partition_epoch,
                       .in_sync = std::move(wanted->in_sync),
                       .in_sync_epochs = std::move(wanted->broker_epochs)});
  }
  return changes;
}

Task<> ReplicaShard::take_answers(std::vector<InSyncChanged> answers) {
  bool again = false;
  for (auto& answer : answers) {
    const auto& id = answer.partition;
    const auto partition = state_.find(id.topic, id.partition);
    if (!partition || (partition->leading() && !partition->replicas())) continue;
    if (answer.error == ErrorCode::none) {
      auto& state = answer.state;
      // Orders come by themselves. A controller elsewhere answers without the replicas: where they
      // have changed with the in-sync set, as at the end of a move, there is another epoch.
      const bool is_order =
          state.leader_epoch != partition->leader_epoch() && state.replicas.empty();
      if (state.leader != config_.id || is_order) continue;
      Leadership leadership{.leader_epoch = state.leader_epoch,
                            .partition_epoch = state.partition_epoch,
                            .replicas = std::move(state.replicas),
                            .in_sync = std::move(state.in_sync)};
      // What ends meanwhile does not keep the others from being asked for.
      if (!co_await partition->lead(std::move(leadership))) continue;
      log_.info("another in-sync set",
                {{"partition", to_string(id)},
                 {"in_sync", partition->replicas() ? partition->replicas()->in_sync().size()
                                                   : std::size_t{1}}});
    } else if (refused_for_good(answer.error)) {
      partition->refuse_in_sync();
    } else if (!out_of_date(answer.error)) {
      due_.insert(id);
      again = true;
    }
  }
  if (again) MR_CO_CHECK(co_await sleep(ask_again_after));
  co_return {};
}

}  // namespace millrace::kernel
