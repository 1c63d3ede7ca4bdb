#include "kernel/partition/replica_set.h"

#include <chrono>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace millrace::kernel {
namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr LagLimits by_time{.time = seconds(30)};

MonoTime at(int second) { return MonoTime(seconds(second)); }

Leadership leadership(std::vector<std::int32_t> in_sync, std::int32_t partition_epoch = 1) {
  return {.leader_epoch = {5},
          .partition_epoch = partition_epoch,
          .replicas = {1, 2, 3},
          .in_sync = std::move(in_sync)};
}

TEST(ReplicaSetTest, WhatEveryReplicaInSyncHasIsReplicated) {
  ReplicaSet set(1, leadership({1, 2, 3}), {10}, at(0));
  EXPECT_LT(set.replicated({20}), Offset{0}) << "nobody has fetched yet";
  set.fetched(2, -1, {18}, {20}, at(1));
  EXPECT_LT(set.replicated({20}), Offset{0});
  set.fetched(3, -1, {15}, {20}, at(1));
  EXPECT_EQ(set.replicated({20}), Offset{15});
  set.fetched(3, -1, {20}, {20}, at(2));
  EXPECT_EQ(set.replicated({20}), Offset{18});
  EXPECT_EQ(set.replicated({17}), Offset{17}) << "what is not written here does not count";
}

TEST(ReplicaSetTest, WhoIsOutOfSyncIsNotWaitedFor) {
  ReplicaSet set(1, leadership({1, 2}), {0}, at(0));
  set.fetched(2, -1, {7}, {9}, at(1));
  EXPECT_EQ(set.replicated({9}), Offset{7});
  EXPECT_TRUE(set.has(3));
  EXPECT_FALSE(set.has(4));
  set.fetched(4, -1, {1}, {9}, at(1));  // none of the partition's
  EXPECT_EQ(set.replicated({9}), Offset{7});
}

TEST(ReplicaSetTest, AFetchOfAnEarlierLifeSaysNothing) {
  ReplicaSet set(1, leadership({1, 2}), {0}, at(0));
  set.fetched(2, 12, {20}, {20}, at(1));
  set.fetched(2, 15, {4}, {20}, at(2));  // it has come back with less
  EXPECT_EQ(set.replicated({20}), Offset{4});
  set.fetched(2, 12, {20}, {20}, at(3));
  EXPECT_EQ(set.replicated({20}), Offset{4});
  set.fetched(2, 15, {20}, {20}, at(4));
  EXPECT_EQ(set.replicated({20}), Offset{20});
}

TEST(ReplicaSetTest, WhoLagsForTooLongIsLeftOut) {
  ReplicaSet set(1, leadership({1, 2, 3}), {0}, at(0));
  set.fetched(2, 12, {10}, {10}, at(1));
  set.fetched(3, 13, {10}, {10}, at(1));
  set.fetched(2, 12, {20}, {20}, at(20));
  EXPECT_FALSE(set.review(by_time, {20}, {10}, at(31)).has_value());
  const auto wanted = set.review(by_time, {20}, {10}, at(32));
  ASSERT_TRUE(wanted);
  EXPECT_THAT(wanted->in_sync, ElementsAre(1, 2));
  EXPECT_THAT(wanted->broker_epochs, ElementsAre(-1, 12));
  EXPECT_EQ(wanted->partition_epoch, 1);

  set.propose(*wanted);
  EXPECT_EQ(set.replicated({20}), Offset{10}) << "until the answer comes both sets may hold";
  EXPECT_FALSE(set.review(by_time, {20}, {10}, at(40)).has_value()) << "one is under way";
  set.update(leadership({1, 2}, 2), at(41));
  EXPECT_EQ(set.replicated({20}), Offset{20});
}

TEST(ReplicaSetTest, WhoKeepsUpWithATailThatGrowsIsInSync) {
  ReplicaSet set(1, leadership({1, 2, 3}), {0}, at(0));
  for (int second = 1; second < 100; ++second) {
    // Each fetch has what there was at the one before, and never all there is.
    set.fetched(2, -1, {10 * second}, {10 * second + 10}, at(second));
    set.fetched(3, -1, {10 * second + 10}, {10 * second + 10}, at(second));
  }
  EXPECT_FALSE(set.review(by_time, {1000}, {990}, at(99)).has_value());
}

