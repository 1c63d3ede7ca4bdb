// Controllers of three brokers on one simulated coordination; the brokers behind them are fakes
// that answer, hang or fail.
#include <ranges>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <millrace/testing/fake_host.h>
#include <millrace/testing/sim_coordination.h>

#include "kernel/cluster/controller.h"
#include "kernel/cluster/topics.h"
#include "kernel/cluster/znodes.h"

namespace millrace::kernel {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::SimCoordination;
using testing::SimEnvironment;
using testing::SimWorld;

using Ids = std::vector<std::int32_t>;

// What each broker was told, and how it answers.
class FakeBrokers final : public UpdateTarget {
 public:
  Task<ClusterUpdated> update(BrokerState broker, ClusterUpdate update) override {
    ++asked[broker.id];
    const auto hung = [&] { return hang.contains(broker.id); };
    while (hung()) MR_CO_CHECK(co_await sleep(milliseconds(100)));
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

struct Member {
  explicit Member(SimEnvironment& on, SimCoordination& service, std::int32_t of, FakeBrokers& all,
                  testing::KeptLog& log, std::map<std::string, std::string> defaults)
      : node(on), coordination(service.connect(on)), id(of) {
    controller = std::make_unique<Controller>(
        ControllerParts{node, *coordination, all, Log(log, "broker"), id, std::move(defaults)});
  }
  SimEnvironment& node;
  std::unique_ptr<Coordination> coordination;
  std::int32_t id;
  std::unique_ptr<Lease> lease;
  std::unique_ptr<Controller> controller;
};

class ControllerTest : public ::testing::Test {
 protected:
  ~ControllerTest() override {
    for (auto& [id, member] : members_) stop(*member);
    world_.run_for(seconds(1));
  }

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
    world_.run_for(milliseconds(500));
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
    world_.run_for(seconds(2));
  }

  // A topic of one partition whose replicas are 1, 2 and 3, led by 1.
  std::shared_ptr<const TopicState> add_topic(Member& on, const std::string& name,
                                              Ids replicas = {1, 2, 3}) {
    TopicState topic;
    topic.name = name;
    topic.id.bytes.fill(static_cast<std::uint8_t>(name.size()));
    topic.partitions.push_back(
        {.leader = replicas.front(), .replicas = replicas, .in_sync = replicas});
    const auto added = run(on, [&]() -> Task<> {
      auto& controller = *on.controller;
      MR_CO_TRY(const auto turn, co_await controller.turn());
      MR_CO_CHECK(co_await controller.add_topic(topic));
      co_return {};
    });
    EXPECT_TRUE(added) << to_string(added.error());
    return std::make_shared<const TopicState>(topic);
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

  SimWorld world_{11};
  SimCoordination service_{world_};
  FakeBrokers brokers_;
  testing::KeptLog log_;
  std::map<std::string, std::string> defaults_;
  std::map<std::int32_t, std::unique_ptr<Member>> members_;
};

TEST_F(ControllerTest, OneIsElectedAndTellsEveryBrokerAll) {
  auto& first = start(1);
  auto& second = start(2);
  EXPECT_TRUE(first.controller->active());
  EXPECT_FALSE(second.controller->active());
  EXPECT_EQ(*service_.value("/controller_epoch"), "1");
  for (const auto broker : {1, 2}) {
    ASSERT_FALSE(brokers_.told[broker].empty());
    const auto& update = brokers_.told[broker].front();
    EXPECT_TRUE(update.full);
    EXPECT_EQ(update.controller, 1);
    EXPECT_EQ(update.cluster_id, "the-cluster");
    EXPECT_EQ(update.receiver_epoch, members_.at(broker)->lease->epoch());
  }
  EXPECT_EQ(brokers_.told[1].back().brokers.size(), 2u);
}

TEST_F(ControllerTest, ADeadLeadersPartitionsGoOnWithWhoIsInSync) {
  auto& first = start(1);
  for (const auto id : {2, 3}) start(id);
  add_topic(first, "orders", {2, 3, 1});
  world_.run_for(seconds(1));
  EXPECT_EQ(told(3, "orders")->leader, 2);

  die(member_of(2));
  const auto now = stored("orders");
  EXPECT_EQ(now.leader, 3);
  EXPECT_EQ(now.leader_epoch, Epoch{1});
  EXPECT_THAT(now.in_sync, ElementsAre(3, 1));
  EXPECT_EQ(told(3, "orders")->leader, 3);
  EXPECT_EQ(told(1, "orders")->partition_epoch, 1);
}

TEST_F(ControllerTest, NobodyLeadsWhereNobodyInSyncIsThereAndItGoesOnWhenOneIsBack) {
  auto& first = start(1);
  start(2);
  add_topic(first, "orders", {2});
  die(member_of(2));
  EXPECT_EQ(stored("orders").leader, -1);
  EXPECT_THAT(stored("orders").in_sync, ElementsAre(2));

  join(member_of(2));
  world_.run_for(seconds(2));
  EXPECT_EQ(stored("orders").leader, 2);
  EXPECT_EQ(stored("orders").leader_epoch, Epoch{2});
  EXPECT_TRUE(brokers_.told[2].back().full);
}

TEST_F(ControllerTest, SomebodyWhoIsNotInSyncLeadsOnlyWhereThatIsAllowed) {
  defaults_["unclean.leader.election.enable"] = "true";
  auto& first = start(1);
  start(2);
  add_topic(first, "orders", {2, 1});
  const auto state = stored("orders");
  const auto topic = *first.controller->state().find("orders");
  EXPECT_EQ(change(first, 2,
                   {.partition = {"orders", 0},
                    .topic_id = topic.id,
                    .leader_epoch = state.leader_epoch,
                    .in_sync = {2}})
                .error,
            ErrorCode::none);
  die(member_of(2));
  EXPECT_EQ(stored("orders").leader, 1);
  EXPECT_THAT(stored("orders").in_sync, ElementsAre(1));
}

TEST_F(ControllerTest, ALeaderChangesItsInSyncSetFromTheStateThatHolds) {
  auto& first = start(1);
  for (const auto id : {2, 3}) start(id);
  const auto topic = add_topic(first, "orders");
  InSyncChange wanted{.partition = {"orders", 0},
                      .topic_id = topic->id,
                      .leader_epoch = Epoch{0},
                      .partition_epoch = 0,
                      .in_sync = {1, 2}};
  const auto changed = change(first, 1, wanted);
  EXPECT_EQ(changed.error, ErrorCode::none);
  EXPECT_EQ(changed.state.partition_epoch, 1);
  EXPECT_THAT(stored("orders").in_sync, ElementsAre(1, 2));

  // The answer was lost: what is asked for holds already.
  EXPECT_EQ(change(first, 1, wanted).error, ErrorCode::none);
  wanted.in_sync = {1, 2, 3};
  EXPECT_EQ(change(first, 1, wanted).error, ErrorCode::invalid_update_version);
  wanted.partition_epoch = 1;
  EXPECT_EQ(change(first, 2, wanted).error, ErrorCode::invalid_request);
  wanted.in_sync_epochs = {-1, -1, 0};
  EXPECT_EQ(change(first, 1, wanted).error, ErrorCode::ineligible_replica);
  wanted.in_sync_epochs = {};
  wanted.in_sync = {1, 4};
  EXPECT_EQ(change(first, 1, wanted).error, ErrorCode::invalid_request);
  die(member_of(3));
  wanted.in_sync = {1, 2, 3};
  EXPECT_EQ(change(first, 1, wanted).error, ErrorCode::ineligible_replica);
  wanted.topic_id = {};
  EXPECT_EQ(change(first, 1, wanted).error, ErrorCode::unknown_topic_id);
}

TEST_F(ControllerTest, AnOlderLeaderIsFenced) {
  auto& first = start(1);
  for (const auto id : {2, 3}) start(id);
  const auto topic = add_topic(first, "orders", {2, 3, 1});
  die(member_of(2));
  join(member_of(2));
  world_.run_for(seconds(1));
  const InSyncChange late{
      .partition = {"orders", 0}, .topic_id = topic->id, .leader_epoch = Epoch{0}, .in_sync = {2}};
  EXPECT_EQ(change(first, 2, late).error, ErrorCode::fenced_leader_epoch);
}

TEST_F(ControllerTest, WhatWasNotAnsweredIsToldAgain) {
  auto& first = start(1);
  start(2);
  brokers_.lose_answers[2] = 2;
  const auto before = brokers_.told[2].size();
  add_topic(first, "orders", {2, 1});
  world_.run_for(seconds(2));
  ASSERT_EQ(brokers_.told[2].size(), before + 3);
  for (auto at = before; at < before + 3; ++at) {
    ASSERT_EQ(brokers_.told[2][at].topics.size(), 1u);
    EXPECT_EQ(brokers_.told[2][at].topics[0].name, "orders");
  }
}

TEST_F(ControllerTest, ABrokerThatHangsHoldsUpNobodyElse) {
  auto& first = start(1);
  for (const auto id : {2, 3}) start(id);
  brokers_.hang.insert(2);
  add_topic(first, "orders", {3, 2, 1});
  world_.run_for(seconds(1));
  EXPECT_EQ(told(3, "orders")->leader, 3);
  EXPECT_FALSE(told(2, "orders"));
  // It dies in the middle of it.
  die(member_of(2));
  EXPECT_THAT(stored("orders").in_sync, ElementsAre(3, 1));
  brokers_.hang.clear();
  world_.run_for(seconds(1));
}

// Between its write and its updates: whoever is elected next finds what was written.
TEST_F(ControllerTest, AControllerThatDiesIsFollowedByOneThatTellsWhatWasWritten) {
  auto& first = start(1);
  for (const auto id : {2, 3}) start(id);
  brokers_.hang = {1, 2, 3};
  add_topic(first, "orders");
  EXPECT_FALSE(told(2, "orders"));
  service_.expire(first.node);
  world_.run_for(milliseconds(1500));
  brokers_.hang.clear();
  world_.run_for(seconds(3));
  auto& second = member_of(2);
  auto& third = member_of(3);
  EXPECT_FALSE(first.controller->active());
  EXPECT_NE(second.controller->active(), third.controller->active());
  EXPECT_EQ(*service_.value("/controller_epoch"), "2");
  EXPECT_EQ(stored("orders").leader, 2);
  EXPECT_EQ(told(3, "orders")->leader, 2);
  EXPECT_EQ(brokers_.told[3].back().controller_epoch, 2);
}

TEST_F(ControllerTest, NothingIsWrittenByOneThatIsNotTheControllerAnyMore) {
  auto& first = start(1);
  start(2);
  // Somebody else takes the office while this one does not hear of it.
  auto& second = member_of(2);
  const auto taken = run(second, [&] {
    std::vector<Write> writes;
    writes.push_back({.key = std::string(znodes::controller_epoch), .value = "9"});
    return second.coordination->commit(std::move(writes));
  });
  ASSERT_TRUE(taken);
  TopicState topic;
  topic.name = "late";
  topic.partitions.push_back({.leader = 1, .replicas = {1}, .in_sync = {1}});
  const auto added = run(first, [&]() -> Task<> {
    MR_CO_TRY(const auto turn, co_await first.controller->turn());
    MR_CO_CHECK(co_await first.controller->add_topic(topic));
    co_return {};
  });
  ASSERT_FALSE(added);
  EXPECT_FALSE(service_.value("/brokers/topics/late"));
}

TEST_F(ControllerTest, ADeletedTopicIsGoneWhenTheLastReplicaSaysSo) {
  auto& first = start(1);
  start(2);
  add_topic(first, "orders", {1, 2});
  die(member_of(2));
  const auto erased = run(first, [&]() -> Task<> {
    auto& controller = *first.controller;
    UpdateSender::Moment moment = 0;
    {
      MR_CO_TRY(const auto turn, co_await controller.turn());
      MR_CO_TRY(moment, co_await controller.erase_topic("orders"));
    }
    MR_CO_CHECK(co_await controller.told(moment));
    co_return co_await controller.erased("orders");
  });
  ASSERT_TRUE(erased) << to_string(erased.error());
  EXPECT_EQ(brokers_.told[1].back().deleted.at(0).name, "orders");
  EXPECT_TRUE(service_.value("/admin/delete_topics/orders"));
  EXPECT_TRUE(first.controller->being_erased("orders"));

  join(member_of(2));
  world_.run_for(seconds(2));
  EXPECT_EQ(brokers_.told[2].back().deleted.at(0).name, "orders");
  EXPECT_FALSE(service_.value("/admin/delete_topics/orders"));
  EXPECT_FALSE(service_.value("/brokers/topics/orders"));
  EXPECT_FALSE(first.controller->being_erased("orders"));
}

TEST_F(ControllerTest, AReplicaThatCannotBeOpenedDoesNotLead) {
  auto& first = start(1);
  start(2);
  brokers_.failures[2] = {
      {.partition = {"orders", 0}, .error = ErrorCode::kafka_storage_error, .message = "torn"}};
  add_topic(first, "orders", {2, 1});
  world_.run_for(seconds(1));
  EXPECT_EQ(stored("orders").leader, 1);
  EXPECT_THAT(stored("orders").in_sync, ElementsAre(1));
}

TEST_F(ControllerTest, ABrokerThatLeavesInOrderHandsOverFirst) {
  auto& first = start(1);
  for (const auto id : {2, 3}) start(id);
  const auto topic = add_topic(first, "orders", {2, 3, 1});
  add_topic(first, "alone", {2});
  const auto epoch = member_of(2).lease->epoch();
  const auto moved = run(first, [&] { return first.controller->shut_down(2, epoch); });
  ASSERT_TRUE(moved) << to_string(moved.error());
  EXPECT_EQ(stored("orders").leader, 3);
  EXPECT_THAT(stored("orders").in_sync, ElementsAre(3, 1));
  EXPECT_EQ(stored("alone").leader, 2);
  EXPECT_THAT(moved->remaining, ElementsAre(TopicPartition{"alone", 0}));
  const InSyncChange again{.partition = {"orders", 0},
                           .topic_id = topic->id,
                           .leader_epoch = Epoch{1},
                           .partition_epoch = 1,
                           .in_sync = {3, 1, 2}};
  EXPECT_EQ(change(first, 3, again).error, ErrorCode::ineligible_replica);
  const auto stale = run(first, [&] { return first.controller->shut_down(2, epoch - 1); });
  ASSERT_TRUE(stale);
  EXPECT_EQ(stale->error, ErrorCode::stale_broker_epoch);
}

TEST_F(ControllerTest, LeadersMoveBackToThePreferredBroker) {
  defaults_["leader.imbalance.check.interval.seconds"] = "30";
  auto& first = start(1);
  for (const auto id : {2, 3}) start(id);
  const auto topic = add_topic(first, "orders", {2, 3, 1});
  die(member_of(2));
  ASSERT_EQ(stored("orders").leader, 3);
  join(member_of(2));
  world_.run_for(seconds(1));
  EXPECT_EQ(change(first, 3,
                   {.partition = {"orders", 0},
                    .topic_id = topic->id,
                    .leader_epoch = Epoch{1},
                    .partition_epoch = 1,
                    .in_sync = {3, 1, 2}})
                .error,
            ErrorCode::none);
  world_.run_for(seconds(31));
  EXPECT_EQ(stored("orders").leader, 2);
  EXPECT_EQ(stored("orders").leader_epoch, Epoch{2});
}

TEST_F(ControllerTest, ChangedSettingsReachEveryBroker) {
  auto& first = start(1);
  auto& second = start(2);
  add_topic(first, "orders", {1, 2});
  const auto written = run(second, [&] {
    std::vector<Write> writes;
    writes.push_back({.key = znodes::topic_config("orders"),
                      .value = znodes::encode_configs({{"retention.ms", "5"}})});
    writes.push_back(
        {.key = znodes::config_change(0),
         .value = znodes::encode_config_change({znodes::ConfigEntity::Kind::topic, "orders"})});
    writes.push_back({.key = std::string(znodes::config_changes) + "/scribble", .value = "?"});
    return second.coordination->commit(std::move(writes));
  });
  ASSERT_TRUE(written);
  world_.run_for(seconds(1));
  for (const auto broker : {1, 2}) {
    const auto& update = brokers_.told[broker].back();
    ASSERT_EQ(update.topics.size(), 1u);
    EXPECT_EQ(update.topics[0].configs.at("retention.ms"), "5");
  }
  EXPECT_FALSE(service_.value(znodes::config_change(0)));
  EXPECT_FALSE(service_.value(std::string(znodes::config_changes) + "/scribble"));
}

TEST_F(ControllerTest, ADamagedRegistrationIsPassedOver) {
  auto& first = start(1);
  const auto written = run(first, [&] {
    std::vector<Write> writes;
    writes.push_back({.key = "/brokers/ids/7", .value = "{"});
    writes.push_back({.key = "/brokers/ids/seven", .value = "x"});
    return first.coordination->commit(std::move(writes));
  });
  ASSERT_TRUE(written);
  start(2);
  EXPECT_EQ(brokers_.told[1].back().brokers.size(), 2u);
  EXPECT_TRUE(first.controller->active());
}

}  // namespace
}  // namespace millrace::kernel
