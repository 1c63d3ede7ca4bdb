// The records of a group's life against those that Kafka 4.4 wrote for the same one:
// tests/golden/segments/kafka-4.4.0/__consumer_offsets, offsets 15 to 19 and 21 to 38.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "consumer.h"

namespace millrace::consumer_groups::testing {
namespace {

using ::testing::ElementsAre;

class RecordsTest : public ConsumerBench {
 public:
  RecordsTest() { driver.cluster().put("s", 1); }

  /// "5 a +", "8 b -": the kind, the member, and whether it is a tombstone.
  std::vector<std::string> written_by(auto act) {
    const auto before = driver.end();
    act();
    std::vector<std::string> out;
    for (const auto& record : driver.log_from(before)) {
      const auto kind = *kind_of(*record.key);
      std::string member;
      if (kind == RecordKind::consumer_group_member_metadata ||
          kind == RecordKind::consumer_group_target_member ||
          kind == RecordKind::consumer_group_current_assignment) {
        // The three keys are alike.
        member = decode_key<kafka::ConsumerGroupMemberMetadataKey>(*record.key)->member_id;
      }
      out.push_back(std::to_string(static_cast<int>(kind)) + " " + member +
                    (record.value ? "+" : "-"));
    }
    return out;
  }
  template <class Value>
  Value last(RecordKind wanted) {
    for (auto record = driver.log().rbegin(); record != driver.log().rend(); ++record) {
      if (*kind_of(*record->key) == wanted && record->value) {
        return *decode_value<Value>(*record->value);
      }
    }
    ADD_FAILURE() << "no record of kind " << static_cast<int>(wanted);
    return {};
  }
};

TEST_F(RecordsTest, AreThoseOfKafkaInItsOrder) {
  Consumer a{.id = "a", .names = {"s"}};
  Consumer b{.id = "b", .names = {"s"}};
  EXPECT_THAT(written_by([&] { join(a); }), ElementsAre("5 a+", "3 +", "7 a+", "6 +", "8 a+"));
  settle(a);
  EXPECT_THAT(written_by([&] { beat(a); }), ElementsAre());
  EXPECT_THAT(written_by([&] { join(b); }), ElementsAre("5 b+", "3 +", "7 b+", "6 +", "8 b+"));
  EXPECT_THAT(written_by([&] { beat(b); }), ElementsAre());
  EXPECT_THAT(written_by([&] { beat(a); }), ElementsAre("8 a+"));
  EXPECT_THAT(written_by([&] { leave(b); }), ElementsAre("8 b-", "7 b-", "5 b-", "3 +"));
  EXPECT_THAT(written_by([&] { beat(a); }), ElementsAre("6 +", "8 a+"));
  EXPECT_THAT(written_by([&] { leave(a); }), ElementsAre("8 a-", "7 a-", "5 a-", "3 +", "6 +"));
}

TEST_F(RecordsTest, HaveKafkasValues) {
  Consumer a{.id = "a", .names = {"s"}};
  join(a);
  const auto metadata =
      last<kafka::ConsumerGroupMemberMetadataValue>(RecordKind::consumer_group_member_metadata);
  EXPECT_FALSE(metadata.instance_id);
  EXPECT_FALSE(metadata.rack_id);
  EXPECT_EQ(metadata.subscribed_topic_regex, "");
  EXPECT_FALSE(metadata.server_assignor);
  EXPECT_FALSE(metadata.classic_member_metadata);
  EXPECT_EQ(metadata.rebalance_timeout_ms, 60'000);
  EXPECT_EQ(last<kafka::ConsumerGroupMetadataValue>(RecordKind::consumer_group_metadata).epoch, 2);
  const auto target = last<kafka::ConsumerGroupTargetAssignmentMetadataValue>(
      RecordKind::consumer_group_target_metadata);
  EXPECT_EQ(target.assignment_epoch, 2);
  EXPECT_EQ(target.assignment_timestamp, driver.wall().ms);
  const auto current = last<kafka::ConsumerGroupCurrentMemberAssignmentValue>(
      RecordKind::consumer_group_current_assignment);
  EXPECT_EQ(current.member_epoch, 2);
  EXPECT_EQ(current.previous_member_epoch, 0);
  EXPECT_EQ(current.state, 0);
  ASSERT_EQ(current.assigned_partitions.size(), 1U);
  EXPECT_THAT(current.assigned_partitions[0].partitions, ElementsAre(0));
  EXPECT_THAT(*current.assigned_partitions[0].assignment_epochs, ElementsAre(2));

  leave(a);
  const auto empty = last<kafka::ConsumerGroupMetadataValue>(RecordKind::consumer_group_metadata);
  EXPECT_EQ(empty.epoch, 3);
  EXPECT_EQ(empty.metadata_hash, 0);
  const auto none = last<kafka::ConsumerGroupTargetAssignmentMetadataValue>(
      RecordKind::consumer_group_target_metadata);
  EXPECT_EQ(none.assignment_epoch, 3);
  EXPECT_EQ(none.assignment_timestamp, 0) << "whoever comes next need not wait";
}

// Offset 124.
TEST_F(RecordsTest, AnInstanceThatIsAwayHasTheEpochThatSaysSo) {
  Consumer a{.id = "a", .instance_id = "i", .names = {"s"}};
  join(a);
  EXPECT_THAT(written_by([&] { leave(a, -2); }), ElementsAre("8 a+"));
  const auto away = last<kafka::ConsumerGroupCurrentMemberAssignmentValue>(
      RecordKind::consumer_group_current_assignment);
  EXPECT_EQ(away.member_epoch, -2);
  EXPECT_EQ(away.previous_member_epoch, 0);
  EXPECT_THAT(*away.assigned_partitions[0].assignment_epochs, ElementsAre(0));
}

// Kafka 3.9: topics' partitions where 4 has a hash, and members' epochs for their partitions'.
TEST_F(RecordsTest, ThoseOfKafka3AreReadAndEnded) {
  const auto write = [&](const auto& key, const auto& value) {
    ASSERT_TRUE(driver.write(encode_key(key)->text(), encode_value(value, 0)->text()));
  };
  kafka::ConsumerGroupMemberMetadataKey member_key;
  member_key.group_id = "g";
  member_key.member_id = "a";
  kafka::ConsumerGroupMemberMetadataValue member;
  member.subscribed_topic_names = {"s"};
  member.rebalance_timeout_ms = 1000;
  member.classic_member_metadata.reset();
  member.instance_id.reset();
  member.rack_id.reset();
  member.server_assignor.reset();
  member.client_id = "client";
  member.client_host = "/10.0.0.1";
  write(member_key, member);
  kafka::ConsumerGroupPartitionMetadataKey topics_key;
  topics_key.group_id = "g";
  write(topics_key, kafka::ConsumerGroupPartitionMetadataValue{});
  kafka::ConsumerGroupMetadataKey group_key;
  group_key.group_id = "g";
  kafka::ConsumerGroupMetadataValue group;
  group.epoch = 4;
  write(group_key, group);
  kafka::ConsumerGroupTargetAssignmentMemberKey target_key;
  target_key.group_id = "g";
  target_key.member_id = "a";
  kafka::ConsumerGroupTargetAssignmentMemberValue target;
  target.topic_partitions.push_back({.topic_id = topic("s"), .partitions = {0}});
  write(target_key, target);
  kafka::ConsumerGroupTargetAssignmentMetadataKey epoch_key;
  epoch_key.group_id = "g";
  kafka::ConsumerGroupTargetAssignmentMetadataValue epoch;
  epoch.assignment_epoch = 4;
  write(epoch_key, epoch);
  kafka::ConsumerGroupCurrentMemberAssignmentKey current_key;
  current_key.group_id = "g";
  current_key.member_id = "a";
  kafka::ConsumerGroupCurrentMemberAssignmentValue current;
  current.member_epoch = 4;
  current.previous_member_epoch = 3;
  current.assigned_partitions.emplace_back();
  current.assigned_partitions[0].topic_id = topic("s");
  current.assigned_partitions[0].partitions = {0};
  current.assigned_partitions[0].assignment_epochs.reset();
  write(current_key, current);
  ASSERT_TRUE(driver.reload());

  Consumer a{.id = "a", .names = {"s"}, .epoch = 4};
  a.owned = a.told = {Place(topic("s"), 0)};
  EXPECT_THAT(written_by([&] { EXPECT_EQ(beat(a).member_epoch, 5); }),
              ElementsAre("3 +", "4 -", "6 +", "8 a+"));
}

}  // namespace
}  // namespace millrace::consumer_groups::testing
