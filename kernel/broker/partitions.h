// Which partition lives where: each belongs to one shard, by a hash of its name, and only that
// shard touches it. Also what else a shard keeps for the broker: its view of the cluster, its share
// of the memory for requests, the codecs there are.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <millrace/codec.h>
#include <millrace/environment.h>
#include <millrace/shard.h>

#include "kernel/cluster/cluster_state.h"
#include "kernel/partition/partition.h"

namespace millrace::kernel {

/// Is told of what comes and goes on one shard.  [its shard]
class ShardObserver {
 public:
  /// The partition's replica here leads it from now on.
  virtual void leads(const std::shared_ptr<Partition>& partition) = 0;
  /// It leads no more, or is about to be closed. Also told of who has not led.
  virtual void gone(const TopicPartition& id) = 0;
  /// ShardState::cluster() is another one.
  virtual void published() = 0;

 protected:
  ~ShardObserver() = default;
};

/// [its shard]
class ShardState {
 public:
  ShardState(Shard& shard, std::size_t memory_bytes, BlockingPool& workers,
             BlockingPool& one_at_a_time)
      : shard_(shard), memory_(memory_bytes), opening_(workers, one_at_a_time) {}

  Shard& shard() noexcept { return shard_; }
  MemoryBudget& memory() noexcept { return memory_; }
  Opening& opening() noexcept { return opening_; }
  /// Those that are used from now on. Whoever works elsewhere than on this shard has a copy.
  const Codecs& codecs() const noexcept { return codecs_; }
  void use(const Codecs& codecs) noexcept { codecs_ = codecs; }

  /// nullptr when it is not here: not ours, being opened, or gone.
  std::shared_ptr<Partition> find(std::string_view topic, std::int32_t partition) const;
  void add(std::shared_ptr<Partition> partition);
  std::shared_ptr<Partition> take(const TopicPartition& id);
  /// What is here has become leader, or is that no more.
  void led(const TopicPartition& id);
  void left(const TopicPartition& id);
  std::vector<std::shared_ptr<Partition>> all() const;
  /// How many are here.  [any thread]
  std::size_t count() const noexcept { return count_; }

  /// `observer` outlives what follows, or is taken back.
  void observe(ShardObserver& observer) { observers_.push_back(&observer); }
  void forget(ShardObserver& observer) { std::erase(observers_, &observer); }

  /// Null until the broker has joined the cluster.
  const std::shared_ptr<const ClusterState>& cluster() const noexcept { return cluster_; }
  void publish(std::shared_ptr<const ClusterState> cluster) {
    cluster_ = std::move(cluster);
    published_.notify_all();
    for (auto* observer : observers_) observer->published();
  }
  /// Loops of this shard: they run in `background`, and `running` lets their end be waited for.
  CancelScope& background() noexcept { return background_; }
  Gate& running() noexcept { return running_; }

  /// Waits for the first cluster state.
  Task<std::shared_ptr<const ClusterState>> joined();

 private:
  struct TextHash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const noexcept {
      return std::hash<std::string_view>{}(text);
    }
  };

  Shard& shard_;
  MemoryBudget memory_;
  Opening opening_;
  Codecs codecs_;
  std::shared_ptr<const ClusterState> cluster_;
  Event published_;
  std::vector<ShardObserver*> observers_;
  CancelScope background_;
  Gate running_;
  // By topic, then by number; null where a partition is not on this shard.
  std::unordered_map<std::string, std::vector<std::shared_ptr<Partition>>, TextHash,
                     std::equal_to<>>
      partitions_;
  std::atomic<std::size_t> count_ = 0;
};

/// All shards of the broker.
class PartitionMap {
 public:
  PartitionMap(Environment& environment, std::size_t memory_bytes);

  /// [any thread]
  ShardState& owner_of(std::string_view topic, std::int32_t partition) noexcept;
  std::span<const std::unique_ptr<ShardState>> shards() const noexcept { return shards_; }
  ShardState& state_of(const Shard& shard) noexcept { return *shards_[shard.index()]; }
  /// The state of the shard that runs this.
  ShardState& here() noexcept;
  /// How many are open.  [any thread]
  std::size_t count() const noexcept;

 private:
  OneAtATime one_at_a_time_;
  std::vector<std::unique_ptr<ShardState>> shards_;
};

}  // namespace millrace::kernel
