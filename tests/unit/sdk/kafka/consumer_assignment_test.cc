#include <millrace/kafka/consumer_assignment.h>

#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace millrace::kafka {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

using namespace std::string_view_literals;

// Version, topics [orders: 0, 2], no user data; as a Java client 2.8 wrote it, but for the name.
constexpr auto golden = "\0\1\0\0\0\1\0\6orders\0\0\0\2\0\0\0\2\0\0\0\0\xff\xff\xff\xff"sv;

TEST(ConsumerAssignmentTest, PartitionsAreSorted) {
  const auto partitions = read_consumer_assignment(Buffer::copy_of(golden));
  ASSERT_TRUE(partitions);
  EXPECT_THAT(*partitions, ElementsAre(TopicPartition{"orders", 0}, TopicPartition{"orders", 2}));
}

TEST(ConsumerAssignmentTest, ANewerVersionIsReadAsFarAsItIsKnown) {
  auto newer = std::string(golden) + "something new";
  newer[1] = 9;
  const auto partitions = read_consumer_assignment(Buffer::copy_of(newer));
  ASSERT_TRUE(partitions);
  EXPECT_EQ(partitions->size(), 2);
}

TEST(ConsumerAssignmentTest, NoBytesAreNoPartitions) {
  const auto partitions = read_consumer_assignment(Buffer());
  ASSERT_TRUE(partitions);
  EXPECT_THAT(*partitions, IsEmpty());
}

TEST(ConsumerAssignmentTest, WhatIsCutOrForeignIsNoAssignment) {
  for (std::size_t size = 1; size + 4 < golden.size(); ++size) {
    EXPECT_FALSE(read_consumer_assignment(Buffer::copy_of(golden.substr(0, size)))) << size;
  }
  EXPECT_FALSE(read_consumer_assignment(Buffer::copy_of("\xff\xff\0\0\0\0"sv)));
}

}  // namespace
}  // namespace millrace::kafka
