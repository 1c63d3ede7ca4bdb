// KIP-345 in the consumer protocol: an instance keeps its partitions while it restarts.
#include <gtest/gtest.h>

#include "consumer.h"

namespace millrace::consumer_groups::testing {
namespace {

class StaticMembersTest : public ConsumerBench {
 public:
  StaticMembersTest() {
    join(a);
    join(b);
    converge({&a, &b});
  }
  Consumer a{.id = "a1", .instance_id = "a"};
  Consumer b{.id = "b1", .instance_id = "b"};
};

TEST_F(StaticMembersTest, AnInstanceThatComesBackHasWhatItHadAndNobodyMoves) {
  const auto had = a.owned;
  const auto epoch = described().group_epoch;
  const auto left = leave(a, -2);
  EXPECT_EQ(left.member_epoch, -2);
  EXPECT_EQ(described().members.size(), 2U);

  Consumer again{.id = "a2", .instance_id = "a"};
  EXPECT_EQ(join(again).error, ErrorCode::none);
  EXPECT_EQ(again.assigned, had);
  EXPECT_EQ(described().group_epoch, epoch) << "no rebalance";
  EXPECT_EQ(described().members.size(), 2U);
  const auto before = events();
  settle(again);
  beat(b);
  EXPECT_EQ(events(), before);
}

TEST_F(StaticMembersTest, UnderItsOldMemberIdToo) {
  const auto had = a.owned;
  leave(a, -2);
  EXPECT_EQ(join(a).error, ErrorCode::none);
  EXPECT_EQ(a.assigned, had);
  EXPECT_EQ(a.epoch, described().assignment_epoch);
}

TEST_F(StaticMembersTest, AnInstanceInUseIsNotGivenAway) {
  Consumer other{.id = "other", .instance_id = "a"};
  EXPECT_EQ(join(other).error, ErrorCode::unreleased_instance_id);
  EXPECT_EQ(join(a).error, ErrorCode::none) << "the member itself may";
}

TEST_F(StaticMembersTest, TheMemberBeforeIsFenced) {
  leave(a, -2);
  Consumer again{.id = "a2", .instance_id = "a"};
  join(again);
  EXPECT_EQ(beat(a).error, ErrorCode::fenced_instance_id);
  EXPECT_EQ(leave(a).error, ErrorCode::fenced_instance_id);
  Consumer unknown{.id = "x", .instance_id = "x", .epoch = 3};
  EXPECT_EQ(beat(unknown).error, ErrorCode::unknown_member_id);
  EXPECT_EQ(leave(unknown).error, ErrorCode::unknown_member_id);
}

TEST_F(StaticMembersTest, WhileItIsAwayItsMemberIsFenced) {
  leave(a, -2);
  EXPECT_EQ(beat(a).error, ErrorCode::fenced_member_epoch);
}

TEST_F(StaticMembersTest, OneThatDoesNotComeBackIsOutAfterItsSession) {
  leave(a, -2);
  for (int i = 0; i < 10; ++i) {
    driver.advance(5s);
    beat(b);
  }
  converge({&b});
  EXPECT_EQ(b.owned.size(), 4U);
}

TEST_F(StaticMembersTest, OneThatLeavesForGoodGivesUp) {
  leave(a, -1);
  converge({&b});
  EXPECT_EQ(b.owned.size(), 4U);
}

TEST_F(StaticMembersTest, ComesBackWithAnotherSubscription) {
  leave(a, -2);
  Consumer again{.id = "a2", .instance_id = "a", .names = {"bills"}};
  join(again);
  converge({&again, &b});
  EXPECT_EQ(again.owned.size(), 2U);
  EXPECT_EQ(b.owned.size(), 4U);
}

TEST_F(StaticMembersTest, AFullGroupLetsAnInstanceBackIn) {
  set("group.consumer.max.size", "2");
  leave(a, -2);
  Consumer again{.id = "a2", .instance_id = "a"};
  EXPECT_EQ(join(again).error, ErrorCode::none);
}

}  // namespace
}  // namespace millrace::consumer_groups::testing