TEST(ReplicaSetTest, OfALogThatRestsNobodyLags) {
  ReplicaSet set(1, leadership({1, 2, 3}), {0}, at(0));
  set.fetched(2, -1, {10}, {10}, at(1));
  set.fetched(3, -1, {10}, {10}, at(1));
  EXPECT_FALSE(set.review(by_time, {10}, {10}, at(1000)).has_value());
  // It grows: all have their time from when it was last looked at.
  EXPECT_FALSE(set.review(by_time, {11}, {10}, at(1020)).has_value());
  EXPECT_TRUE(set.review(by_time, {11}, {10}, at(1031)).has_value());
}

TEST(ReplicaSetTest, WhoIsTooManyMessagesBehindIsLeftOutWhereThatIsLimited) {
  ReplicaSet set(1, leadership({1, 2, 3}), {0}, at(0));
  set.fetched(2, -1, {100}, {100}, at(1));
  set.fetched(3, -1, {100}, {100}, at(1));
  const LagLimits by_messages{.time = seconds(30), .messages = 50};
  EXPECT_FALSE(set.review(by_messages, {150}, {100}, at(2)).has_value());
  set.fetched(2, -1, {151}, {151}, at(2));
  const auto wanted = set.review(by_messages, {151}, {100}, at(2));
  ASSERT_TRUE(wanted);
  EXPECT_THAT(wanted->in_sync, ElementsAre(1, 2));
}

TEST(ReplicaSetTest, WhoHasReachedTheHighWatermarkAndTheEpochsStartMayJoin) {
  ReplicaSet set(1, leadership({1}), {10}, at(0));
  set.fetched(2, 22, {9}, {12}, at(1));
  EXPECT_FALSE(set.may_join(2, {8})) << "it lacks what the leader began with";
  set.fetched(2, 22, {10}, {12}, at(1));
  EXPECT_FALSE(set.may_join(2, {12}));
  set.fetched(2, 22, {12}, {12}, at(2));
  EXPECT_TRUE(set.may_join(2, {12}));
  const auto wanted = set.review(by_time, {12}, {12}, at(2));
  ASSERT_TRUE(wanted);
  EXPECT_THAT(wanted->in_sync, ElementsAre(1, 2));
  set.propose(*wanted);
  EXPECT_FALSE(set.may_join(2, {12}));
  EXPECT_EQ(set.replicated({15}), Offset{12}) << "who may be in sync already is waited for";
  set.withdraw();
  EXPECT_EQ(set.replicated({15}), Offset{15});
}

TEST(ReplicaSetTest, WhomTheControllerTookOutJoinsOnlyOnceItFetches) {
  ReplicaSet set(1, leadership({1, 2, 3}), {0}, at(0));
  set.fetched(2, -1, {5}, {5}, at(1));
  set.fetched(3, -1, {5}, {5}, at(1));
  set.update(leadership({1, 3}, 2), at(2));  // broker 2 is dead
  EXPECT_FALSE(set.review(by_time, {5}, {5}, at(3)).has_value());
  set.fetched(2, -1, {5}, {5}, at(4));
  EXPECT_TRUE(set.review(by_time, {5}, {5}, at(5)).has_value());
}

TEST(ReplicaSetTest, AnAnswerThatTellsTheInSyncSetAloneLeavesTheReplicas) {
  ReplicaSet set(1, leadership({1, 2, 3}), {0}, at(0));
  set.fetched(2, -1, {10}, {10}, at(1));
  auto answered = leadership({1, 2}, 2);
  answered.replicas.clear();
  set.update(answered, at(2));
  EXPECT_TRUE(set.has(2));
  EXPECT_TRUE(set.has(3));
  EXPECT_THAT(set.in_sync(), ElementsAre(1, 2));
  EXPECT_EQ(set.replicated({15}), Offset{10}) << "a leader alone would answer for all of it";
}

TEST(ReplicaSetTest, WhoIsNoReplicaAnyMoreIsForgotten) {
  ReplicaSet set(1, leadership({1, 2, 3}), {0}, at(0));
  auto fewer = leadership({1, 2}, 2);
  fewer.replicas = {1, 2};
  set.update(fewer, at(1));
  EXPECT_FALSE(set.has(3));
  EXPECT_THAT(set.in_sync(), ElementsAre(1, 2));
}

}  // namespace
}  // namespace millrace::kernel
