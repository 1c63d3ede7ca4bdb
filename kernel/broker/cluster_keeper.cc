// What this broker knows of its cluster, and does about it; its membership is in
// cluster_membership.cc.
#include "kernel/broker/cluster_keeper.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <set>
#include <utility>

#include "kernel/broker/config_sources.h"
#include "kernel/partition/topic_config.h"
#include "kernel/replication/throttle.h"

namespace millrace::kernel {

namespace {

// Whoever is told much at once, all of a cluster say, opens logs before it answers.
constexpr Duration update_time_max = std::chrono::seconds(30);
constexpr Duration ask_time_max = std::chrono::seconds(10);
// Less than the controller waits before it asks for another try.
constexpr Duration open_again_after = std::chrono::milliseconds(500);

Task<> publish_on(ShardState& state, std::shared_ptr<const ClusterState> cluster) {
  state.publish(std::move(cluster));
  co_return {};
}

// The value of a topic's setting that counts.
std::string topic_setting(const TopicState& topic, const ConfigMap& inherited, const char* name) {
  return effective_value(*find_topic_option(name), inherited, topic.configs);
}

ReplicationRates rates_of(const ConfigMap& settings) {
  const auto rate = [&settings](const char* name, std::int64_t fallback) {
    const auto found = settings.find(name);
    return found == settings.end() ? fallback : integer_of(found->second).value_or(fallback);
  };
  const ReplicationRates unset;
  return {.leader = rate("leader.replication.throttled.rate", unset.leader),
          .follower = rate("follower.replication.throttled.rate", unset.follower),
          .moves_max = rate("cluster.balance.rate.max", unset.moves_max)};
}

// What `self` is to lead that it was not in sync with, as far as is known here.
std::set<TopicPartition> unclean_elections(const ClusterState& known, const ClusterUpdate& update,
                                           std::int32_t self) {
  std::set<TopicPartition> unclean;
  for (const auto& topic : update.topics) {
    const auto* before = known.find(std::string_view(topic.name));
    if (!before || before->id != topic.id) continue;
    for (const auto& now : topic.partitions) {
      const auto at = static_cast<std::size_t>(now.partition);
      if (now.leader != self || at >= before->partitions.size()) continue;
      const auto& state = before->partitions[at];
      const bool in_sync = std::ranges::find(state.in_sync, self) != state.in_sync.end();
      if (!in_sync && state.leader_epoch < now.leader_epoch) {
        unclean.insert({topic.name, now.partition});
      }
    }
  }
  return unclean;
}

ClusterUpdated refused(ErrorCode error) {
  ClusterUpdated answer;
  answer.error = error;
  return answer;
}

}  // namespace

ClusterKeeper::ClusterKeeper(BrokerParts& parts, const BrokerConfig& config,
                             PartitionMap& partitions, Replicas& replicas, LeaseClock& clock)
    : parts_(parts),
      config_(config),
      partitions_(partitions),
      replicas_(replicas),
      clock_(clock),
      controller_({parts.environment, parts.coordination, *this, parts.log, parts.metrics,
                   config.id, config.defaults}) {}

Task<ClusterKeeper::Turn> ClusterKeeper::turn() {
  Turn turn;
  MR_CO_TRY(turn.pass, running_.enter());
  MR_CO_TRY(turn.held, co_await changes_.lock());
  co_return std::move(turn);
}

Task<> ClusterKeeper::publish() {
  const auto snapshot = std::make_shared<const ClusterState>(state_);
  for (const auto& state : partitions_.shards()) {
    auto make = [&state = *state, snapshot] { return publish_on(state, snapshot); };
    MR_CO_CHECK(co_await run_on(state->shard(), std::move(make)));
  }
  co_return {};
}

// ---- replicas ----

std::vector<ReplicaOrder> ClusterKeeper::orders_for(const std::vector<TopicPartition>& ours,
                                                    bool known) {
  const ConfigSources sources(config_, state_);
  std::vector<ReplicaOrder> orders;
  const TopicState* topic = nullptr;
  TopicConfig config;
  ThrottledReplicas leading("");
  ThrottledReplicas following("");
  for (const auto& id : ours) {
    if (!topic || topic->name != id.topic) {
      topic = state_.find(std::string_view(id.topic));
      config = TopicConfig::load(sources.merged(), topic->configs);
      const auto throttled = [&](const char* name) {
        return ThrottledReplicas(topic_setting(*topic, sources.merged(), name));
      };
      leading = throttled("leader.replication.throttled.replicas");
      following = throttled("follower.replication.throttled.replicas");
    }
    orders.push_back({.id = id,
                      .topic_id = topic->id,
                      .config = config,
                      .state = topic->partitions[static_cast<std::size_t>(id.partition)],
                      .known = known,
                      .leader_throttled = leading.has(id.partition, config_.id),
                      .follower_throttled = following.has(id.partition, config_.id)});
  }
  return orders;
}

// Each is told once, and once more when it is there.
void ClusterKeeper::note_opened(const std::vector<TopicPartition>& tried,
                                const std::vector<ReplicaFailure>& failures) {
  const auto now = parts_.environment.control().now();
  std::set<TopicPartition> failed;
  for (const auto& failure : failures) {
    failed.insert(failure.partition);
    const auto [known, fresh] = failed_.try_emplace(failure.partition);
    known->second.failure = failure;
    known->second.tried = now;
    if (!fresh) continue;
    parts_.log.error("a partition cannot be opened and stays offline; it is tried again",
                     {{"partition", to_string(failure.partition)}, {"error", failure.message}});
  }
  for (const auto& id : tried) {
    if (failed.contains(id)) continue;
    failed_.erase(id);
    parts_.log.info("a partition that could not be opened is open now",
                    {{"partition", to_string(id)}});
  }
}

// What could not be opened is tried again when the controller asks for it.
Task<std::vector<ReplicaFailure>> ClusterKeeper::open_and_lead(std::vector<ReplicaOrder> orders) {
  const auto now = parts_.environment.control().now();
  std::vector<ReplicaFailure> failures;
  std::vector<TopicPartition> tried;
  std::erase_if(orders, [&](ReplicaOrder& order) {
    const auto failed = failed_.find(order.id);
    if (failed == failed_.end()) return false;
    if (now - failed->second.tried >= open_again_after) {
      tried.push_back(order.id);
      order.known |= failed->second.known;
      return false;
    }
    failures.push_back(failed->second.failure);
    return true;
  });
  MR_CO_TRY(auto fresh, co_await replicas_.apply(std::move(orders)));
  note_opened(tried, fresh);
  std::ranges::move(fresh, std::back_inserter(failures));
  std::map<std::string, TopicState> offline;
  for (const auto& failure : failures) {
    const auto* topic = state_.find(std::string_view(failure.partition.topic));
    if (!topic) continue;
    auto& known = offline.try_emplace(topic->name, *topic).first->second;
    auto& partition = known.partitions[static_cast<std::size_t>(failure.partition.partition)];
    if (partition.leader == config_.id) partition.leader = -1;
  }
  for (auto& [name, topic] : offline) state_.put(std::move(topic));
  co_return std::move(failures);
}

std::vector<TopicPartition> ClusterKeeper::replicas_here() const {
  std::vector<TopicPartition> ours;
  for (const auto& [name, topic] : state_.topics) {
    for (std::size_t at = 0; at < topic->partitions.size(); ++at) {
      const auto& replicas = topic->partitions[at].replicas;
      if (std::ranges::find(replicas, config_.id) == replicas.end()) continue;
      ours.push_back({name, static_cast<std::int32_t>(at)});
    }
  }
  return ours;
}

Task<> ClusterKeeper::open_replicas() {
  for (const auto& [name, topic] : state_.topics) {
    for (const auto& problem : topic_config_problems(topic->configs)) {
      parts_.log.warning("a stored setting of a topic cannot be used; what it would inherit counts",
                         {{"topic", name}, {"problem", problem.detail}});
    }
  }
  const auto ours = replicas_here();
  to_open_ = ours.size();
  auto orders = orders_for(ours, true);
  for (auto& order : orders) order.state.leader = -1;
  MR_CO_CHECK(co_await open_and_lead(std::move(orders)));
  for (auto& [id, unopened] : failed_) unopened.known = true;
  parts_.log.info("opened", {{"topics", state_.topics.size()},
                             {"partitions", ours.size()},
                             {"offsets_checked", replicas_.recovered().offsets_checked},
                             {"bytes_cut", replicas_.recovered().bytes_cut}});
  co_return {};
}

Task<> ClusterKeeper::use_defaults(std::map<std::string, std::string> defaults) {
  MR_CO_TRY(const auto held, co_await turn());
  controller_.set_defaults(defaults);
  state_.defaults = std::make_shared<const ConfigMap>(std::move(defaults));
  replicas_.set_rates(rates_of(ConfigSources(config_, state_).merged()));
  auto orders = orders_for(replicas_here(), true);
  // Without a session nothing is led.
  for (auto& order : orders) {
    if (lost_) order.state.leader = -1;
  }
  MR_CO_CHECK(co_await open_and_lead(std::move(orders)));
  co_return co_await publish();
}

// Its topic is known, by the id that the log carries too, and another broker that lives leads this
// partition, which is not on this one. Where nobody leads it this log may be the last: of a broker
// whose number was changed, say.
bool ClusterKeeper::is_elsewhere(const FoundPartition& log) const {
  const auto* topic = state_.find(std::string_view(log.partition.topic));
  const auto at = static_cast<std::size_t>(log.partition.partition);
  if (!topic || log.topic_id.is_none() || topic->id != log.topic_id) return false;
  if (log.partition.partition < 0 || at >= topic->partitions.size()) return false;
  const auto& state = topic->partitions[at];
  if (state.leader == config_.id || !state_.brokers.contains(state.leader)) return false;
  return std::ranges::find(state.replicas, config_.id) == state.replicas.end();
}

// A log that another topic of the name has left, when metadata was lost, stays.
Task<std::vector<ReplicaFailure>> ClusterKeeper::remove(const ClusterUpdate& update,
                                                        UpdateEffect effect) {
  std::vector<ReplicaStop> stops;
  for (auto& gone : effect.gone) {
    failed_.erase(gone.id);
    stops.push_back({std::move(gone.id), gone.topic_id, gone.erase});
  }
  if (update.full || !update.deleted.empty()) {
    // Also of topics that were deleted while we were away, and of partitions that moved away.
    MR_CO_TRY(const auto logs, co_await parts_.storage.list());
    for (const auto& log : logs) {
      const bool is_known =
          std::ranges::find(stops, log.partition, &ReplicaStop::id) != stops.end();
      if (update.full && !is_known && is_elsewhere(log)) {
        parts_.log.info("a replica is not this broker's any more: its log is erased",
                        {{"partition", to_string(log.partition)}});
        stops.push_back({log.partition, log.topic_id, true});
      }
      for (const auto& topic : update.deleted) {
        if (log.partition.topic != topic.name) continue;
        const bool stopped =
            std::ranges::find(stops, log.partition, &ReplicaStop::id) != stops.end();
        if (!stopped) stops.push_back({log.partition, topic.id, true});
      }
    }
  }
  if (stops.empty()) co_return std::vector<ReplicaFailure>();
  // Nobody finds them any more when they end.
  MR_CO_CHECK(co_await publish());
  const auto stopped = co_await replicas_.stop(stops);
  std::vector<ReplicaFailure> failures;
  if (stopped) co_return std::move(failures);
  parts_.log.error("logs could not be erased", {{"error", to_string(stopped.error())}});
  for (const auto& stop : stops) {
    if (!stop.erase) continue;
    failures.push_back({stop.id, error_code_of(stopped.error()), stopped.error().detail});
  }
  co_return std::move(failures);
}

Task<ClusterUpdated> ClusterKeeper::take(ClusterUpdate update) {
  MR_CO_TRY(const auto held, co_await turn());
  const bool ours = lease_ && !lost_ && update.receiver_epoch == lease_->epoch();
  if (!ours || (!joined_ && !update.full)) co_return refused(ErrorCode::stale_broker_epoch);
  if (update.controller_epoch < controller_epoch_) {
    co_return refused(ErrorCode::stale_controller_epoch);
  }
  if (update.cluster_id != state_.cluster_id) co_return refused(ErrorCode::inconsistent_cluster_id);
  controller_epoch_ = update.controller_epoch;

  const auto unclean = unclean_elections(state_, update, config_.id);
  const auto before = state_.brokers;
  auto effect = take_in(state_, update, config_.id);
  note_gone(state_, before, parts_.environment.control().now());
  for (const auto& [id, broker] : before) {
    const auto now = state_.brokers.find(id);
    const bool same = now != state_.brokers.end() && now->second.epoch == broker.epoch;
    if (!same) peers_.forget(peers_.address_of(broker));
  }
  std::map<std::int32_t, Address> addresses;
  for (const auto& [id, broker] : state_.brokers) addresses.emplace(id, peers_.address_of(broker));
  replicas_.set_brokers(addresses, broker_epoch());
  replicas_.set_rates(rates_of(ConfigSources(config_, state_).merged()));
  auto orders = orders_for(effect.ours, false);
  for (auto& order : orders) order.unclean = unclean.contains(order.id);
  ClusterUpdated answer;
  MR_CO_TRY(answer.failures, co_await remove(update, std::move(effect)));
  MR_CO_TRY(auto failures, co_await open_and_lead(std::move(orders)));
  std::ranges::move(failures, std::back_inserter(answer.failures));
  MR_CO_CHECK(co_await publish());
  joined_ = true;
  changed_.notify_all();
  co_return std::move(answer);
}

Task<> ClusterKeeper::until(std::function<bool(const ClusterState&)> known, Duration limit) {
  const auto wait = [](ClusterKeeper& self,
                       std::function<bool(const ClusterState&)> holds) -> Task<> {
    MR_CO_TRY(const auto pass, self.running_.enter());
    while (!self.running_.closed()) {
      {
        MR_CO_TRY(const auto held, co_await self.turn());
        if (holds(self.state_)) co_return {};
      }
      if (!self.running_.closed()) MR_CO_CHECK(co_await self.changed_.wait());
    }
    co_return Error{Errc::closed, "the broker stops"};
  };
  auto waiting = with_deadline(wait(*this, std::move(known)), limit);
  co_return co_await std::move(waiting);
}

// ---- other brokers ----

// An update of our own controller is carried out to its end, whatever becomes of the controller.
Task<ClusterUpdated> ClusterKeeper::update(BrokerState broker, ClusterUpdate update) {
  if (broker.id == config_.id) {
    auto taking = start(parts_.environment.control(), take(std::move(update)));
    co_return co_await taking;
  }
  auto call = [update = std::move(update)](Peer& peer) { return peer.update(update); };
  auto asking =
      peers_.ask(PeerLane::updates, peers_.address_of(broker), update_time_max, std::move(call));
  co_return co_await std::move(asking);
}

Address ClusterKeeper::controller_address() const {
  const auto found = state_.brokers.find(state_.controller_id);
  const bool other = found != state_.brokers.end() && found->first != config_.id;
  return other ? peers_.address_of(found->second) : Address{};
}

// Whoever asks may give up before the answer, and we may be closed then.
Task<std::vector<InSyncChanged>> ClusterKeeper::change_in_sync(std::vector<InSyncChange> changes) {
  MR_CO_TRY(const auto pass, running_.enter());
  const auto epoch = broker_epoch();
  if (controller_.active()) {
    co_return co_await controller_.change_in_sync(config_.id, epoch, std::move(changes));
  }
  auto call = [this, epoch, changes = std::move(changes)](Peer& peer) {
    return peer.change_in_sync(config_.id, epoch, changes);
  };
  auto asking = peers_.ask(PeerLane::replicas, controller_address(), ask_time_max, std::move(call))
                    .within(background_);
  co_return co_await std::move(asking);
}

// Of one topic.
template <class Answer, class Call>
Task<Answer> ClusterKeeper::ask_controller(Call call) {
  auto asking = peers_.ask(PeerLane::topics, controller_address(), update_time_max, std::move(call))
                    .within(background_);
  MR_CO_TRY(std::vector<Answer> answers, co_await std::move(asking));
  if (answers.size() != 1) {
    co_return Error{Errc::corrupt, "the controller answers for other topics"};
  }
  co_return std::move(answers.front());
}

Task<TopicCreated> ClusterKeeper::create_at_controller(NewTopic topic) {
  MR_CO_TRY(const auto pass, running_.enter());
  auto call = [topic](Peer& peer) {
    std::vector<NewTopic> topics{topic};
    return peer.create_topics(std::move(topics));
  };
  auto asking = ask_controller<TopicCreated>(std::move(call));
  MR_CO_TRY(auto created, co_await std::move(asking));
  if (created.error != ErrorCode::none && created.error != ErrorCode::topic_already_exists) {
    co_return std::move(created);
  }
  auto known = [name = topic.name](const ClusterState& state) {
    return state.find(std::string_view(name)) != nullptr;
  };
  MR_CO_CHECK(co_await until(std::move(known), ask_time_max));
  co_return std::move(created);
}

Task<TopicDeleted> ClusterKeeper::erase_at_controller(std::string topic) {
  MR_CO_TRY(const auto pass, running_.enter());
  auto call = [topic](Peer& peer) {
    std::vector<TopicName> topics{{topic, {}}};
    return peer.delete_topics(std::move(topics));
  };
  auto asking = ask_controller<TopicDeleted>(std::move(call));
  MR_CO_TRY(auto deleted, co_await std::move(asking));
  if (deleted.error != ErrorCode::none) co_return std::move(deleted);
  auto gone = [topic](const ClusterState& state) {
    return state.find(std::string_view(topic)) == nullptr;
  };
  MR_CO_CHECK(co_await until(std::move(gone), ask_time_max));
  co_return std::move(deleted);
}

}  // namespace millrace::kernel
