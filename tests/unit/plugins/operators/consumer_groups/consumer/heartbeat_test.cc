#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "consumer.h"

namespace millrace::consumer_groups::testing {
namespace {

using HeartbeatTest = ConsumerBench;

TEST_F(HeartbeatTest, TheFirstMemberGetsEverythingAtOnce) {
  Consumer a{.id = "a"};
  const auto answer = join(a);
  EXPECT_EQ(answer.error, ErrorCode::none);
  EXPECT_EQ(answer.member_id, "a");
  EXPECT_EQ(answer.member_epoch, 2);
  EXPECT_EQ(answer.heartbeat_interval, 5s);
  ASSERT_TRUE(answer.assignment);
  EXPECT_EQ(a.assigned.size(), 4U);
  EXPECT_EQ(described().state, "Stable");
}

TEST_F(HeartbeatTest, AMemberWithoutAnIdIsGivenOne) {
  Consumer a{.id = ""};
  EXPECT_EQ(join(a).error, ErrorCode::none);
  EXPECT_FALSE(a.id.empty());
  settle(a);
  EXPECT_EQ(beat(a).error, ErrorCode::none);
}

TEST_F(HeartbeatTest, AHeartbeatWithNothingNewWritesNothing) {
  Consumer a{.id = "a"};
  join(a);
  settle(a);
  beat(a);
  const auto before = events();
  for (int i = 0; i < 10; ++i) {
    driver.advance(5s);
    const auto answer = beat(a);
    EXPECT_EQ(answer.error, ErrorCode::none);
    EXPECT_FALSE(answer.assignment);
  }
  EXPECT_EQ(events(), before);
}

TEST_F(HeartbeatTest, APartitionChangesHandsOnlyWhenItWasGivenUp) {
  Consumer a{.id = "a"};
  Consumer b{.id = "b"};
  join(a);
  settle(a);
  beat(a);
  join(b);
  EXPECT_EQ(b.epoch, 3);
  EXPECT_TRUE(b.assigned.empty()) << "all are a's yet";
  EXPECT_EQ(described().state, "Reconciling");

  beat(a);
  EXPECT_EQ(a.epoch, 2) << "it stays in its epoch until it has given up";
  EXPECT_EQ(a.assigned.size(), 2U);
  beat(b);
  EXPECT_TRUE(b.assigned.empty()) << "a was told, and has not done it yet";

  settle(a);
  beat(a);
  EXPECT_EQ(a.epoch, 3);
  beat(b);
  EXPECT_EQ(b.assigned.size(), 2U);
  converge({&a, &b});
  EXPECT_EQ(described().state, "Stable");
}

TEST_F(HeartbeatTest, WhatALeavingMemberHadGoesToTheOthers) {
  Consumer a{.id = "a"};
  Consumer b{.id = "b"};
  join(a);
  join(b);
  converge({&a, &b});
  const auto left = leave(b);
  EXPECT_EQ(left.error, ErrorCode::none);
  EXPECT_EQ(left.member_id, "b");
  EXPECT_EQ(left.member_epoch, -1);
  EXPECT_EQ(described().state, "Assigning");
  converge({&a});
  EXPECT_EQ(a.owned.size(), 4U);
  leave(a);
  EXPECT_EQ(described().state, "Empty");
}

TEST_F(HeartbeatTest, ASilentMemberIsOutAfterItsSession) {
  Consumer a{.id = "a"};
  Consumer b{.id = "b"};
  join(a);
  join(b);
  converge({&a, &b});
  for (int i = 0; i < 8; ++i) {
    driver.advance(5s);
    beat(a);
  }
  EXPECT_EQ(described().members.size(), 2U);
  driver.advance(5s);
  EXPECT_EQ(described().members.size(), 1U) << "45 s have passed";
  EXPECT_EQ(beat(b).error, ErrorCode::unknown_member_id);
  converge({&a});
  EXPECT_EQ(a.owned.size(), 4U);
}

TEST_F(HeartbeatTest, AMemberThatDoesNotGiveUpInTimeIsOut) {
  Consumer a{.id = "a", .rebalance = 20s};
  Consumer b{.id = "b"};
  join(a);
  settle(a);
  beat(a);
  join(b);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(beat(a).error, ErrorCode::none);  // it lives, and does not let go
    beat(b);
    driver.advance(6s);
  }
  beat(a);
  driver.advance(6s);
  EXPECT_EQ(beat(a).error, ErrorCode::unknown_member_id);
  converge({&b});
  EXPECT_EQ(b.owned.size(), 4U);
}

TEST_F(HeartbeatTest, ANewLeaderGivesEveryMemberAWholeSession) {
  Consumer a{.id = "a"};
  join(a);
  driver.advance(40s);
  ASSERT_TRUE(driver.reload());
  driver.advance(40s);
  EXPECT_EQ(beat(a).error, ErrorCode::none);
  driver.advance(46s);
  EXPECT_EQ(beat(a).error, ErrorCode::unknown_member_id);
}

TEST_F(HeartbeatTest, AJoinWhoseRecordsAreLostLeavesNothing) {
  driver.fail_appends();
  MemberHeartbeat ask{.client = {"c", "/h"}, .request = {}};
  ask.request.group = "g";
  ask.request.member_id = "a";
  ask.request.rebalance_timeout = 1s;
  ask.request.subscribed_names = std::vector<std::string>{"orders"};
  ask.request.owned.emplace();
  const auto token = Bench::send("g", ask);
  EXPECT_EQ(driver.error(token), ErrorCode::coordinator_not_available);
  EXPECT_EQ(described().error, ErrorCode::group_id_not_found);
  driver.advance(60s);
  EXPECT_EQ(events(), 0U);
  Consumer a{.id = "a"};
  EXPECT_EQ(join(a).member_epoch, 2);
}

TEST_F(HeartbeatTest, AFencingWhoseRecordsAreLostIsDoneAgain) {
  Consumer a{.id = "a"};
  join(a);
  driver.fail_appends();
  driver.advance(45s);
  EXPECT_EQ(described().members.size(), 1U);
  driver.advance(2s);
  EXPECT_EQ(described().members.size(), 0U);
}

// ---- epochs ----

TEST_F(HeartbeatTest, EpochsThatAreNotTheMembersAreFenced) {
  Consumer a{.id = "a"};
  join(a);
  settle(a);
  beat(a);
  a.epoch = 3;
  EXPECT_EQ(beat(a).error, ErrorCode::fenced_member_epoch);
  a.epoch = 1;
  EXPECT_EQ(beat(a).error, ErrorCode::fenced_member_epoch);
  a.epoch = 2;
  EXPECT_EQ(beat(a).error, ErrorCode::none);
}

TEST_F(HeartbeatTest, TheEpochBeforeIsGoodWhileNothingElseIsOwned) {
  Consumer a{.id = "a"};
  Consumer b{.id = "b"};
  join(a);
  settle(a);
  beat(a);
  join(b);
  beat(a);
  settle(a);
  ConsumerHeartbeat request{.group = "g", .member_id = "a", .member_epoch = 2};
  request.owned = topics_of(a.owned);
  EXPECT_EQ(send(request).member_epoch, 3);
  // The answer got lost.
  const auto again = send(request);
  EXPECT_EQ(again.error, ErrorCode::none);
  EXPECT_EQ(again.member_epoch, 3);
  request.owned->front().partitions = {0, 1, 2, 3};
  EXPECT_EQ(send(request).error, ErrorCode::fenced_member_epoch);
  request.owned.reset();
  EXPECT_EQ(send(request).error, ErrorCode::fenced_member_epoch);
}

// KAFKA-19233.
TEST_F(HeartbeatTest, AMemberMayJoinAgainInAnyState) {
  Consumer a{.id = "a"};
  Consumer b{.id = "b"};
  join(a);
  settle(a);
  beat(a);
  EXPECT_EQ(join(a).error, ErrorCode::none) << "stable";
  EXPECT_EQ(a.assigned.size(), 4U);
  settle(a);
  beat(a);
  join(b);
  EXPECT_EQ(join(b).error, ErrorCode::none) << "waits for partitions";
  beat(a);
  EXPECT_EQ(join(a).error, ErrorCode::none) << "has to give up, and owns nothing any more";
  EXPECT_EQ(a.epoch, 3);
  converge({&a, &b});
  EXPECT_EQ(a.owned.size() + b.owned.size(), 4U);
}

// ---- what makes no sense ----

TEST_F(HeartbeatTest, RequestsThatMakeNoSenseAreRefused) {
  const ConsumerHeartbeat good{.group = "g",
                               .member_id = "a",
                               .member_epoch = 0,
                               .rebalance_timeout = 1s,
                               .subscribed_names = std::vector<std::string>{"orders"},
                               .owned = std::vector<TopicIdPartitions>{}};
  const auto error = [&](auto change) {
    auto request = good;
    change(request);
    const auto answer = send(request);
    EXPECT_FALSE(answer.message.empty());
    return answer.error;
  };
  using R = ConsumerHeartbeat;
  EXPECT_EQ(error([](R& r) { r.rebalance_timeout.reset(); }), ErrorCode::invalid_request);
  EXPECT_EQ(error([](R& r) { r.owned.reset(); }), ErrorCode::invalid_request);
  EXPECT_EQ(error([](R& r) { r.owned->push_back({}); }), ErrorCode::invalid_request);
  EXPECT_EQ(error([](R& r) { r.subscribed_names.reset(); }), ErrorCode::invalid_request);
  EXPECT_EQ(error([](R& r) { r.instance_id = " "; }), ErrorCode::invalid_request);
  EXPECT_EQ(error([](R& r) { r.rack = ""; }), ErrorCode::invalid_request);
  EXPECT_EQ(error([](R& r) { r.member_epoch = -3; }), ErrorCode::invalid_request);
  EXPECT_EQ(error([](R& r) { r.member_epoch = -2; }), ErrorCode::invalid_request);
  EXPECT_EQ(error([](R& r) {
              r.member_epoch = -1;
              r.member_id = "";
            }),
            ErrorCode::invalid_request);
  EXPECT_EQ(error([](R& r) { r.server_assignor = "sticky"; }), ErrorCode::unsupported_assignor);
  EXPECT_EQ(error([](R& r) { r.member_id = std::string(40'000, 'x'); }),
            ErrorCode::invalid_request);
  EXPECT_EQ(error([](R& r) { r.member_epoch = 5; }), ErrorCode::group_id_not_found);
  EXPECT_EQ(error([](R& r) { r.member_epoch = -1; }), ErrorCode::group_id_not_found);
  EXPECT_EQ(events(), 0U);
  EXPECT_EQ(send(good).error, ErrorCode::none);
  EXPECT_EQ(error([](R& r) {
              r.member_id = "other";
              r.member_epoch = 2;
            }),
            ErrorCode::unknown_member_id);
  EXPECT_EQ(error([](R& r) {
              r.member_id = "other";
              r.member_epoch = -1;
            }),
            ErrorCode::unknown_member_id);
}

TEST_F(HeartbeatTest, AGroupHasNoMoreMembersThanItMay) {
  set("group.consumer.max.size", "2");
  Consumer a{.id = "a"};
  Consumer b{.id = "b"};
  Consumer c{.id = "c"};
  join(a);
  join(b);
  EXPECT_EQ(join(c).error, ErrorCode::group_max_size_reached);
  EXPECT_EQ(join(a).error, ErrorCode::none) << "is a member already";
}

TEST_F(HeartbeatTest, AGroupMayHaveTimesOfItsOwnWithinTheBrokersBounds) {
  set("group.consumer.heartbeat.interval.ms", "5000");
  set("group.consumer.session.timeout.ms", "45000");
  set("group.consumer.min.session.timeout.ms", "45000");
  set("group.consumer.max.session.timeout.ms", "60000");
  set("groups/g/consumer.heartbeat.interval.ms", "7000");
  set("groups/g/consumer.session.timeout.ms", "90000");  // more than there may be by now
  Consumer mine{.id = "a"};
  Consumer other{.id = "a", .group = "h"};
  EXPECT_EQ(join(mine).heartbeat_interval, 7s);
  EXPECT_EQ(join(other).heartbeat_interval, 5s);
  driver.advance(50s);
  EXPECT_EQ(beat(other).error, ErrorCode::unknown_member_id);
  EXPECT_EQ(beat(mine).error, ErrorCode::none);
  driver.advance(61s);
  EXPECT_EQ(beat(mine).error, ErrorCode::unknown_member_id);
}

// ---- topics ----

TEST_F(HeartbeatTest, NewPartitionsAndDeletedTopicsAreNoticed) {
  Consumer a{.id = "a", .names = {"orders", "bills", "later"}};
  join(a);
  converge({&a});
  EXPECT_EQ(a.owned.size(), 6U);

  driver.cluster().put("orders", 5);
  driver.cluster_changed();
  converge({&a});
  EXPECT_EQ(a.owned.size(), 7U);

  driver.cluster().put("later", 1);
  driver.cluster_changed();
  converge({&a});
  EXPECT_EQ(a.owned.size(), 8U);

  driver.cluster().remove("bills");
  driver.cluster_changed();
  converge({&a});
  EXPECT_EQ(a.owned.size(), 6U);

  driver.cluster().put("of nobody here", 9);
  driver.cluster_changed();
  const auto before = events();
  converge({&a});
  EXPECT_EQ(events(), before);
}

TEST_F(HeartbeatTest, ATopicThatIsMadeAnewIsAnother) {
  Consumer a{.id = "a", .names = {"bills"}};
  join(a);
  converge({&a});
  driver.cluster().remove("bills");
  driver.cluster().put("bills", 2);
  driver.cluster_changed();
  converge({&a});
  EXPECT_THAT(a.owned, ::testing::ElementsAre(Place(topic("bills"), 0), Place(topic("bills"), 1)));
}

TEST_F(HeartbeatTest, AMemberThatChangesItsSubscriptionGivesUpAtOnce) {
  Consumer a{.id = "a", .names = {"orders", "bills"}};
  join(a);
  converge({&a});
  ConsumerHeartbeat request{.group = "g", .member_id = "a", .member_epoch = a.epoch};
  request.subscribed_names = std::vector<std::string>{"bills"};
  const auto answer = send(request);
  ASSERT_TRUE(answer.assignment);
  EXPECT_EQ(places(*answer.assignment).size(), 2U);
  EXPECT_EQ(answer.member_epoch, a.epoch) << "until it has given up";
  a.assigned = places(*answer.assignment);
  settle(a);
  converge({&a});
  EXPECT_EQ(described().state, "Stable");
}

// ---- assignors and targets ----

TEST_F(HeartbeatTest, TheAssignorThatMostMembersWantIsTaken) {
  Consumer a{.id = "a", .assignor = "range"};
  Consumer b{.id = "b"};
  join(a);
  EXPECT_EQ(described().assignor, "range");
  join(b);
  EXPECT_EQ(described().assignor, "range");
  leave(a);
  EXPECT_EQ(described().assignor, "uniform");
}

// KIP-1263.
TEST_F(HeartbeatTest, ThoseWhoJoinSoonAfterOneAnotherAreOneComputation) {
  set("group.consumer.assignment.interval.ms", "1000");
  Consumer a{.id = "a"};
  Consumer b{.id = "b"};
  Consumer c{.id = "c"};
  EXPECT_EQ(join(a).member_epoch, 2);
  EXPECT_EQ(join(b).member_epoch, 2) << "in the assignment that there is, with nothing";
  EXPECT_EQ(join(c).member_epoch, 2);
  EXPECT_EQ(described().state, "Assigning");
  driver.advance(1s);
  converge({&a, &b, &c});
  EXPECT_EQ(a.epoch, 4);
  EXPECT_EQ(described().state, "Stable");
  EXPECT_EQ(a.owned.size() + b.owned.size() + c.owned.size(), 4U);
  EXPECT_FALSE(c.owned.empty());
}

}  // namespace
}  // namespace millrace::consumer_groups::testing
