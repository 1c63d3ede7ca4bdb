// Who may commit and fetch in a group of the consumer protocol.
#include <gtest/gtest.h>

#include "consumer.h"

namespace millrace::consumer_groups::testing {
namespace {

class ConsumerOffsetsTest : public ConsumerBench {
 public:
  OffsetCommitRequest request(const Consumer& consumer, std::int32_t partition = 0) {
    OffsetCommitRequest request{.group = consumer.group,
                                .generation = consumer.epoch,
                                .member_id = consumer.id,
                                .fenced_by_member_epoch = true};
    request.topics.push_back({.topic = {.name = "orders", .id = topic("orders")},
                              .partitions = {{.partition = partition, .offset = {7}}}});
    return request;
  }
  ErrorCode commit_of(const OffsetCommitRequest& request) {
    return ask<OffsetCommitAnswer>(request.group, request).at(0).partitions.at(0).error;
  }
  ErrorCode fetch_of(const std::string& member, std::int32_t epoch) {
    FetchOffsets fetch;
    fetch.request.group = "g";
    fetch.request.member_id = member;
    fetch.request.member_epoch = epoch;
    return ask<GroupOffsets>("g", fetch).error;
  }
};

TEST_F(ConsumerOffsetsTest, MembersCommitWithTheirEpoch) {
  Consumer a{.id = "a"};
  join(a);
  EXPECT_EQ(commit_of(request(a)), ErrorCode::none);
  EXPECT_EQ(offset_of("g"), 7);
  auto newer = request(a);
  newer.generation = 9;
  EXPECT_EQ(commit_of(newer), ErrorCode::stale_member_epoch);
  auto older = request(a);
  older.generation = 1;
  EXPECT_EQ(commit_of(older), ErrorCode::stale_member_epoch);
  auto unknown = request(a);
  unknown.member_id = "x";
  EXPECT_EQ(commit_of(unknown), ErrorCode::unknown_member_id);
  auto tool = request(a);
  tool.member_id = "";
  tool.generation = -1;
  EXPECT_EQ(commit_of(tool), ErrorCode::unknown_member_id);
  leave(a);
  EXPECT_EQ(commit_of(tool), ErrorCode::none) << "nobody is in it";
}

TEST_F(ConsumerOffsetsTest, AClientThatDoesNotKnowStaleEpochsIsToldSo) {
  Consumer a{.id = "a"};
  join(a);
  auto old = request(a);
  old.fenced_by_member_epoch = false;
  EXPECT_EQ(commit_of(old), ErrorCode::unsupported_version);
}

// KIP-1251.
TEST_F(ConsumerOffsetsTest, WhatAMemberHasKeptItMayCommitWithTheEpochBefore) {
  Consumer a{.id = "a"};
  Consumer b{.id = "b"};
  join(a);
  settle(a);
  beat(a);
  const auto before = request(a, 0);
  const auto lost = request(a, 3);
  join(b);
  beat(a);
  EXPECT_EQ(commit_of(lost), ErrorCode::none) << "is its own until it has given up";
  settle(a);
  beat(a);
  EXPECT_EQ(a.epoch, 3);
  EXPECT_EQ(commit_of(before), ErrorCode::none);
  EXPECT_EQ(commit_of(lost), ErrorCode::stale_member_epoch);
  beat(b);
  ASSERT_TRUE(b.assigned.contains(Place(topic("orders"), 3)));
  auto too_early = request(b, 3);
  too_early.generation = 2;
  EXPECT_EQ(commit_of(too_early), ErrorCode::stale_member_epoch);
}

TEST_F(ConsumerOffsetsTest, FetchesAreChecked) {
  Consumer a{.id = "a"};
  join(a);
  EXPECT_EQ(fetch_of("a", 2), ErrorCode::none);
  EXPECT_EQ(fetch_of("a", 1), ErrorCode::stale_member_epoch);
  EXPECT_EQ(fetch_of("x", 2), ErrorCode::unknown_member_id);
  EXPECT_EQ(offsets("g").error, ErrorCode::none);
}

}  // namespace
}  // namespace millrace::consumer_groups::testing
