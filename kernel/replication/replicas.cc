#include "kernel/replication/replicas.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <utility>

namespace millrace::kernel {

namespace {

using Orders = std::vector<ReplicaOrder>;

// What one shard has done of its orders.
struct Applied {
  std::vector<ReplicaFailure> failures;
  Recovery recovery;
};

struct ShardOrders {
  BrokerParts& parts;
  ShardState& owner;
  Orders orders;
};

Task<Recovery> open_one(BrokerParts& parts, ShardState& owner, const ReplicaOrder& order) {
  PartitionHost host{parts.environment, owner.shard(), parts.storage,
                     parts.codecs,      parts.log,     owner.opening()};
  auto opening = Partition::open(std::move(host), order.id, order.topic_id, order.config,
                                 order.state.leader_epoch);
  MR_CO_TRY(auto partition, co_await std::move(opening));
  const auto recovery = partition->recovery();
  if (recovery.created && order.known) {
    parts.log.warning(
        "the log of a known topic is missing; it begins anew, empty. If it was not just being "
        "created, stop the broker and bring its folder back from a copy",
        {{"partition", to_string(order.id)}});
  }
  owner.add(std::move(partition));
  co_return recovery;
}

Task<Recovery> apply_one(BrokerParts& parts, ShardState& owner, const ReplicaOrder& order) {
  if (const auto partition = owner.find(order.id.topic, order.id.partition)) {
    partition->set_config(order.config);
    co_return Recovery{};
  }
  co_return co_await open_one(parts, owner, order);
}

// All at once: many wait for the disk.
Task<Applied> apply_on(ShardOrders work) {
  std::vector<Pending<Recovery>> running;
  running.reserve(work.orders.size());
  for (const auto& order : work.orders) {
    running.push_back(start(work.owner.shard(), apply_one(work.parts, work.owner, order)));
  }
  Applied applied;
  for (std::size_t at = 0; at < running.size(); ++at) {
    auto done = co_await running[at];
    if (done) {
      applied.recovery.offsets_checked += done->offsets_checked;
      applied.recovery.bytes_cut += done->bytes_cut;
      continue;
    }
    applied.failures.push_back({.partition = work.orders[at].id,
                                .error = ErrorCode::kafka_storage_error,
                                .message = to_string(done.error())});
  }
  co_return std::move(applied);
}

Task<> stop_on(ShardState& owner, TopicPartition id, Log log) {
  const auto partition = owner.take(id);
  if (!partition) co_return {};
  const auto closed = co_await partition->abandon();
  if (!closed) {
    log.warning("a partition that is being removed did not close cleanly",
                {{"partition", to_string(id)}, {"error", to_string(closed.error())}});
  }
  co_return {};
}

}  // namespace

Replicas::Replicas(BrokerParts& parts, const BrokerConfig& config, PartitionMap& partitions,
                   const LeaseClock& lease)
    : parts_(parts), config_(config), partitions_(partitions), lease_(lease) {}

Task<std::vector<ReplicaFailure>> Replicas::apply(std::vector<ReplicaOrder> orders) {
  std::vector<Orders> by_shard(partitions_.shards().size());
  for (auto& order : orders) {
    auto& owner = partitions_.owner_of(order.id.topic, order.id.partition);
    by_shard[owner.shard().index()].push_back(std::move(order));
  }
  std::vector<Pending<Applied>> running;
  for (std::size_t at = 0; at < by_shard.size(); ++at) {
    if (by_shard[at].empty()) continue;
    auto& owner = *partitions_.shards()[at];
    auto make = [work = ShardOrders{parts_, owner, std::move(by_shard[at])}]() mutable {
      return apply_on(std::move(work));
    };
    running.push_back(start(parts_.environment.control(), run_on(owner.shard(), std::move(make))));
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
    auto& owner = partitions_.owner_of(stop.id.topic, stop.id.partition);
    auto make = [&owner, id = stop.id, log = parts_.log] { return stop_on(owner, id, log); };
    ending.push_back(start(parts_.environment.control(), run_on(owner.shard(), std::move(make))));
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
    removing.push_back(start(parts_.environment.control(), std::move(task)));
  }
  Result<> first_failure;
  for (auto& one : removing) {
    auto removed = co_await one;
    if (removed || removed.error().code == Errc::not_found) continue;
    if (first_failure) first_failure = std::move(removed);
  }
  co_return first_failure;
}

void Replicas::set_brokers(std::map<std::int32_t, Address> addresses) {
  brokers_ = std::move(addresses);
}

Task<> Replicas::close() { co_return {}; }

}  // namespace millrace::kernel
