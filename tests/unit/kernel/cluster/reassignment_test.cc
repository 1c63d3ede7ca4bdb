#include "kernel/cluster/reassignment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace millrace::kernel {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

bool everybody(std::int32_t) { return true; }

PartitionState on(std::vector<std::int32_t> replicas) {
  return {.leader = replicas.front(),
          .leader_epoch = Epoch{7},
          .replicas = replicas,
          .in_sync = std::move(replicas)};
}

TEST(ReassignmentTest, WhoComesIsAddedAndWhoGoesStaysUntilTheEnd) {
  const auto moving = begin_reassignment(on({1, 2, 3}), {4, 1, 2});
  EXPECT_THAT(moving.replicas, ElementsAre(4, 1, 2, 3));
  EXPECT_THAT(moving.adding, ElementsAre(4));
  EXPECT_THAT(moving.removing, ElementsAre(3));
  EXPECT_THAT(moving.in_sync, ElementsAre(1, 2, 3));
  EXPECT_EQ(moving.leader, 1);
  EXPECT_EQ(moving.leader_epoch, Epoch{8});
  EXPECT_FALSE(finish_reassignment(moving, everybody)) << "4 is not in sync";
}

TEST(ReassignmentTest, EndsOnceAllOfThoseToComeAreInSync) {
  auto moving = begin_reassignment(on({1, 2, 3}), {4, 1, 2});
  moving.in_sync.push_back(4);
  const auto moved = finish_reassignment(moving, everybody);
  ASSERT_TRUE(moved);
  EXPECT_THAT(moved->replicas, ElementsAre(4, 1, 2));
  EXPECT_THAT(moved->in_sync, ElementsAre(1, 2, 4));
  EXPECT_FALSE(is_reassigning(*moved));
  EXPECT_EQ(moved->leader, 1) << "who leads and stays goes on";
  EXPECT_EQ(moved->leader_epoch, Epoch{9});
}

TEST(ReassignmentTest, ALeaderThatGoesIsFollowedByWhoIsThere) {
  auto moving = begin_reassignment(on({1, 2}), {3, 4});
  moving.in_sync = {1, 2, 3, 4};
  const auto moved = finish_reassignment(moving, [](std::int32_t broker) { return broker != 3; });
  ASSERT_TRUE(moved);
  EXPECT_EQ(moved->leader, 4);
  EXPECT_THAT(moved->replicas, ElementsAre(3, 4));
  EXPECT_FALSE(finish_reassignment(moving, [](std::int32_t broker) { return broker < 3; }));
}

TEST(ReassignmentTest, AnotherMoveReplacesTheOneThatRuns) {
  auto first = begin_reassignment(on({1, 2}), {3, 4});
  first.in_sync.push_back(3);
  const auto second = begin_reassignment(first, {4, 1});
  EXPECT_THAT(second.replicas, ElementsAre(4, 1, 2));
  EXPECT_THAT(second.adding, ElementsAre(4));
  EXPECT_THAT(second.removing, ElementsAre(2));
  EXPECT_THAT(second.in_sync, ElementsAre(1, 2)) << "3 goes at once";
}

TEST(ReassignmentTest, ACancelledOneLeavesWhatWasThereBefore) {
  auto moving = begin_reassignment(on({1, 2}), {3, 4});
  moving.in_sync.push_back(3);
  EXPECT_THAT(replicas_before(moving), ElementsAre(1, 2));
  const auto before = cancel_reassignment(moving, everybody);
  ASSERT_TRUE(before);
  EXPECT_THAT(before->replicas, ElementsAre(1, 2));
  EXPECT_THAT(before->in_sync, ElementsAre(1, 2));
  EXPECT_THAT(before->adding, IsEmpty());
}

TEST(ReassignmentTest, WhatIsSoAlreadyChangesNothing) {
  const auto state = on({1, 2, 3});
  EXPECT_EQ(begin_reassignment(state, {1, 2, 3}), state);
  EXPECT_FALSE(finish_reassignment(state, everybody));
}

}  // namespace
}  // namespace millrace::kernel
