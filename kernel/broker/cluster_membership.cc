// A broker's lease and registration, from its start to its end.
#include <algorithm>
#include <chrono>
#include <map>
#include <string>
#include <utility>

#include "kernel/broker/cluster_keeper.h"
#include "kernel/cluster/cluster_level.h"
#include "kernel/cluster/topics.h"
#include "kernel/cluster/znodes.h"
#include "kernel/partition/topic_config.h"
#include "kernel/takeover/takeover.h"

namespace millrace::kernel {

namespace {

constexpr Duration pause_between_joins = std::chrono::seconds(1);
constexpr Duration feed_min = std::chrono::milliseconds(50);
constexpr Duration feed_max = std::chrono::milliseconds(500);
constexpr std::string_view kept_topics = "/millrace/kept_topics";
constexpr Duration quiet_start_max = std::chrono::seconds(10);
constexpr Duration leave_time_max = std::chrono::seconds(10);
constexpr Duration hand_over_time_max = std::chrono::seconds(30);
// Clients that send to this broker meanwhile are told who leads now; those whose connection is
// closed have to look for it, one after the other of their brokers.
constexpr Duration redirect_time = std::chrono::milliseconds(250);

// Those that a later version has written are nothing to go on without.
Result<std::map<std::string, std::string>> known_configs(const std::string& key,
                                                         const std::string& value, const Log& log) {
  auto configs = znodes::decode_configs(key, value);
  if (!configs && configs.error().code == Errc::incompatible) return configs;
  return readable_configs(key, value, log);
}

}  // namespace

Task<> ClusterKeeper::join() {
  MR_CO_TRY(auto lease, co_await parts_.coordination.join(Member{config_.id}));
  set_lease(std::move(lease));
  MR_CO_CHECK(co_await check_level(parts_.coordination));
  MR_CO_CHECK(co_await check_owner());
  Takeover takeover{parts_.environment, parts_.coordination, parts_.storage,
                    parts_.log,         config_.data,        config_.id};
  MR_CO_CHECK(co_await take_over(std::move(takeover)));
  MR_CO_CHECK(co_await load_cluster_id());
  // Who is alone keeps what coordinates him in the same directory.
  if (!alone_) MR_CO_CHECK(co_await parts_.storage.set_owner({state_.cluster_id, config_.id}));
  MR_CO_CHECK(co_await load_broker_configs());
  co_return co_await read_state();
}

void ClusterKeeper::set_lease(std::unique_ptr<Lease> lease) {
  lease_ = std::move(lease);
  alone_ = lease_->valid_until() == MonoTime::max();
  lost_ = false;
  clock_.extend(lease_->valid_until());
}

// Without topics that are being deleted: their logs are not opened again. What a later version has
// written is nothing to go on without.
Task<> ClusterKeeper::read_state() {
  std::vector<UnreadableTopic> unreadable;
  MR_CO_TRY(auto topics, co_await read_topics(parts_.coordination, &unreadable));
  for (const auto& [name, why] : unreadable) {
    if (why.code == Errc::incompatible) co_return why;
    parts_.log.error(
        "a topic is left out, for what is stored of it cannot be read; its logs stay as they are",
        {{"topic", name}, {"error", to_string(why)}});
  }
  MR_CO_TRY(const auto marks,
            co_await parts_.coordination.list(std::string(znodes::delete_topics)));
  for (auto& topic : topics) {
    if (std::ranges::find(marks, topic.name) != marks.end()) continue;
    state_.put(std::move(topic));
  }
  co_return {};
}

Task<> ClusterKeeper::load_cluster_id() {
  const std::string key(znodes::cluster_id);
  auto node = co_await parts_.coordination.get(key);
  if (!node && node.error().code == Errc::not_found) {
    const auto id = to_string(parts_.environment.random().uuid());
    std::vector<Write> writes;
    writes.push_back(
        {.key = key, .value = znodes::encode_cluster_id(id), .expected = must_not_exist});
    auto written = co_await parts_.coordination.commit(std::move(writes));
    if (!written && written.error().code != Errc::conflict) co_return written.error();
    node = co_await parts_.coordination.get(key);
  }
  if (!node) co_return node.error();
  MR_CO_TRY(state_.cluster_id, znodes::decode_cluster_id(node->value));
  co_return {};
}

// Before anything of the directory is believed, or written anywhere.
Task<> ClusterKeeper::check_owner() {
  if (alone_) co_return {};
  MR_CO_TRY(auto owner, co_await parts_.storage.owner());
  if (owner.cluster_id.empty()) co_return {};
  std::string found = "there is no cluster yet";
  const auto node = co_await parts_.coordination.get(std::string(znodes::cluster_id));
  if (node) {
    MR_CO_TRY(const auto id, znodes::decode_cluster_id(node->value));
    if (owner.cluster_id == id) co_return {};
    found = "this is cluster " + id;
  } else if (node.error().code != Errc::not_found) {
    co_return node.error();
  }
  co_return Error{Errc::conflict,
                  config_.data + " is a directory of cluster " + owner.cluster_id + ", and where " +
                      "this broker is to join " + found +
                      "; correct coordination.connect and its chroot, or give this broker a "
                      "directory of its own"};
}

Task<> ClusterKeeper::load_broker_configs() {
  const std::string prefix(znodes::broker_configs);
  MR_CO_TRY(const auto brokers, co_await parts_.coordination.list(prefix));
  for (const auto& broker : brokers) {
    const auto key = znodes::broker_config(broker);
    MR_CO_TRY(const auto node, co_await parts_.coordination.get(key));
    MR_CO_TRY(auto configs, known_configs(key, node.value, parts_.log));
    for (const auto& problem : broker_config_problems(configs)) {
      parts_.log.warning("a stored setting of a broker cannot be used; what is weaker counts",
                         {{"broker", broker}, {"problem", problem.detail}});
    }
    state_.broker_configs.insert_or_assign(broker, std::move(configs));
  }
  MR_CO_TRY(const auto groups,
            co_await parts_.coordination.list(std::string(znodes::group_configs)));
  for (const auto& name : groups) {
    auto group = znodes::group_of(name);
    if (!group) continue;
    const znodes::ConfigEntity entity{znodes::ConfigEntity::Kind::group, *std::move(group)};
    const auto key = znodes::configs_of(entity);
    MR_CO_TRY(const auto node, co_await parts_.coordination.get(key));
    MR_CO_TRY(auto configs, known_configs(key, node.value, parts_.log));
    state_.broker_configs.insert_or_assign(znodes::config_key_of(entity), std::move(configs));
  }
  co_return {};
}

void ClusterKeeper::connect(PeerLink& link, std::string listener) {
  peers_.connect(link, std::move(listener));
  replicas_.connect({.peers = &link, .authority = this});
}

Task<> ClusterKeeper::announce(const std::vector<Endpoint>& endpoints) {
  self_ = {.id = config_.id, .rack = config_.rack};
  set_endpoints(endpoints);
  MR_CO_CHECK(co_await register_self());
  auto& control = parts_.environment.control();
  spawn(control, feed_clock(), "lease", &background_);
  spawn(control, keep_membership(), "membership");
  const auto patience_ends = control.now() + quiet_start_max;
  bool told = false;
  while (!joined_) {
    if (!membership_) co_return membership_.error();
    auto waiting = with_deadline(changed_.wait(), quiet_start_max);
    const auto waited = co_await std::move(waiting);
    if (!waited && waited.error().code != Errc::timed_out) co_return waited.error();
    if (!told && control.now() >= patience_ends) {
      told = true;
      parts_.log.warning("waiting for the controller to tell of the cluster");
    }
  }
  co_return {};
}

void ClusterKeeper::set_endpoints(const std::vector<Endpoint>& endpoints) {
  self_.endpoints.clear();
  for (const auto& endpoint : endpoints) {
    self_.endpoints.emplace(endpoint.listener, endpoint.advertised);
  }
}

// Without a session there is nothing to change: the next one registers what is known by then.
Task<> ClusterKeeper::announce_again(std::vector<Endpoint> endpoints) {
  MR_CO_TRY(const auto pass, running_.enter());
  set_endpoints(endpoints);
  if (!lost_) {
    std::vector<Write> writes;
    writes.push_back(registration());
    const auto written = co_await parts_.coordination.commit(std::move(writes));
    if (!written && written.error().code != Errc::fenced) co_return written.error();
  }
  auto known = [this](const ClusterState& cluster) {
    const auto self = cluster.brokers.find(config_.id);
    return self != cluster.brokers.end() && self->second.endpoints == self_.endpoints;
  };
  auto waiting = until(std::move(known), quiet_start_max);
  auto waited = co_await std::move(waiting);
  if (!waited && waited.error().code == Errc::timed_out) {
    co_return Error{Errc::timed_out, "the controller has not told the cluster of them yet"};
  }
  co_return std::move(waited);
}

// ---- topics that are in use here ----

std::string ClusterKeeper::kept_key(const std::string& topic) const {
  return std::string(kept_topics) + "/" + topic + "/" + std::to_string(config_.id);
}

Task<> ClusterKeeper::keep_topic(std::string topic, std::string why) {
  std::vector<Write> writes;
  writes.push_back({.key = kept_key(topic), .value = why, .ephemeral = true});
  kept_.insert_or_assign(std::move(topic), std::move(why));
  MR_CO_CHECK(co_await parts_.coordination.commit(std::move(writes)));
  co_return {};
}

Task<> ClusterKeeper::release_topic(std::string topic) {
  kept_.erase(topic);
  std::vector<Write> writes;
  writes.push_back({.key = kept_key(topic), .value = {}});
  const auto removed = co_await parts_.coordination.commit(std::move(writes));
  if (!removed && removed.error().code != Errc::not_found) co_return removed.error();
  co_return {};
}

Task<std::string> ClusterKeeper::kept_why(std::string topic) {
  const auto below = std::string(kept_topics) + "/" + topic;
  MR_CO_TRY(const auto brokers, co_await parts_.coordination.list(below));
  for (const auto& broker : brokers) {
    const auto why = co_await parts_.coordination.get(below + "/" + broker);
    if (why) co_return why->value;
    if (why.error().code != Errc::not_found) co_return why.error();
  }
  co_return std::string();
}

Write ClusterKeeper::registration() const {
  return {.key = znodes::broker(config_.id),
          .value = znodes::encode_broker(self_, parts_.environment.clock().wall()),
          .ephemeral = true};
}

// Everybody finds us there, and misses us when our session is over.
Task<> ClusterKeeper::register_self() {
  self_.epoch = lease_->epoch();
  std::vector<Write> writes;
  writes.push_back(registration());
  writes.back().expected = must_not_exist;
  for (const auto& [topic, why] : kept_) {
    writes.push_back({.key = kept_key(topic), .value = why, .ephemeral = true});
  }
  auto written = co_await parts_.coordination.commit(std::move(writes));
  if (written) co_return {};
  if (written.error().code != Errc::conflict) co_return written.error();
  co_return Error{Errc::conflict, "broker " + std::to_string(config_.id) +
                                      " is registered already: each broker needs a broker.id of "
                                      "its own"};
}

// The lease is asked often enough that little of it is lost.
Task<> ClusterKeeper::feed_clock() {
  MR_CO_TRY(const auto pass, running_.enter());
  while (!alone_) {
    Duration pause = feed_max;
    if (!lost_ && lease_) {
      const auto until = lease_->valid_until();
      clock_.extend(until);
      pause = std::clamp((until - parts_.environment.control().now()) / 8, feed_min, feed_max);
    }
    MR_CO_CHECK(co_await sleep(pause));
  }
  co_return {};
}

// One session after the other, each with an election of its own.
Task<> ClusterKeeper::keep_membership() {
  MR_CO_TRY(const auto pass, running_.enter());
  while (true) {
    membership_ = co_await controller_.run();
    if (!membership_ && membership_.error().code == Errc::fenced && !background_.cancelled()) {
      membership_ = co_await rejoin().within(background_);
      if (membership_) continue;
    }
    // Nothing tells of the cluster any more, unless we stop.
    if (!background_.cancelled() && joined_) {
      parts_.log.error("this broker is not in its cluster any more",
                       {{"error", to_string(membership_.error())}});
    }
    changed_.notify_all();
    co_return {};
  }
}

Task<> ClusterKeeper::rejoin() {
  parts_.log.warning("the session is over: nothing is led until there is a new one");
  clock_.end();
  lost_ = true;
  joined_ = false;
  MR_CO_CHECK(co_await stop_leading());
  while (true) {
    auto lease = co_await parts_.coordination.join(Member{config_.id});
    if (lease) {
      set_lease(*std::move(lease));
      // Meanwhile the cluster may have gone on without us.
      auto back = co_await check_level(parts_.coordination);
      if (back) back = co_await register_self();
      if (back) break;
      lease = back.error();
    }
    if (lease.error().code == Errc::cancelled) co_return lease.error();
    parts_.log.warning("the cluster cannot be joined; it is tried again",
                       {{"error", to_string(lease.error())}});
    clock_.end();
    lost_ = true;
    MR_CO_CHECK(co_await sleep(pause_between_joins));
  }
  parts_.log.info("back in the cluster", {{"epoch", lease_->epoch()}});
  co_return {};
}

// Before a new lease makes what we lead look valid again: others may lead it by now.
Task<> ClusterKeeper::stop_leading() {
  MR_CO_TRY(const auto held, co_await turn());
  std::vector<TopicPartition> ours;
  for (const auto& [name, topic] : state_.topics) {
    for (std::size_t at = 0; at < topic->partitions.size(); ++at) {
      if (topic->partitions[at].leader != config_.id) continue;
      ours.push_back({name, static_cast<std::int32_t>(at)});
    }
  }
  auto orders = orders_for(ours, true);
  for (auto& order : orders) order.state.leader = -1;
  MR_CO_CHECK(co_await open_and_lead(std::move(orders)));
  co_return {};
}

Task<LeadersMoved> ClusterKeeper::ask_to_leave() {
  const auto epoch = broker_epoch();
  if (controller_.active()) co_return co_await controller_.shut_down(config_.id, epoch);
  auto call = [this, epoch](Peer& peer) { return peer.shut_down(config_.id, epoch); };
  auto asking = peers_.ask(PeerLane::topics, controller_address(), leave_time_max, std::move(call));
  co_return co_await std::move(asking);
}

// What has no other replica nobody else can lead, and needs no other try.
Task<> ClusterKeeper::try_to_hand_over(std::int64_t tries, Duration pause) {
  while (true) {
    const auto moved = co_await ask_to_leave();
    Error why{Errc::internal, {}};
    if (moved && moved->error == ErrorCode::none) {
      const auto remain = std::ranges::count_if(moved->remaining, [this](const auto& id) {
        const auto* topic = state_.find(std::string_view(id.topic));
        const auto at = static_cast<std::size_t>(id.partition);
        return topic && at < topic->partitions.size() && topic->partitions[at].replicas.size() > 1;
      });
      if (remain == 0) co_return {};
      why.detail = std::to_string(remain) + " partitions that no other broker can lead";
    } else {
      why.detail = moved ? std::string(name_of(moved->error)) : to_string(moved.error());
    }
    if (--tries <= 0) co_return std::move(why);
    parts_.log.info("could not let others lead; it is tried again", {{"reason", why.detail}});
    MR_CO_CHECK(co_await sleep(pause));
  }
}

Task<> ClusterKeeper::hand_over(Duration limit) {
  if (!joined_ || lost_ || state_.brokers.size() < 2) co_return {};
  if (config_.default_of(&state_, "controlled.shutdown.enable", "true") != "true") co_return {};
  const auto tries = config_.number_of(&state_, "controlled.shutdown.max.retries", 3);
  const std::chrono::milliseconds pause(
      config_.number_of(&state_, "controlled.shutdown.retry.backoff.ms", 500));
  const auto asked_for = std::min<Duration>(
      pause * std::min(tries, hand_over_time_max / std::max<Duration>(pause, feed_min)),
      hand_over_time_max);
  auto trying = with_deadline(try_to_hand_over(tries, pause), std::max(limit, asked_for));
  const auto handed = co_await std::move(trying);
  if (!handed) {
    parts_.log.warning("the broker stops while it still leads partitions",
                       {{"reason", handed.error().detail}});
    co_return {};
  }
  // Or leaders would ask for this one again, and wait for it if the controller ends meanwhile.
  MR_CO_CHECK(co_await replicas_.stop_following());
  co_return co_await sleep(redirect_time);
}

Task<> ClusterKeeper::close() {
  background_.cancel();
  MR_CO_CHECK(co_await controller_.close());
  changed_.notify_all();
  MR_CO_CHECK(co_await running_.close());
  peers_.close();
  co_return {};
}

}  // namespace millrace::kernel
