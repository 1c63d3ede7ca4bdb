// A KernelBroker over the storage and coordination plugins as shipped, on a simulated machine of
// two shards.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <millrace/batch.h>
#include <millrace/testing/fake_host.h>
#include <millrace/testing/sim_environment.h>

#include "kernel/broker/broker.h"

namespace millrace::kernel {

// Counts what is written through it.
class CountedCoordination final : public Coordination {
 public:
  explicit CountedCoordination(Coordination& under) : under_(under) {}

  Task<std::unique_ptr<Lease>> join(Member self) override { return under_.join(self); }
  Task<Versioned> get(std::string key) override { return under_.get(std::move(key)); }
  Task<std::vector<std::string>> list(std::string prefix) override {
    return under_.list(std::move(prefix));
  }
  Task<std::vector<Version>> commit(std::vector<Write> writes) override {
    ++commits;
    return under_.commit(std::move(writes));
  }
  Task<Seen> next_change(std::string prefix, Seen seen) override {
    return under_.next_change(std::move(prefix), seen);
  }

  int commits = 0;

 private:
  Coordination& under_;
};

class BrokerTest : public ::testing::Test {
 public:
  ~BrokerTest() override;

 protected:
  BrokerTest();

  /// Ends the broker, cleanly, and starts one anew on the same disk. What storage/memory held is
  /// gone, as with a process.
  void restart();

  /// Runs `body` on data shard `shard`, as a connection there would, and returns its result.
  template <class F>
  auto on_shard(std::size_t shard, F body) {
    return world_.run(*node_.shards()[shard], std::move(body));
  }
  Session& session(std::size_t shard);
  /// What the broker keeps its metadata in.
  CountedCoordination& coordination() { return *counted_; }

  std::vector<TopicCreated> create(NewTopic topic);
  /// A topic whose partitions 0 and 1 are on different shards; so are any two neighbours.
  void create(const std::string& topic, std::int32_t partitions);

  ProduceRequest produce_request(const std::string& topic, std::vector<std::int32_t> partitions,
                                 std::string value, std::int16_t acks = -1);
  FetchRequest fetch_request(const std::string& topic, std::vector<PartitionFetch> partitions);
  /// Both stages of a call, from a shard.
  Result<ProduceAnswer> produce(std::size_t shard, ProduceRequest request);
  Result<FetchAnswer> fetch(std::size_t shard, FetchRequest request);
  /// Begins a fetch and leaves it waiting; the answer appears in the optional.
  std::shared_ptr<std::optional<Result<FetchAnswer>>> begin_fetch(std::size_t shard,
                                                                  FetchRequest request);
  /// The values of all records in a fetched partition.
  static std::vector<std::string> values_of(const PartitionFetched& partition);

  millrace::testing::KeptLog log_;
  millrace::testing::SimWorld world_{7};
  millrace::testing::SimEnvironment& node_;
  std::map<std::string, std::string> defaults_;
  /// From the next restart() on in place of storage/memory, where a test has one of its own.
  Storage* own_storage_ = nullptr;
  std::unique_ptr<KernelBroker> broker_;

 private:
  void start();
  void stop();

  millrace::testing::KeptMetrics metrics_;
  std::optional<millrace::testing::LoadedPlugin> storage_;
  std::optional<millrace::testing::LoadedPlugin> coordination_;
  std::optional<CountedCoordination> counted_;
  std::vector<std::unique_ptr<Session>> sessions_;
};

}  // namespace millrace::kernel
