// What is forgotten, and when.
#include "bench.h"

namespace millrace::consumer_groups::testing {
namespace {

constexpr auto day = std::chrono::hours(24);

class RetentionTest : public Bench {
 public:
  Client simple{.group = "s"};
  Client member{.client_id = "m", .session = 1800s};

  /// Heartbeats while time goes by.
  void live(Client& client, Duration time) {
    for (Duration passed{}; passed < time; passed += std::chrono::minutes(20)) {
      driver.advance(std::chrono::minutes(20));
      EXPECT_EQ(heartbeat(client), ErrorCode::none);
    }
  }
  std::int64_t records() { return driver.end().value; }
};

TEST_F(RetentionTest, OfAConsumerThatAssignsItselfTheLastCommitCounts) {
  EXPECT_EQ(commit_error(simple, 1), ErrorCode::none);
  driver.advance(4 * day);
  EXPECT_EQ(commit_error(simple, 2, "bills"), ErrorCode::none);
  driver.advance(3 * day - 1h);
  EXPECT_EQ(offset_of("s"), 1);
  driver.advance(2h);
  EXPECT_EQ(offset_of("s"), -1);
  EXPECT_EQ(offset_of("s", "bills"), 2);
  driver.advance(4 * day);
  EXPECT_TRUE(list().empty());
}

// G05: the time counts from the commit, not from the load.
TEST_F(RetentionTest, ALoadChangesNothing) {
  EXPECT_EQ(commit_error(simple, 1), ErrorCode::none);
  driver.advance(6 * day);
  ASSERT_TRUE(driver.reload());
  driver.advance(day - 1h);
  EXPECT_EQ(offset_of("s"), 1);
  driver.advance(2h);
  EXPECT_EQ(offset_of("s"), -1);
}

TEST_F(RetentionTest, OlderClientsSayHowLong) {
  OffsetCommitRequest request{.group = "s", .retention = 2h};
  request.topics.push_back({{.name = "orders"}, {{.partition = 0, .offset = {1}}}});
  EXPECT_EQ(ask<OffsetCommitAnswer>("s", request).at(0).partitions.at(0).error, ErrorCode::none);
  driver.advance(1h);
  ASSERT_TRUE(driver.reload());
  EXPECT_EQ(offset_of("s"), 1);
  driver.advance(75min);
  EXPECT_EQ(offset_of("s"), -1);
}

TEST_F(RetentionTest, OfAGroupTheTimeCountsFromWhenItWasEmpty) {
  make_stable({&member});
  EXPECT_EQ(commit_error(member, 1), ErrorCode::none);
  live(member, 5 * day);
  (void)leave(member);
  driver.advance(7 * day - 1h);
  EXPECT_EQ(offset_of("g"), 1);
  ASSERT_TRUE(driver.reload());
  EXPECT_EQ(offset_of("g"), 1);
  driver.advance(2h);
  EXPECT_EQ(offset_of("g"), -1);
  EXPECT_TRUE(list().empty());
}

TEST_F(RetentionTest, OfALivingGroupWhatItNoLongerReadsExpires) {
  make_stable({&member});
  EXPECT_EQ(commit_error(member, 1), ErrorCode::none);
  EXPECT_EQ(commit_error(member, 1, "bills"), ErrorCode::none);
  live(member, 8 * day);
  EXPECT_EQ(offset_of("g"), 1);
  EXPECT_EQ(offset_of("g", "bills"), -1);
}

TEST_F(RetentionTest, WhatAGroupReadsThatNobodyUnderstandsStays) {
  member.protocols = {{"range", Buffer::copy_of("own format")}};
  make_stable({&member});
  EXPECT_EQ(commit_error(member, 1, "bills"), ErrorCode::none);
  live(member, 8 * day);
  EXPECT_EQ(offset_of("g", "bills"), 1);
}

TEST_F(RetentionTest, AGroupWithoutOffsetsGoesWhenItIsEmpty) {
  make_stable({&member});
  (void)leave(member);
  EXPECT_EQ(list().size(), 1U);
  driver.advance(11min);
  EXPECT_TRUE(list().empty());
}

TEST_F(RetentionTest, TheTimeIsASetting) {
  driver.set("offsets.retention.minutes", "60");
  EXPECT_EQ(commit_error(simple, 1), ErrorCode::none);
  driver.advance(80min);
  EXPECT_TRUE(list().empty());
}

TEST_F(RetentionTest, MoreThanOneBatchTakesSeveral) {
  driver.cluster().put("wide", 10'000);
  driver.cluster_changed();
  OffsetCommitRequest request{.group = "s"};
  auto& partitions = request.topics.emplace_back(TopicCommit{.topic = {.name = "wide"}}).partitions;
  for (std::int32_t at = 0; at < 10'000; ++at) {
    partitions.push_back({.partition = at, .offset = {1}});
  }
  (void)ask<OffsetCommitAnswer>("s", request);
  driver.advance(8 * day);
  EXPECT_EQ(offset_of("s", "wide", 9'999), -1);
  EXPECT_TRUE(list().empty());
}

// ---- topics that are gone ----

TEST_F(RetentionTest, OffsetsOfADeletedTopicGoWithIt) {
  EXPECT_EQ(commit_error(simple, 1), ErrorCode::none);
  EXPECT_EQ(commit_error(simple, 2, "bills"), ErrorCode::none);
  driver.cluster().remove("orders");
  driver.cluster_changed();
  EXPECT_EQ(offset_of("s"), -1);
  EXPECT_EQ(offset_of("s", "bills"), 2);
}

TEST_F(RetentionTest, ATopicThatWasMadeAnewHasNoOffsets) {
  EXPECT_EQ(commit_error(simple, 1), ErrorCode::none);
  driver.cluster().remove("orders");
  driver.cluster().put("orders", 4);
  driver.cluster_changed();
  EXPECT_EQ(offset_of("s"), -1);
  EXPECT_EQ(commit_error(simple, 3), ErrorCode::none);
  driver.cluster().put("more", 1);
  driver.cluster_changed();
  EXPECT_EQ(offset_of("s"), 3);
}

TEST_F(RetentionTest, ATopicThatIsNotSeenYetIsNotDeleted) {
  EXPECT_EQ(commit_error(simple, 1), ErrorCode::none);
  driver.unload();
  driver.cluster().remove("orders");
  ASSERT_TRUE(driver.load());
  EXPECT_EQ(offset_of("s"), 1);
  driver.cluster().put("unrelated", 1);
  driver.cluster_changed();
  EXPECT_EQ(offset_of("s"), 1);
}

TEST_F(RetentionTest, AChangeElsewhereWritesNothing) {
  EXPECT_EQ(commit_error(simple, 1), ErrorCode::none);
  const auto before = records();
  driver.cluster().put("orders", 8);
  driver.cluster_changed();
  EXPECT_EQ(records(), before);
}

TEST_F(RetentionTest, DroppingManyTakesSeveralBatches) {
  driver.cluster().put("wide", 10'000);
  driver.cluster_changed();
  OffsetCommitRequest request{.group = "s"};
  auto& partitions = request.topics.emplace_back(TopicCommit{.topic = {.name = "wide"}}).partitions;
  for (std::int32_t at = 0; at < 10'000; ++at) {
    partitions.push_back({.partition = at, .offset = {1}});
  }
  (void)ask<OffsetCommitAnswer>("s", request);
  driver.cluster().remove("wide");
  driver.cluster_changed();
  driver.cluster().put("wide", 10'000);
  driver.cluster_changed();
  EXPECT_EQ(commit_error(simple, 5, "wide", 9'999), ErrorCode::none);  // of the new one
  driver.advance(1s);
  const auto left = offsets("s");
  ASSERT_EQ(left.topics.size(), 1U);
  ASSERT_EQ(left.topics[0].partitions.size(), 1U);
  EXPECT_EQ(left.topics[0].partitions[0].offset, Offset{5});
}

}  // namespace
}  // namespace millrace::consumer_groups::testing
