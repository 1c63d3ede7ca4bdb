// Three brokers' replicas in one simulated world. Their peers read each other's partitions through
// the broker's own fetch sessions; an authority stands for the controller.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <millrace/batch.h>
#include <millrace/testing/fake_host.h>
#include <millrace/testing/sim_environment.h>

#include "kernel/broker/fetch_session.h"
#include "kernel/replication/replicas.h"

namespace millrace::kernel::three {

using std::chrono::milliseconds;
using std::chrono::seconds;

inline constexpr Uuid topic_id{{1, 2, 3}};

inline TopicPartition numbered(std::int32_t number) { return {"orders", number}; }

class Node;

// What a leader's end of a connection keeps.
struct LeaderEnd {
  Node& leader;
  std::shared_ptr<FetchSession> session;
  std::int32_t sessions = 0;
};

class FakePeer final : public Peer {
 public:
  explicit FakePeer(Node& leader) : end_(std::make_shared<LeaderEnd>(leader)) {}
  ~FakePeer() override;
  Task<FetchAnswer> fetch(FetchRequest request) override;
  Task<std::vector<TopicEpochEnds>> epoch_ends(std::int32_t,
                                               std::vector<TopicEpochQuery>) override {
    co_return Error{Errc::unsupported, "not here"};
  }
  Task<ClusterUpdated> update(ClusterUpdate) override {
    co_return Error{Errc::unsupported, "not here"};
  }
  Task<std::vector<InSyncChanged>> change_in_sync(std::int32_t, std::int64_t,
                                                  std::vector<InSyncChange>) override {
    co_return Error{Errc::unsupported, "not here"};
  }
  Task<std::vector<TopicCreated>> create_topics(std::vector<NewTopic>) override {
    co_return Error{Errc::unsupported, "not here"};
  }
  Task<std::vector<TopicDeleted>> delete_topics(std::vector<TopicName>) override {
    co_return Error{Errc::unsupported, "not here"};
  }
  Task<LeadersMoved> shut_down(std::int32_t, std::int64_t) override {
    co_return Error{Errc::unsupported, "not here"};
  }

 private:
  std::shared_ptr<LeaderEnd> end_;
};

using Nodes = std::map<std::int32_t, std::unique_ptr<Node>>;

class FakeLink final : public PeerLink {
 public:
  explicit FakeLink(Nodes& nodes) : nodes_(nodes) {}
  Task<std::unique_ptr<Peer>> connect(Address address) override;

 private:
  Nodes& nodes_;
};

class Node {
 public:
  Node(testing::SimWorld& world, std::int32_t id, Nodes& nodes, InSyncAuthority& authority,
       std::map<std::string, std::string> defaults)
      : id(id),
        link_(nodes),
        environment(world.add_node("b" + std::to_string(id), 2)),
        world_(world) {
    const std::string plugins = MILLRACE_PLUGIN_DIR;
    storage_.emplace(*testing::load_plugin(plugins + "/storage/memory.so", environment));
    coordination_.emplace(*testing::load_plugin(plugins + "/coordination/standalone.so",
                                                environment, {}, {{"broker.data", "/data"}}));
    parts_.emplace(BrokerParts{environment, *storage_->registered().storage,
                               *coordination_->registered().coordination, Codecs(),
                               Log(log, "broker"), metrics_});
    config_ = {.id = id, .memory_bytes = std::size_t{64} << 20, .defaults = std::move(defaults)};
    partitions.emplace(environment, config_.memory_bytes);
    lease.extend(MonoTime::max());
    replicas.emplace(*parts_, config_, *partitions, lease);
    replicas->connect({.peers = &link_, .authority = &authority});
  }
  void close() {
    EXPECT_TRUE(world_.run(environment.control(), [this] { return replicas->close(); }));
    for (const auto& state : partitions->shards()) {
      auto end = [&state = *state]() -> Task<> {
        for (const auto& partition : state.all()) {
          MR_CO_CHECK(co_await partition->abandon());
          state.take(partition->id());
        }
        co_return {};
      };
      EXPECT_TRUE(world_.run(state->shard(), end));
    }
  }
  std::shared_ptr<Partition> partition(std::int32_t number) {
    return partitions->owner_of("orders", number).find("orders", number);
  }

  std::int32_t id;
  bool up = true;

 private:
  FakeLink link_;

 public:
  testing::KeptLog log;
  testing::SimEnvironment& environment;
  LeaseClock lease;
  std::optional<PartitionMap> partitions;
  std::optional<Replicas> replicas;
  std::size_t fetches = 0;

 private:
  testing::SimWorld& world_;
  testing::KeptMetrics metrics_;
  std::optional<testing::LoadedPlugin> storage_;
  std::optional<testing::LoadedPlugin> coordination_;
  std::optional<BrokerParts> parts_;
  BrokerConfig config_;
};

class ReplicasTest : public ::testing::Test, public InSyncAuthority {
 protected:
  ReplicasTest() {
    const std::map<std::string, std::string> defaults{{"replica.lag.time.max.ms", "2000"}};
    for (const std::int32_t id : {1, 2, 3}) {
      nodes_[id] = std::make_unique<Node>(world_, id, nodes_, *this, defaults);
    }
    for (const std::int32_t number : {0, 1, 2}) {
      auto& state = states_[number];
      state.leader = 1;
      state.leader_epoch = {1};
      state.partition_epoch = 1;
      state.replicas = state.in_sync = {1, 2, 3};
    }
  }
  ~ReplicasTest() override {
    for (auto& [id, node] : nodes_) node->close();
    // Polls that wait at a leader end with their time.
    world_.run_for(std::chrono::seconds(1));
  }

  Node& node(std::int32_t id) { return *nodes_[id]; }
  std::int64_t lease_of(std::int32_t id) const {
    const auto other = leases_.find(id);
    return other == leases_.end() ? 100 + id : other->second;
  }

