#include "kernel/broker/cluster_keeper.h"

#include <charconv>

#include "kernel/cluster/topics.h"
#include "kernel/cluster/znodes.h"
#include "kernel/partition/topic_config.h"
#include "kernel/takeover/takeover.h"

namespace millrace::kernel {

namespace {

Task<> publish_on(ShardState& state, std::shared_ptr<const ClusterState> cluster) {
  state.publish(std::move(cluster));
  co_return {};
}

}  // namespace

Task<> ClusterKeeper::join() {
  MR_CO_TRY(lease_, co_await parts_.coordination.join(Member{config_.id}));
  Takeover takeover{parts_.environment, parts_.coordination, parts_.storage,
                    parts_.log,         config_.data,        config_.id};
  MR_CO_CHECK(co_await take_over(std::move(takeover)));
  MR_CO_CHECK(co_await load_cluster_id());
  MR_CO_CHECK(co_await become_controller());
  MR_CO_CHECK(co_await load_broker_configs());
  MR_CO_TRY(auto topics, co_await read_topics(parts_.coordination));
  for (auto& topic : topics) state_.put(std::move(topic));
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

// Until there are several brokers, whoever starts is the controller.
Task<> ClusterKeeper::become_controller() {
  const std::string epoch_key(znodes::controller_epoch);
  Version expected = must_not_exist;
  controller_epoch_ = 1;
  auto node = co_await parts_.coordination.get(epoch_key);
  if (node) {
    std::int32_t before = 0;
    std::from_chars(node->value.data(), node->value.data() + node->value.size(), before);
    controller_epoch_ = before + 1;
    expected = node->version;
  } else if (node.error().code != Errc::not_found) {
    co_return node.error();
  }
  std::vector<Write> writes;
  writes.push_back(
      {.key = epoch_key, .value = std::to_string(controller_epoch_), .expected = expected});
  const auto now = parts_.environment.clock().wall();
  writes.push_back({.key = std::string(znodes::controller),
                    .value = znodes::encode_controller(config_.id, now),
                    .ephemeral = true});
  MR_CO_CHECK(co_await parts_.coordination.commit(std::move(writes)));
  state_.controller_id = config_.id;
  co_return {};
}

Task<> ClusterKeeper::load_broker_configs() {
  const std::string prefix(znodes::broker_configs);
  MR_CO_TRY(const auto brokers, co_await parts_.coordination.list(prefix));
  for (const auto& broker : brokers) {
    const auto key = znodes::broker_config(broker);
    MR_CO_TRY(const auto node, co_await parts_.coordination.get(key));
    MR_CO_TRY(auto configs, znodes::decode_configs(key, node.value));
    for (const auto& problem : broker_config_problems(configs)) {
      parts_.log.warning("a stored setting of a broker cannot be used; what is weaker counts",
                         {{"broker", broker}, {"problem", problem.detail}});
    }
    state_.broker_configs.insert_or_assign(broker, std::move(configs));
  }
  co_return {};
}

Task<> ClusterKeeper::announce(const std::vector<Endpoint>& endpoints) {
  BrokerState self{.id = config_.id, .epoch = lease_->epoch(), .rack = config_.rack};
  for (const auto& endpoint : endpoints) {
    self.endpoints.emplace(endpoint.listener, endpoint.advertised);
  }
  std::vector<Write> writes;
  writes.push_back({.key = znodes::broker(config_.id),
                    .value = znodes::encode_broker(self, parts_.environment.clock().wall()),
                    .ephemeral = true});
  MR_CO_CHECK(co_await parts_.coordination.commit(std::move(writes)));
  state_.brokers[config_.id] = std::move(self);
  co_return co_await publish();
}

Task<ClusterKeeper::Turn> ClusterKeeper::turn() {
  Turn turn;
  MR_CO_TRY(turn.pass, running_.enter());
  MR_CO_TRY(turn.held, co_await changes_.lock());
  co_return std::move(turn);
}

Task<> ClusterKeeper::close() { co_return co_await running_.close(); }

Task<> ClusterKeeper::publish() {
  const auto snapshot = std::make_shared<const ClusterState>(state_);
  for (const auto& state : partitions_.shards()) {
    auto make = [&state = *state, snapshot] { return publish_on(state, snapshot); };
    MR_CO_CHECK(co_await run_on(state->shard(), std::move(make)));
  }
  co_return {};
}

}  // namespace millrace::kernel
