#include "kernel/replication/replicas.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace millrace::kernel {

Replicas::Replicas(BrokerParts& parts, const BrokerConfig& config, PartitionMap& partitions,
                   const LeaseClock& lease)
    : parts_(parts),
      broker_(config.id),
      partitions_(partitions),
      throttle_(parts.metrics),
      moves_(parts.environment, parts.metrics, throttle_) {
  for (const auto& state : partitions_.shards()) {
    shards_.push_back(std::make_unique<ReplicaShard>(parts, config, *state, lease, throttle_));
  }
}

ReplicaShard& Replicas::shard_of(const TopicPartition& id) noexcept {
  return *shards_[partitions_.owner_of(id.topic, id.partition).shard().index()];
}

void Replicas::connect(ReplicationLinks links) {
  for (std::size_t at = 0; at < shards_.size(); ++at) {
    auto& shard = *shards_[at];
    partitions_.shards()[at]->shard().post([&shard, links] { shard.connect(links); });
  }
}

void Replicas::set_brokers(const std::map<std::int32_t, Address>& addresses,
                           std::int64_t lease_epoch) {
  for (std::size_t at = 0; at < shards_.size(); ++at) {
    auto& shard = *shards_[at];
    partitions_.shards()[at]->shard().post(
        [&shard, addresses, lease_epoch] { shard.set_brokers(addresses, lease_epoch); });
  }
}

void Replicas::set_rates(const ReplicationRates& rates) {
  const auto now = control().now();
  throttle_.leader.set_rate(rates.leader, now);
  throttle_.follower.set_rate(rates.follower, now);
  moves_.set_max(rates.moves_max);
}

void Replicas::note_moves(const std::vector<ReplicaOrder>& orders) {
  for (const auto& order : orders) {
    const auto& state = order.state;
    const bool comes = std::ranges::find(state.adding, broker_) != state.adding.end();
    moves_.note(order.id, comes || (!state.adding.empty() && state.leader == broker_));
  }
}

Task<> Replicas::load_high_watermarks() {
  if (high_watermarks_) co_return {};
  MR_CO_TRY(auto noted, co_await parts_.storage.checkpointed(CheckpointKind::high_watermark));
  HighWatermarks offsets;
  for (auto& one : noted) offsets.emplace(std::move(one.partition), one.offset);
  high_watermarks_ = std::make_shared<const HighWatermarks>(std::move(offsets));
  co_return {};
}

Task<std::vector<ReplicaFailure>> Replicas::apply(std::vector<ReplicaOrder> orders) {
  MR_CO_CHECK(co_await load_high_watermarks());
  note_moves(orders);
  std::vector<std::vector<ReplicaOrder>> by_shard(shards_.size());
  for (auto& order : orders) {
    auto& owner = partitions_.owner_of(order.id.topic, order.id.partition);
    by_shard[owner.shard().index()].push_back(std::move(order));
  }
  std::vector<Pending<ReplicasApplied>> running;
  for (std::size_t at = 0; at < by_shard.size(); ++at) {
    if (by_shard[at].empty()) continue;
    auto make = [&shard = *shards_[at], some = std::move(by_shard[at]),
                 high_watermarks = high_watermarks_]() mutable {
      return shard.apply(std::move(some), std::move(high_watermarks));
    };
    auto& where = partitions_.shards()[at]->shard();
    running.push_back(start(control(), run_on(where, std::move(make))));
  }
  std::vector<ReplicaFailure> failures;
  for (auto& one : running) {
    MR_CO_TRY(auto applied, co_await one);
    recovered_.offsets_checked += applied.recovery.offsets_checked;
    recovered_.bytes_cut += applied.recovery.bytes_cut;
    std::ranges::move(applied.failures, std::back_inserter(failures));
  }
  co_return std::move(failures);
}

Task<> Replicas::stop(std::vector<ReplicaStop> stops) {
  std::vector<Pending<>> ending;
  for (const auto& stop : stops) {
    moves_.note(stop.id, false);
    auto make = [&shard = shard_of(stop.id), id = stop.id] { return shard.stop(id); };
    auto& where = partitions_.owner_of(stop.id.topic, stop.id.partition).shard();
    ending.push_back(start(control(), run_on(where, std::move(make))));
  }
  for (auto& one : ending) MR_CO_CHECK(co_await one);

  std::map<TopicPartition, Uuid> erased;
  for (const auto& stop : stops) {
    if (stop.erase) erased.emplace(stop.id, stop.topic_id);
  }
  if (erased.empty()) co_return {};
  MR_CO_TRY(const auto logs, co_await parts_.storage.list());
  std::vector<Pending<>> removing;
  for (const auto& log : logs) {
    const auto found = erased.find(log.partition);
    if (found == erased.end()) continue;
    if (!log.topic_id.is_none() && log.topic_id != found->second) continue;
    auto task = parts_.storage.remove(log.partition);
    removing.push_back(start(control(), std::move(task)));
  }
  Result<> first_failure;
  for (auto& one : removing) {
    auto removed = co_await one;
    if (removed || removed.error().code == Errc::not_found) continue;
    if (first_failure) first_failure = std::move(removed);
  }
  co_return first_failure;
}

Task<> Replicas::stop_following() {
  for (std::size_t at = 0; at < shards_.size(); ++at) {
    auto make = [&shard = *shards_[at]] { return shard.stop_following(); };
    MR_CO_CHECK(co_await run_on(partitions_.shards()[at]->shard(), std::move(make)));
  }
  co_return {};
}

Task<> Replicas::close() {
  Result<> first_failure = co_await moves_.close();
  for (std::size_t at = 0; at < shards_.size(); ++at) {
    auto make = [&shard = *shards_[at]] { return shard.close(); };
    auto closing = run_on(partitions_.shards()[at]->shard(), std::move(make));
    auto closed = co_await std::move(closing);
    if (!closed && first_failure) first_failure = std::move(closed);
  }
  co_return first_failure;
}

}  // namespace millrace::kernel
