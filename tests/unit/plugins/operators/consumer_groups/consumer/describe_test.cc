#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "consumer.h"

namespace millrace::consumer_groups::testing {
namespace {

using DescribeTest = ConsumerBench;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST_F(DescribeTest, ShowsWhatMembersHaveAndAreToHave) {
  Consumer a{.id = "a", .rack = "left"};
  Consumer b{.id = "b", .instance_id = "bb"};
  join(a);
  settle(a);
  beat(a);
  join(b);
  beat(a);
  const auto group = described();
  EXPECT_EQ(group.state, "Reconciling");
  EXPECT_EQ(group.group_epoch, 3);
  EXPECT_EQ(group.assignment_epoch, 3);
  EXPECT_EQ(group.assignor, "uniform");
  ASSERT_EQ(group.members.size(), 2U);
  const auto& first = group.members[0];
  EXPECT_EQ(first.member_id, "a");
  EXPECT_EQ(first.rack, "left");
  EXPECT_EQ(first.member_epoch, 2);
  EXPECT_EQ(first.client_id, "client");
  EXPECT_EQ(first.client_host, "/10.0.0.1");
  EXPECT_EQ(first.type, 1);
  EXPECT_THAT(first.subscribed_names, ElementsAre("orders"));
  EXPECT_FALSE(first.subscribed_regex);
  ASSERT_EQ(first.assignment.topics.size(), 1U);
  EXPECT_EQ(first.assignment.topics[0].name, "orders");
  EXPECT_EQ(first.assignment.topics[0].id, topic("orders"));
  const auto& second = group.members[1];
  EXPECT_EQ(second.instance_id, "bb");
  EXPECT_THAT(second.assignment.topics, IsEmpty());
  ASSERT_EQ(second.target.topics.size(), 1U);
  EXPECT_EQ(second.target.topics[0].partitions.size(), 2U);
}

TEST_F(DescribeTest, IsListedWithItsType) {
  Consumer a{.id = "a"};
  join(a);
  const auto groups = list({.states = {}, .types = {"consumer"}});
  ASSERT_EQ(groups.size(), 1U);
  EXPECT_EQ(groups[0].protocol_type, "consumer");
  EXPECT_EQ(groups[0].type, "consumer");
  EXPECT_EQ(groups[0].state, "Stable");
  EXPECT_THAT(list({.states = {}, .types = {"classic"}}), IsEmpty());
}

TEST_F(DescribeTest, AnEmptyGroupCanBeDeletedAndLeavesNothing) {
  Consumer a{.id = "a", .regex = "o.*"};
  join(a);
  EXPECT_EQ(ask<GroupDeleted>("g", Remove{}).error, ErrorCode::non_empty_group);
  leave(a);
  EXPECT_EQ(ask<GroupDeleted>("g", Remove{}).error, ErrorCode::none);
  EXPECT_EQ(described().error, ErrorCode::group_id_not_found);
  EXPECT_THAT(*driver.state(), IsEmpty());
  driver.compact(false);
  EXPECT_THAT(driver.log(), IsEmpty()) << "every key has its tombstone";
}

TEST_F(DescribeTest, MetricsCountAGroupByItsState) {
  const auto groups = [this](const std::string& state) {
    return metrics.gauge("millrace_groups", "", {{"protocol", "consumer"}, {"state", state}})
        .value();
  };
  const auto members = [this] {
    return metrics.gauge("millrace_group_members", "", {{"protocol", "consumer"}}).value();
  };
  Consumer a{.id = "a"};
  Consumer b{.id = "b"};
  join(a);
  settle(a);
  EXPECT_EQ(groups("Stable"), 1);
  EXPECT_EQ(members(), 1);
  join(b);
  EXPECT_EQ(groups("Reconciling"), 1);
  EXPECT_EQ(groups("Stable"), 0);
  converge({&a, &b});
  EXPECT_EQ(groups("Stable"), 1);
  EXPECT_EQ(members(), 2);
  EXPECT_GE(
      metrics.counter("millrace_group_rebalances_total", "", {{"protocol", "consumer"}}).value(),
      1U);
  leave(a);
  leave(b);
  EXPECT_EQ(groups("Empty"), 1);
  EXPECT_EQ(members(), 0);
  EXPECT_EQ(ask<GroupDeleted>("g", Remove{}).error, ErrorCode::none);
  EXPECT_EQ(groups("Empty"), 0);
}

}  // namespace
}  // namespace millrace::consumer_groups::testing
