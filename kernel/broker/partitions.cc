#include "kernel/broker/partitions.h"

#include <algorithm>
#include <iterator>

namespace millrace::kernel {

std::shared_ptr<Partition> ShardState::find(std::string_view topic, std::int32_t partition) const {
  const auto found = partitions_.find(topic);
  if (found == partitions_.end() || partition < 0) return nullptr;
  const auto at = static_cast<std::size_t>(partition);
  return at < found->second.size() ? found->second[at] : nullptr;
}

void ShardState::add(std::shared_ptr<Partition> partition) {
  const auto& id = partition->id();
  auto& list = partitions_[id.topic];
  const auto at = static_cast<std::size_t>(id.partition);
  if (list.size() <= at) list.resize(at + 1);
  MR_ASSERT(list[at] == nullptr);
  list[at] = std::move(partition);
  ++count_;
  if (!list[at]->leading()) return;
  for (auto* observer : observers_) observer->leads(list[at]);
}

void ShardState::led(const TopicPartition& id) {
  const auto partition = find(id.topic, id.partition);
  if (!partition || !partition->leading()) return;
  for (auto* observer : observers_) observer->leads(partition);
}

void ShardState::left(const TopicPartition& id) {
  for (auto* observer : observers_) observer->gone(id);
}

std::shared_ptr<Partition> ShardState::take(const TopicPartition& id) {
  const auto found = partitions_.find(id.topic);
  if (found == partitions_.end()) return nullptr;
  auto& list = found->second;
  const auto at = static_cast<std::size_t>(id.partition);
  if (at >= list.size()) return nullptr;
  auto partition = std::exchange(list[at], nullptr);
  if (std::ranges::all_of(list, [](const auto& other) { return other == nullptr; })) {
    partitions_.erase(found);
  }
  if (partition) {
    --count_;
    left(id);
  }
  return partition;
}

std::vector<std::shared_ptr<Partition>> ShardState::all() const {
  // In an order that does not depend on hashing, so that a simulated run repeats.
  std::vector<decltype(partitions_)::const_pointer> topics;
  topics.reserve(partitions_.size());
  std::size_t count = 0;
  for (const auto& topic : partitions_) {
    topics.push_back(&topic);
    count += topic.second.size();
  }
  std::ranges::sort(topics, {}, [](const auto* topic) -> const auto& { return topic->first; });
  std::vector<std::shared_ptr<Partition>> all;
  all.reserve(count);
  for (const auto* topic : topics) {
    std::ranges::copy_if(topic->second, std::back_inserter(all),
                         [](const auto& partition) { return partition != nullptr; });
  }
  return all;
}

Task<std::shared_ptr<const ClusterState>> ShardState::joined() {
  while (!cluster_) MR_CO_CHECK(co_await published_.wait());
  co_return cluster_;
}

PartitionMap::PartitionMap(Environment& environment, std::size_t memory_bytes)
    : one_at_a_time_(environment.workers()) {
  const auto shards = environment.shards();
  for (auto* shard : shards) {
    shards_.push_back(std::make_unique<ShardState>(*shard, memory_bytes / shards.size(),
                                                   environment.workers(), one_at_a_time_));
  }
}

ShardState& PartitionMap::owner_of(std::string_view topic, std::int32_t partition) noexcept {
  if (shards_.size() == 1) return *shards_.front();
  // FNV-1a: the same in every run and on every machine, unlike std::hash.
  std::uint64_t hash = 14695981039346656037ULL;
  const auto mix = [&hash](std::uint8_t byte) { hash = (hash ^ byte) * 1099511628211ULL; };
  for (const auto c : topic) mix(static_cast<std::uint8_t>(c));
  // Neighbours go to different shards, so that a topic spreads evenly.
  const auto at = (hash + static_cast<std::uint32_t>(partition)) % shards_.size();
  return *shards_[at];
}

ShardState& PartitionMap::here() noexcept {
  for (const auto& state : shards_) {
    if (state->shard().is_current()) return *state;
  }
  MR_ASSERT(!"called on a data shard");
  __builtin_unreachable();
}

std::size_t PartitionMap::count() const noexcept {
  std::size_t partitions = 0;
  for (const auto& state : shards_) partitions += state->count();
  return partitions;
}

}  // namespace millrace::kernel
