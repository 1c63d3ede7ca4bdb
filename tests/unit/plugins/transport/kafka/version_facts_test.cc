#include "plugins/transport/kafka/version_facts.h"

#include <gtest/gtest.h>

namespace millrace::kafka_transport {
namespace {

TEST(VersionFactsTest, OldProducersMaySendOldFormatsAndNoZstd) {
  EXPECT_TRUE(produce_features(2).legacy_formats);
  EXPECT_FALSE(produce_features(3).legacy_formats);
  EXPECT_FALSE(produce_features(6).zstd);
  EXPECT_TRUE(produce_features(7).zstd);
}

TEST(VersionFactsTest, FetchersReadZstdFromTenAndNameTopicsByIdFromThirteen) {
  EXPECT_FALSE(fetch_features(9).zstd);
  EXPECT_TRUE(fetch_features(10).zstd);
  EXPECT_FALSE(fetch_features(12).by_topic_id);
  EXPECT_TRUE(fetch_features(13).by_topic_id);
  EXPECT_EQ(fetch_features(4).newest_magic, 2);
}

TEST(VersionFactsTest, SpecialTimestampsCameOneByOne) {
  EXPECT_EQ(list_offsets_features(6).oldest_spec, -2);
  EXPECT_EQ(list_offsets_features(7).oldest_spec, -3);
  EXPECT_EQ(list_offsets_features(8).oldest_spec, -4);
  EXPECT_EQ(list_offsets_features(9).oldest_spec, -5);
}

TEST(VersionFactsTest, CoordinatorTypesCameOneByOne) {
  EXPECT_EQ(coordinator_features(0).type_max, 0);
  EXPECT_EQ(coordinator_features(1).type_max, 1);
  EXPECT_EQ(coordinator_features(6).type_max, 2);
  EXPECT_FALSE(coordinator_features(3).many_keys);
  EXPECT_TRUE(coordinator_features(4).many_keys);
}

}  // namespace
}  // namespace millrace::kafka_transport
