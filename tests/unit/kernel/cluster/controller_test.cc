#include "kernel/cluster/controller.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernel/cluster/topics.h"
#include "kernel/cluster/znodes.h"
#include "tests/unit/kernel/cluster/controller_fixture.h"

namespace millrace::kernel {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;

using ControllerTest = ControllerFixture;

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

// It may have lost what it had, and whoever is elected next finds it there.
TEST_F(ControllerTest, ALeaderThatWasGoneWhileThereWasNoControllerLeadsNoMore) {
  auto& first = start(1);
  for (const auto id : {2, 3}) join(member_of(id));
  world_.run_for(seconds(1));
  add_topic(first, "orders", {3, 2});
  die(first);
  die(member_of(3));
  join(member_of(3));
  start(4);
  EXPECT_EQ(stored("orders").leader, 2);
  EXPECT_THAT(stored("orders").in_sync, ElementsAre(2));
}

TEST_F(ControllerTest, ALeaderThatStayedWhileThereWasNoControllerLeadsOn) {
  auto& first = start(1);
  for (const auto id : {2, 3}) join(member_of(id));
  world_.run_for(seconds(1));
  add_topic(first, "orders", {3, 2});
  die(first);
  start(4);
  EXPECT_EQ(stored("orders").leader, 3);
  EXPECT_EQ(stored("orders").leader_epoch, Epoch{0});
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

// A broker that is back joins the in-sync sets of thousands of partitions, which others lead.
TEST_F(ControllerTest, WhoAsksWhileOthersAreWrittenForIsWrittenForTogether) {
  auto& first = start(1);
  for (const auto id : {2, 3}) start(id);
  std::vector<Pending<std::vector<InSyncChanged>>> asked;
  const auto names = {"a", "bb", "ccc", "dddd", "eeeee"};
  for (const auto* name : names) add_topic(first, name, {2, 3, 1});
  world_.run_for(seconds(1));
  const auto before = first.coordination->commits;
  for (const auto* name : names) {
    const InSyncChange wanted{.partition = {name, 0},
                              .topic_id = first.controller->state().find(name)->id,
                              .leader_epoch = Epoch{0},
                              .in_sync = {2, 3}};
    first.node.control().post([&, wanted] {
      const auto epoch = member_of(2).lease->epoch();
      auto asking = first.controller->change_in_sync(2, epoch, {wanted});
      asked.push_back(millrace::start(first.node.control(), std::move(asking)));
    });
  }
  world_.run_for(seconds(1));
  EXPECT_EQ(first.coordination->commits - before, 2) << "the first one's, and then all others'";
  ASSERT_EQ(asked.size(), names.size());
  for (auto& one : asked) {
    ASSERT_TRUE(one.is_ready());
    const auto answers = one.await_resume();
    ASSERT_TRUE(answers) << to_string(answers.error());
    ASSERT_EQ(answers->size(), 1u);
    EXPECT_EQ(answers->front().error, ErrorCode::none);
    EXPECT_EQ(answers->front().state.partition_epoch, 1);
  }
  for (const auto* name : names) EXPECT_THAT(stored(name).in_sync, ElementsAre(2, 3));
}

TEST_F(ControllerTest, ALeaderMayHandAPartitionOverToWhoIsInSync) {
  auto& first = start(1);
  for (const auto id : {2, 3}) start(id);
  const auto topic = add_topic(first, "orders", {2, 3, 1});
  InSyncChange wanted{.partition = {"orders", 0},
                      .topic_id = topic->id,
                      .leader_epoch = Epoch{0},
                      .partition_epoch = 0,
                      .in_sync = {1, 3}};
  const auto changed = change(first, 2, wanted);
  EXPECT_EQ(changed.error, ErrorCode::none);
  EXPECT_EQ(stored("orders").leader, 3);
  EXPECT_EQ(stored("orders").leader_epoch, Epoch{1});
  EXPECT_THAT(stored("orders").in_sync, ElementsAre(1, 3));
  world_.run_for(seconds(1));
  EXPECT_EQ(told(2, "orders")->leader, 3);
  EXPECT_EQ(change(first, 2, wanted).error, ErrorCode::fenced_leader_epoch);

  wanted.leader_epoch = Epoch{1};
  wanted.partition_epoch = 1;
  wanted.in_sync = {};
  EXPECT_EQ(change(first, 3, wanted).error, ErrorCode::invalid_request);
  wanted.in_sync = {2};
  die(member_of(2));
  EXPECT_EQ(change(first, 3, wanted).error, ErrorCode::ineligible_replica) << "nobody to lead it";
  EXPECT_EQ(stored("orders").leader, 3);
}

TEST_F(ControllerTest, AFollowerMayTakeItselfAndNobodyElseOutOfTheInSyncSet) {
  auto& first = start(1);
  for (const auto id : {2, 3}) start(id);
  const auto topic = add_topic(first, "orders", {2, 3, 1});
  const auto asks = [&](std::int32_t broker, Ids in_sync, std::int32_t partition_epoch = 0) {
    return change(first, broker,
                  {.partition = {"orders", 0},
                   .topic_id = topic->id,
                   .leader_epoch = Epoch{0},
                   .partition_epoch = partition_epoch,
                   .in_sync = std::move(in_sync)})
        .error;
  };
  EXPECT_EQ(asks(3, {2, 3}), ErrorCode::invalid_request);
  EXPECT_EQ(asks(3, {3, 1}), ErrorCode::invalid_request);
  EXPECT_EQ(asks(3, {2}), ErrorCode::invalid_request);
  EXPECT_EQ(asks(3, {2, 1}), ErrorCode::none);
  EXPECT_THAT(stored("orders").in_sync, ElementsAre(2, 1));
  EXPECT_EQ(stored("orders").leader, 2);
  world_.run_for(seconds(1));
  EXPECT_THAT(told(2, "orders")->in_sync, ElementsAre(2, 1));
  EXPECT_EQ(asks(3, {2, 1}), ErrorCode::none) << "the answer was lost";
  EXPECT_EQ(asks(3, {2, 3, 1}, 1), ErrorCode::invalid_request) << "only the leader takes in";
  EXPECT_EQ(asks(1, {2}), ErrorCode::invalid_update_version);
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
  const auto added = run(first, [&] { return add_in_turn(*first.controller, topic); });
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
    MR_CO_TRY(const auto moment, co_await erase_in_turn(controller, "orders"));
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

TEST_F(ControllerTest, AReplicaThatCannotBeOpenedIsTriedAgainLessAndLessOften) {
  defaults_["auto.leader.rebalance.enable"] = "false";
  auto& first = start(1);
  start(2);
  const auto add = [&](const std::string& name, Ids replicas) {
    brokers_.failures[2].push_back({.partition = {name, 0},
                                    .error = ErrorCode::kafka_storage_error,
                                    .message = "the disk is full"});
    const auto topic = add_topic(first, name, std::move(replicas));
    world_.run_for(milliseconds(200));
    return topic;
  };
  const auto orders = add("orders", {2, 1});
  add("alone", {2});
  EXPECT_EQ(stored("orders").leader, 1);
  EXPECT_EQ(stored("alone").leader, -1);
  const auto asked = brokers_.asked[2];
  const auto others = brokers_.asked[1];
  world_.run_for(std::chrono::minutes(5));
  EXPECT_GE(brokers_.asked[2] - asked, 12);
  EXPECT_LE(brokers_.asked[2] - asked, 16) << "every 30 s in the end";
  EXPECT_EQ(brokers_.asked[1], others) << "who has nothing to do with it is not asked";
  const InSyncChange joins{.partition = {"orders", 0},
                           .topic_id = orders->id,
                           .leader_epoch = told(1, "orders")->leader_epoch,
                           .partition_epoch = told(1, "orders")->partition_epoch,
                           .in_sync = {1, 2}};
  EXPECT_EQ(change(first, 1, joins).error, ErrorCode::ineligible_replica);

  brokers_.failures[2].clear();
  world_.run_for(seconds(31));
  EXPECT_EQ(stored("alone").leader, 2);
  EXPECT_EQ(told(2, "alone")->leader, 2);
  EXPECT_EQ(change(first, 1, joins).error, ErrorCode::none);
  EXPECT_TRUE(log_.contains("a replica that was offline is there"));
  const auto done = brokers_.asked[2];
  world_.run_for(std::chrono::minutes(5));
  EXPECT_EQ(brokers_.asked[2], done);
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

// Of twenty partitions that broker 2 should lead, two are led elsewhere: ten of a hundred.
TEST_F(ControllerTest, LeadersStayWhereNotEnoughOfThemAreAway) {
  defaults_["leader.imbalance.check.interval.seconds"] = "30";
  defaults_["cluster.balance.enable"] = "false";
  auto& first = start(1);
  start(2);
  for (int n = 0; n < 18; ++n)
    add_topic(first, std::string(static_cast<std::size_t>(n) + 10, 'x'), {2});
  const auto shared = add_topic(first, "orders", {2, 1});
  const auto other = add_topic(first, "other", {2, 1});
  die(member_of(2));
  join(member_of(2));
  world_.run_for(seconds(1));
  for (const auto& topic : {shared, other}) {
    const auto now = *told(1, topic->name);
    ASSERT_EQ(now.leader, 1);
    EXPECT_EQ(change(first, 1,
                     {.partition = {topic->name, 0},
                      .topic_id = topic->id,
                      .leader_epoch = now.leader_epoch,
                      .partition_epoch = now.partition_epoch,
                      .in_sync = {1, 2}})
                  .error,
              ErrorCode::none);
  }
  world_.run_for(seconds(61));
  EXPECT_EQ(stored("orders").leader, 1);

  ASSERT_TRUE(run(first, [&] {
    return first.controller->elect_leaders({.type = ElectionType::preferred, .partitions = {}});
  }));
  EXPECT_EQ(stored("orders").leader, 2) << "whoever asks for it need not wait";
}

TEST_F(ControllerTest, ARequestThatNamesAPartitionTwiceEndsNoTerm) {
  auto& first = start(1);
  for (const auto id : {2, 3}) start(id);
  TopicState topic;
  topic.name = "orders";
  topic.id.bytes.fill(6);
  topic.partitions.push_back({.leader = 2, .replicas = {1, 2}, .in_sync = {1, 2}});
  add(first, std::move(topic));
  ElectionRequest election{.type = ElectionType::preferred, .partitions = {}};
  election.partitions = std::vector<TopicPartitions>{{"orders", {0}}, {"orders", {0}}};
  const auto elected = run(first, [&] { return first.controller->elect_leaders(election); });
  ASSERT_TRUE(elected) << to_string(elected.error());
  EXPECT_EQ(elected->topics[0].partitions[0].error, ErrorCode::none);
  EXPECT_EQ(elected->topics[1].partitions[0].error, ErrorCode::invalid_request);
  EXPECT_EQ(stored("orders").leader, 1);

  ReassignmentRequest move;
  move.topics.push_back({.topic = "orders", .partitions = {}});
  for (const auto to : {3, 2}) {
    move.topics[0].partitions.push_back({.partition = 0, .replicas = Ids{1, to}});
  }
  const auto moved = run(first, [&] { return first.controller->reassign(move); });
  ASSERT_TRUE(moved) << to_string(moved.error());
  EXPECT_EQ(moved->topics[0].partitions[0].error, ErrorCode::none);
  EXPECT_EQ(moved->topics[0].partitions[1].error, ErrorCode::invalid_request);
  EXPECT_THAT(first.controller->state().find("orders")->partitions[0].adding, ElementsAre(3));
  EXPECT_EQ(*service_.value("/controller_epoch"), "1") << "it was the controller all the time";
}

TEST_F(ControllerTest, LeadersStayWhereTheyAreIfThatIsWanted) {
  defaults_["leader.imbalance.check.interval.seconds"] = "30";
  defaults_["auto.leader.rebalance.enable"] = "false";
  auto& first = start(1);
  start(2);
  const auto topic = add_topic(first, "orders", {2, 1});
  die(member_of(2));
  join(member_of(2));
  world_.run_for(seconds(1));
  EXPECT_EQ(change(first, 1,
                   {.partition = {"orders", 0},
                    .topic_id = topic->id,
                    .leader_epoch = Epoch{1},
                    .partition_epoch = 1,
                    .in_sync = {1, 2}})
                .error,
            ErrorCode::none);
  world_.run_for(seconds(61));
  EXPECT_EQ(stored("orders").leader, 1);
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
