// Controllers of brokers on one simulated coordination; the brokers behind them are fakes that
// answer, hang or fail.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <ranges>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <millrace/testing/fake_host.h>
#include <millrace/testing/sim_coordination.h>

#include "kernel/cluster/controller.h"
#include "kernel/cluster/znodes.h"

namespace millrace::kernel {

using Ids = std::vector<std::int32_t>;

// What each broker was told, and how it answers.
class FakeBrokers final : public UpdateTarget {
 public:
  Task<ClusterUpdated> update(BrokerState broker, ClusterUpdate update) override {
    ++asked[broker.id];
    const auto hung = [&] { return hang.contains(broker.id); };
    while (hung()) MR_CO_CHECK(co_await sleep(std::chrono::milliseconds(100)));
    if (lose_answers[broker.id] > 0) {
      --lose_answers[broker.id];
      told[broker.id].push_back(std::move(update));
      co_return Error{Errc::closed, "the connection is gone"};
    }
    ClusterUpdated answer;
    answer.failures = failures[broker.id];
    if (update.controller_epoch < newest_epoch) answer.error = ErrorCode::stale_controller_epoch;
    told[broker.id].push_back(std::move(update));
    co_return std::move(answer);
  }

  std::map<std::int32_t, std::vector<ClusterUpdate>> told;
  std::map<std::int32_t, int> asked;
  std::map<std::int32_t, int> lose_answers;
  std::map<std::int32_t, std::vector<ReplicaFailure>> failures;
  std::set<std::int32_t> hang;
  std::int32_t newest_epoch = 0;
};

// Refuses for a while what would change some keys.
class FaultyCoordination final : public Coordination {
 public:
  explicit FaultyCoordination(std::unique_ptr<Coordination> under) : under_(std::move(under)) {}

  Task<std::unique_ptr<Lease>> join(millrace::Member self) override { return under_->join(self); }
  Task<Versioned> get(std::string key) override {
    if (reading_++ == 0) ++rounds;
    auto getting = under_->get(std::move(key));
    auto read = co_await std::move(getting);
    --reading_;
    co_return std::move(read);
  }
  Task<std::vector<std::string>> list(std::string prefix) override {
    return under_->list(std::move(prefix));
  }
  Task<std::vector<Version>> commit(std::vector<Write> writes) override {
    ++commits;
    for (const auto& write : writes) {
      if (failing.empty() || !write.key.starts_with(failing)) continue;
      ++failed;
      co_return Error{Errc::io, write.key + ": no space left"};
    }
    co_return co_await under_->commit(std::move(writes));
  }
  Task<Seen> next_change(std::string prefix, Seen seen) override {
    return under_->next_change(std::move(prefix), seen);
  }

  std::string failing;  // what keys begin with
  int failed = 0;
  int commits = 0;
  int rounds = 0;  // of reads: what is on its way together is one

 private:
  int reading_ = 0;
  std::unique_ptr<Coordination> under_;
};

struct Member {
  explicit Member(testing::SimEnvironment& on, testing::SimCoordination& service, std::int32_t of,
                  FakeBrokers& all, testing::KeptLog& log,
                  std::map<std::string, std::string> defaults)
      : node(on), coordination(std::make_unique<FaultyCoordination>(service.connect(on))), id(of) {
    controller = std::make_unique<Controller>(ControllerParts{
        node, *coordination, all, Log(log, "broker"), metrics, id, std::move(defaults)});
  }
  testing::SimEnvironment& node;
  testing::KeptMetrics metrics;
  std::unique_ptr<FaultyCoordination> coordination;
  std::int32_t id;
  std::unique_ptr<Lease> lease;
  std::unique_ptr<Controller> controller;
};

class ControllerFixture : public ::testing::Test {
 public:
  ~ControllerFixture() override {
    for (auto& [id, member] : members_) stop(*member);
    world_.run_for(std::chrono::seconds(1));
  }

 protected:
  template <class F>
  auto run(Member& on, F make) {
    return world_.run(on.node.control(), std::move(make));
  }
  template <class T>
  static const T& good(const Result<T>& result) {
    EXPECT_TRUE(result) << to_string(result.error());
    return *result;
  }

