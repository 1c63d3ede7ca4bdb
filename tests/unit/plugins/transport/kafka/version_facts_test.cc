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

TEST(VersionFactsTest, MembersWaitForEachOtherByTheRulesOfTheirVersion) {
  EXPECT_FALSE(join_group_features(0).rebalance_timeout);
  EXPECT_TRUE(join_group_features(1).rebalance_timeout);
  EXPECT_FALSE(join_group_features(3).known_member_id);
  EXPECT_TRUE(join_group_features(4).known_member_id);
  EXPECT_FALSE(join_group_features(6).null_protocol);
  EXPECT_TRUE(join_group_features(7).null_protocol);
  EXPECT_FALSE(join_group_features(8).skip_assignment);
  EXPECT_TRUE(join_group_features(9).skip_assignment);
  EXPECT_FALSE(sync_group_features(4).protocol_required);
  EXPECT_TRUE(sync_group_features(5).protocol_required);
  EXPECT_FALSE(leave_group_features(2).many_members);
  EXPECT_TRUE(leave_group_features(3).many_members);
  EXPECT_FALSE(consumer_heartbeat_features(0).member_id_required);
  EXPECT_TRUE(consumer_heartbeat_features(1).member_id_required);
}

TEST(VersionFactsTest, ErrorsOfGroupsHaveTheirPlaceByVersion) {
  EXPECT_FALSE(offset_commit_features(8).stale_member_epoch);
  EXPECT_TRUE(offset_commit_features(9).stale_member_epoch);
  EXPECT_FALSE(offset_fetch_features(1).group_error);
  EXPECT_TRUE(offset_fetch_features(2).group_error);
  EXPECT_FALSE(offset_fetch_features(7).many_groups);
  EXPECT_TRUE(offset_fetch_features(8).many_groups);
  EXPECT_FALSE(describe_groups_features(5).not_found);
  EXPECT_TRUE(describe_groups_features(6).not_found);
}

}  // namespace
}  // namespace millrace::kafka_transport