  /// Tells everybody who is up what holds, as the controller would.
  void tell() {
    auto cluster = std::make_shared<ClusterState>();
    TopicState topic{.name = "orders", .id = topic_id};
    for (const auto& [number, state] : states_) topic.partitions.push_back(state);
    cluster->put(std::move(topic));
    std::map<std::int32_t, Address> addresses;
    for (const auto& [id, one] : nodes_) {
      if (one->up) addresses.emplace(id, Address{"b" + std::to_string(id), 9092});
    }
    for (const auto& [id, address] : addresses) {
      const auto known = known_leases_.find(id);
      const auto epoch = known == known_leases_.end() ? lease_of(id) : known->second;
      cluster->brokers.emplace(id, BrokerState{.id = id, .epoch = epoch});
    }
    for (auto& [id, one] : nodes_) {
      if (!one->up) continue;
      for (const auto& shard : one->partitions->shards()) {
        shard->shard().post([&shard = *shard, cluster] { shard.publish(cluster); });
      }
      one->replicas->set_brokers(addresses, lease_of(id));
      std::vector<ReplicaOrder> orders;
      for (const auto& [number, state] : states_) {
        orders.push_back({.id = numbered(number),
                          .topic_id = topic_id,
                          .config = {},
                          .state = state,
                          .leader_throttled = leader_throttled_,
                          .follower_throttled = follower_throttled_});
      }
      auto applied = world_.run(one->environment.control(), [&replicas = *one->replicas, orders] {
        return replicas.apply(orders);
      });
      ASSERT_TRUE(applied) << to_string(applied.error());
      ASSERT_TRUE(applied->empty()) << applied->front().message;
    }
  }
  void elect(std::int32_t leader) {
    for (auto& [number, state] : states_) {
      state.leader = leader;
      ++state.leader_epoch.value;
      ++state.partition_epoch;
      std::erase_if(state.in_sync, [this](std::int32_t id) { return !nodes_[id]->up; });
    }
    tell();
  }

  Result<PartitionProduced> produce(std::int32_t leader, std::int32_t number,
                                    const std::string& value, std::int16_t acks = -1) {
    auto& shard = node(leader).partitions->owner_of("orders", number);
    auto body = [&shard, number, value, acks]() -> Task<PartitionProduced> {
      BatchBuilder builder({});
      builder.add({1'700'000'000'000}, std::nullopt, as_bytes(value));
      MR_CO_TRY(auto batch, std::move(builder).finish());
      const PartitionRecords records{.partition = number, .records = std::move(batch)};
      const auto partition = shard.find("orders", number);
      auto call = partition->produce(records, {.acks = acks, .timeout = seconds(30)});
      MR_CO_CHECK(co_await call.dispatched);
      co_return co_await call.done;
    };
    return world_.run(shard.shard(), body);
  }
  std::vector<std::string> values(std::int32_t id, std::int32_t number) {
    std::vector<std::string> values;
    auto& shard = node(id).partitions->owner_of("orders", number);
    auto body = [&shard, number]() -> Task<Payload> {
      const auto partition = shard.find("orders", number);
      co_return co_await partition->read_own({0}, 1 << 20);
    };
    const auto records = world_.run(shard.shard(), body);
    EXPECT_TRUE(records) << to_string(records.error());
    auto bytes = *records->flatten();
    while (!bytes.empty()) {
      const auto header = *read_batch_header(bytes);
      EXPECT_TRUE(for_each_record(
          header,
          bytes.bytes().subspan(batch_header_bytes, header.total_bytes() - batch_header_bytes),
          [&values](const RecordView& record) {
            values.emplace_back(as_text(*record.value));
            return true;
          }));
      bytes = bytes.slice(header.total_bytes());
    }
    return values;
  }
  bool until(const std::function<bool()>& holds) { return world_.run_until(holds, seconds(60)); }

  // InSyncAuthority
  Task<std::vector<InSyncChanged>> change_in_sync(std::vector<InSyncChange> changes) override {
    if (refuse_all_) co_return Error{Errc::closed, "no controller"};
    ++asked_;
    std::vector<InSyncChanged> answers;
    for (auto& change : changes) {
      auto& state = states_[change.partition.partition];
      auto& answer = answers.emplace_back(InSyncChanged{.partition = change.partition});
      if (change.partition_epoch != state.partition_epoch ||
          change.leader_epoch != state.leader_epoch) {
        answer.error = ErrorCode::invalid_update_version;
        continue;
      }
      state.in_sync = change.in_sync;
      epochs_told_ = change.in_sync_epochs;
      ++state.partition_epoch;
      if (change_ends_move_) ++state.leader_epoch.value;
      answer.state = {.partition = change.partition.partition,
                      .leader = state.leader,
                      .leader_epoch = state.leader_epoch,
                      .partition_epoch = state.partition_epoch,
                      .replicas = {},
                      .in_sync = state.in_sync};
      if (!change_ends_move_) answer.state.replicas = state.replicas;
    }
    co_return std::move(answers);
  }

  testing::SimWorld world_{11};
  Nodes nodes_;
  std::map<std::int32_t, PartitionState> states_;
  bool leader_throttled_ = false;    // in every order
  bool follower_throttled_ = false;  // likewise
  bool refuse_all_ = false;
  bool change_ends_move_ = false;  // at a controller elsewhere, which answers no replicas
  std::map<std::int32_t, std::int64_t> leases_;        // another one than at first
  std::map<std::int32_t, std::int64_t> known_leases_;  // what everybody is told of them instead
  std::vector<std::int64_t> epochs_told_;
  int asked_ = 0;  // so often for other in-sync sets
};

}  // namespace millrace::kernel::three