  void join(Member& member) {
    auto joined = run(member, [&] { return member.coordination->join({.broker_id = member.id}); });
    ASSERT_TRUE(joined) << to_string(joined.error());
    member.lease = *std::move(joined);
    BrokerState self{.id = member.id, .epoch = member.lease->epoch()};
    self.endpoints["kafka"] = {"b" + std::to_string(member.id), 9092};
    const auto cluster = run(member, [&] {
      std::vector<Write> writes;
      writes.push_back({.key = std::string(znodes::cluster_id),
                        .value = znodes::encode_cluster_id("the-cluster")});
      writes.push_back({.key = znodes::broker(member.id),
                        .value = znodes::encode_broker(self, Timestamp{1}),
                        .ephemeral = true});
      return member.coordination->commit(std::move(writes));
    });
    ASSERT_TRUE(cluster) << to_string(cluster.error());
  }
  // Its controller begins to stand for election.
  Member& start(std::int32_t id) {
    auto& member = member_of(id);
    join(member);
    auto& control = member.node.control();
    control.post([&member, &control] { spawn(control, member.controller->run(), "controller"); });
    world_.run_for(std::chrono::milliseconds(500));
    return member;
  }
  Member& member_of(std::int32_t id) {
    auto& member = members_[id];
    if (!member) {
      auto& node = world_.add_node("b" + std::to_string(id));
      member = std::make_unique<Member>(node, service_, id, brokers_, log_, defaults_);
    }
    return *member;
  }
  void stop(Member& member) {
    EXPECT_TRUE(run(member, [&] { return member.controller->close(); }));
  }
  // As a process that dies: the service finds out at once.
  void die(Member& member) {
    service_.expire(member.node);
    world_.run_for(std::chrono::seconds(2));
  }

  // A topic of one partition whose replicas are 1, 2 and 3, led by 1.
  std::shared_ptr<const TopicState> add_topic(Member& on, const std::string& name,
                                              Ids replicas = {1, 2, 3}) {
    TopicState topic;
    topic.name = name;
    topic.id.bytes.fill(static_cast<std::uint8_t>(name.size()));
    topic.partitions.push_back(
        {.leader = replicas.front(), .replicas = replicas, .in_sync = replicas});
    return add(on, std::move(topic));
  }
  std::shared_ptr<const TopicState> add(Member& on, TopicState topic) {
    const auto added = run(on, [&] { return add_in_turn(*on.controller, topic); });
    EXPECT_TRUE(added) << to_string(added.error());
    return std::make_shared<const TopicState>(std::move(topic));
  }
  static Task<> add_in_turn(Controller& controller, TopicState topic) {
    MR_CO_TRY(const auto turn, co_await controller.turn());
    std::vector<TopicState> one;
    one.push_back(std::move(topic));
    auto adding = controller.add_topics(std::move(one));
    MR_CO_TRY(const auto added, co_await std::move(adding));
    co_return added.each.front();
  }
  // Nobody knows it any more.
  static Task<UpdateSender::Moment> erase_in_turn(Controller& controller, std::string name) {
    MR_CO_TRY(const auto turn, co_await controller.turn());
    std::vector<std::string> one{std::move(name)};
    auto erasing = controller.erase_topics(std::move(one));
    MR_CO_TRY(const auto erased, co_await std::move(erasing));
    MR_CO_CHECK(erased.each.front());
    co_return erased.moment;
  }
  PartitionState stored(const std::string& topic) {
    PartitionState state;
    const auto text = service_.value(znodes::partition_state(topic, 0));
    EXPECT_TRUE(text && znodes::decode_partition_state(*text, state));
    return state;
  }
  // Of the newest update to a broker that speaks of the topic.
  std::optional<ClusterPartition> told(std::int32_t broker, const std::string& topic) {
    for (const auto& update : std::views::reverse(brokers_.told[broker])) {
      for (const auto& one : update.topics) {
        if (one.name == topic && !one.partitions.empty()) return one.partitions.front();
      }
    }
    return std::nullopt;
  }
  InSyncChanged change(Member& on, std::int32_t broker, InSyncChange wanted) {
    const auto epoch = members_.at(broker)->lease->epoch();
    std::vector<InSyncChange> changes{std::move(wanted)};
    auto answers = run(on, [&] { return on.controller->change_in_sync(broker, epoch, changes); });
    EXPECT_TRUE(answers) << to_string(answers.error());
    return answers->at(0);
  }

  testing::SimWorld world_{11};
  testing::SimCoordination service_{world_};
  FakeBrokers brokers_;
  testing::KeptLog log_;
  std::map<std::string, std::string> defaults_;
  std::map<std::int32_t, std::unique_ptr<Member>> members_;
};

}  // namespace millrace::kernel
