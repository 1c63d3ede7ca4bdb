// A controller whose coordination refuses some writes for a while.
#include <chrono>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernel/cluster/reassignment.h"
#include "tests/unit/kernel/cluster/controller_fixture.h"

namespace millrace::kernel {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::ElementsAre;

class ControllerWritesTest : public ControllerFixture {
 protected:
  int count_lines(std::string_view part) {
    int count = 0;
    for (const auto& line : log_.lines()) count += line.contains(part) ? 1 : 0;
    return count;
  }
};

TEST_F(ControllerWritesTest, OneTopicsTroubleHoldsUpNoOtherAndPasses) {
  auto& first = start(1);
  for (const auto id : {2, 3}) start(id);
  add_topic(first, "orders", {2, 3, 1});
  add_topic(first, "others", {2, 3, 1});
  first.coordination->failing = znodes::topic("orders");
  die(member_of(2));
  world_.run_for(minutes(2));
  EXPECT_EQ(stored("others").leader, 3);
  EXPECT_EQ(stored("orders").leader, 2);
  EXPECT_TRUE(first.controller->active());
  EXPECT_EQ(*service_.value("/controller_epoch"), "1") << "it was the controller all the time";
  EXPECT_EQ(count_lines("the cluster's metadata cannot be written"), 1);
  EXPECT_GT(first.coordination->failed, 3);
  EXPECT_LT(first.coordination->failed, 20) << "the pauses become longer";

  first.coordination->failing.clear();
  world_.run_for(seconds(31));
  EXPECT_EQ(stored("orders").leader, 3);
  EXPECT_THAT(stored("orders").in_sync, ElementsAre(3, 1));
  EXPECT_EQ(told(3, "orders")->leader, 3);
  EXPECT_EQ(count_lines("the cluster's metadata is written again"), 1);
}

// It may have lost what it had, and is not told that it leads because another leader could not be
// written; nor is it forgotten that it was gone.
TEST_F(ControllerWritesTest, WhoWasGoneDoesNotLeadWhileItsSuccessorIsNotWritten) {
  auto& first = start(1);
  for (const auto id : {2, 3}) join(member_of(id));
  world_.run_for(seconds(1));
  add_topic(first, "orders", {3, 2});
  first.coordination->failing = znodes::topic("orders");
  die(member_of(3));
  join(member_of(3));
  world_.run_for(seconds(5));
  ASSERT_TRUE(told(3, "orders"));
  EXPECT_EQ(told(3, "orders")->leader, -1);
  EXPECT_EQ(change(first, 3,
                   {.partition = {"orders", 0},
                    .topic_id = first.controller->state().find("orders")->id,
                    .in_sync = {3}})
                .error,
            ErrorCode::not_controller);
  // The next controller finds that out as well.
  die(first);
  start(4);
  EXPECT_EQ(stored("orders").leader, 2);
  EXPECT_THAT(stored("orders").in_sync, ElementsAre(2));
}

TEST_F(ControllerWritesTest, WhoAsksForWhatCannotBeWrittenIsToldAndTriesAgain) {
  auto& first = start(1);
  for (const auto id : {2, 3, 4}) start(id);
  const auto topic = add_topic(first, "orders", {1, 2});
  first.coordination->failing = znodes::topic("orders");
  const InSyncChange wanted{.partition = {"orders", 0},
                            .topic_id = topic->id,
                            .leader_epoch = Epoch{0},
                            .partition_epoch = 0,
                            .in_sync = {1}};
  EXPECT_EQ(change(first, 1, wanted).error, ErrorCode::not_controller);
  ReassignmentRequest request;
  request.topics.push_back({.topic = "orders", .partitions = {}});
  request.topics[0].partitions.push_back({.partition = 0, .replicas = Ids{3, 4}});
  auto asked = run(first, [&] { return first.controller->reassign(request); });
  ASSERT_TRUE(asked) << to_string(asked.error());
  EXPECT_EQ(asked->topics[0].partitions[0].error, ErrorCode::kafka_storage_error);
  TopicState other;
  other.name = "orders2";  // its keys begin alike
  other.partitions.push_back({.leader = 1, .replicas = {1}, .in_sync = {1}});
  EXPECT_FALSE(run(first, [&] { return add_in_turn(*first.controller, other); }));

  first.coordination->failing.clear();
  EXPECT_TRUE(run(first, [&] { return add_in_turn(*first.controller, other); }));
  EXPECT_EQ(change(first, 1, wanted).error, ErrorCode::none);
  asked = run(first, [&] { return first.controller->reassign(request); });
  EXPECT_EQ(asked->topics[0].partitions[0].error, ErrorCode::none);
  EXPECT_TRUE(is_reassigning(first.controller->state().find("orders")->partitions[0]));
  EXPECT_EQ(*service_.value("/controller_epoch"), "1");
}

TEST_F(ControllerWritesTest, ADeletedTopicsKeysAndAMarkOfSettingsGoWhenTheyCan) {
  auto& first = start(1);
  add_topic(first, "orders", {1});
  first.coordination->failing = znodes::topic("orders");
  const auto erased = run(first, [&] { return erase_in_turn(*first.controller, "orders"); });
  ASSERT_TRUE(erased) << to_string(erased.error());
  world_.run_for(seconds(5));
  EXPECT_TRUE(service_.value(znodes::topic("orders")));
  first.coordination->failing = znodes::config_changes;
  world_.run_for(seconds(10));
  EXPECT_FALSE(service_.value(znodes::topic("orders")));

  auto& second = start(2);
  const auto marked = run(second, [&] {
    std::vector<Write> writes;
    writes.push_back(
        {.key = znodes::config_change(0),
         .value = znodes::encode_config_change({znodes::ConfigEntity::Kind::broker, "1"})});
    return second.coordination->commit(std::move(writes));
  });
  ASSERT_TRUE(marked);
  world_.run_for(seconds(5));
  EXPECT_TRUE(service_.value(znodes::config_change(0)));
  first.coordination->failing.clear();
  world_.run_for(seconds(10));
  EXPECT_FALSE(service_.value(znodes::config_change(0)));
  EXPECT_TRUE(first.controller->active());
  EXPECT_EQ(*service_.value("/controller_epoch"), "1");
}

}  // namespace
}  // namespace millrace::kernel
