#include "plugins/transport/kafka/cluster_messages.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <millrace/kafka/codec.h>

namespace millrace::kafka_transport {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;

ClusterUpdate full_update() {
  ClusterUpdate update;
  update.controller = 3;
  update.controller_epoch = 17;
  update.receiver_epoch = 4'000'000'000;
  update.cluster_id = "cluster";
  update.full = true;
  update.brokers.push_back(
      {.id = 3, .epoch = 99, .rack = "r3", .endpoints = {{"inner", {"three", 9093}}}});
  update.brokers.push_back({.id = 4, .epoch = 98, .rack = "", .endpoints = {}});
  ClusterTopicState orders{.name = "orders",
                           .id = Uuid{{7}},
                           .configs = {{"min.insync.replicas", "2"}},
                           .partitions_total = 12,
                           .partitions = {}};
  orders.partitions.push_back({.partition = 5,
                               .leader = 3,
                               .leader_epoch = {8},
                               .partition_epoch = 21,
                               .replicas = {3, 4, 5},
                               .in_sync = {4, 3},
                               .adding = {5},
                               .removing = {4}});
  update.topics.push_back(std::move(orders));
  update.deleted.push_back({"gone", Uuid{{9}}});
  update.broker_configs["<default>"]["log.cleaner.threads"] = "2";
  return update;
}

/// A request of the newest version, without the names that older ones have.
kafka::AlterPartitionRequest alter_request(const std::vector<InSyncChange>& changes) {
  const auto written = write_changes(3, 99, changes);
  const auto version = kafka::AlterPartitionRequest::message_versions.max;
  const auto bytes = kafka::encode(written, version);
  EXPECT_TRUE(bytes) << to_string(bytes.error());
  return *kafka::decode<kafka::AlterPartitionRequest>(*bytes->flatten(), version);
}

InSyncChange change_of(std::uint8_t topic, std::int32_t partition) {
  return {.partition = {"t" + std::to_string(topic), partition},
          .topic_id = Uuid{{topic}},
          .leader_epoch = {2},
          .partition_epoch = 6,
          .in_sync = {3, 1},
          .in_sync_epochs = {99}};
}

TEST(ClusterMessagesTest, AnUpdateArrivesAsItWas) {
  const auto sent = full_update();
  const auto bytes = kafka::encode(write_update(sent), 0);
  ASSERT_TRUE(bytes) << to_string(bytes.error());
  const auto decoded = kafka::decode<kafka::ClusterUpdateRequest>(*bytes->flatten(), 0);
  ASSERT_TRUE(decoded) << to_string(decoded.error());
  const auto got = read_update(*decoded);
  EXPECT_EQ(got.controller, 3);
  EXPECT_EQ(got.controller_epoch, 17);
  EXPECT_EQ(got.receiver_epoch, 4'000'000'000);
  EXPECT_EQ(got.cluster_id, "cluster");
  EXPECT_TRUE(got.full);
  ASSERT_THAT(got.brokers, SizeIs(2));
  EXPECT_EQ(got.brokers[0].id, 3);
  EXPECT_EQ(got.brokers[0].epoch, 99);
  EXPECT_EQ(got.brokers[0].rack, "r3");
  EXPECT_EQ(got.brokers[0].endpoints.at("inner"), (Address{"three", 9093}));
  ASSERT_THAT(got.topics, SizeIs(1));
  EXPECT_EQ(got.topics[0].name, "orders");
  EXPECT_EQ(got.topics[0].id, Uuid{{7}});
  EXPECT_THAT(got.topics[0].configs, ElementsAre(Pair("min.insync.replicas", "2")));
  EXPECT_EQ(got.topics[0].partitions_total, 12);
  ASSERT_THAT(got.topics[0].partitions, SizeIs(1));
  const auto& partition = got.topics[0].partitions[0];
  EXPECT_EQ(partition.partition, 5);
  EXPECT_EQ(partition.leader, 3);
  EXPECT_EQ(partition.leader_epoch, Epoch{8});
  EXPECT_EQ(partition.partition_epoch, 21);
  EXPECT_THAT(partition.replicas, ElementsAre(3, 4, 5));
  EXPECT_THAT(partition.in_sync, ElementsAre(4, 3));
  EXPECT_THAT(partition.adding, ElementsAre(5));
  EXPECT_THAT(partition.removing, ElementsAre(4));
  ASSERT_THAT(got.deleted, SizeIs(1));
  EXPECT_EQ(got.deleted[0].name, "gone");
  EXPECT_EQ(got.deleted[0].id, Uuid{{9}});
  EXPECT_EQ(got.broker_configs.at("<default>").at("log.cleaner.threads"), "2");
}

TEST(ClusterMessagesTest, AnUpdateThatIsCutAnywhereIsRefused) {
  const auto whole = kafka::encode(write_update(full_update()), 0)->flatten();
  ASSERT_TRUE(whole);
  ASSERT_TRUE(kafka::decode<kafka::ClusterUpdateRequest>(*whole, 0));
  for (std::size_t size = 0; size < whole->size(); ++size) {
    EXPECT_FALSE(kafka::decode<kafka::ClusterUpdateRequest>(whole->slice(0, size), 0)) << size;
  }
}

TEST(ClusterMessagesTest, WhatCouldNotBeDoneArrivesAndIsRefusedWhenCut) {
  ClusterUpdated sent{.error = ErrorCode::stale_controller_epoch, .failures = {}};
  sent.failures.push_back({.partition = {"orders", 5},
                           .error = ErrorCode::kafka_storage_error,
                           .message = "segment 0: torn"});
  const auto whole = kafka::encode(write_updated(sent), 0)->flatten();
  const auto got = read_updated(*kafka::decode<kafka::ClusterUpdateResponse>(*whole, 0));
  EXPECT_EQ(got.error, ErrorCode::stale_controller_epoch);
  ASSERT_THAT(got.failures, SizeIs(1));
  EXPECT_EQ(got.failures[0].partition, (TopicPartition{"orders", 5}));
  EXPECT_EQ(got.failures[0].error, ErrorCode::kafka_storage_error);
  EXPECT_EQ(got.failures[0].message, "segment 0: torn");
  for (std::size_t size = 0; size < whole->size(); ++size) {
    EXPECT_FALSE(kafka::decode<kafka::ClusterUpdateResponse>(whole->slice(0, size), 0)) << size;
  }
}

TEST(ClusterMessagesTest, ChangesArriveByIdWithTheLeasesThatAreKnown) {
  const auto got = read_changes(alter_request({change_of(1, 0), change_of(2, 4), change_of(1, 7)}));
  ASSERT_THAT(got, SizeIs(3));  // grouped by topic
  EXPECT_EQ(got[0].topic_id, Uuid{{1}});
  EXPECT_EQ(got[1].partition, (TopicPartition{"", 7}));
  EXPECT_EQ(got[2].topic_id, Uuid{{2}});
  EXPECT_EQ(got[2].leader_epoch, Epoch{2});
  EXPECT_EQ(got[2].partition_epoch, 6);
  EXPECT_THAT(got[2].in_sync, ElementsAre(3, 1));
  EXPECT_THAT(got[2].in_sync_epochs, ElementsAre(99, -1));
}

TEST(ClusterMessagesTest, AnswersFindTheirChangesInAnyOrder) {
  const std::vector changes{change_of(1, 0), change_of(2, 4), change_of(1, 7)};
  std::vector<InSyncChanged> answered(3);
  for (std::size_t at = 0; at < 3; ++at) {
    const auto& change = changes[2 - at];  // backwards
    answered[at].partition = change.partition;
    answered[at].state.leader = 3;
    answered[at].state.leader_epoch = {2};
    answered[at].state.partition_epoch = 100 + change.partition.partition;
    answered[at].state.in_sync = {3};
  }
  answered[1].error = ErrorCode::invalid_update_version;
  const auto version = kafka::AlterPartitionResponse::message_versions.max;
  const auto bytes = kafka::encode(write_changed(answered, changes), version)->flatten();
  const auto response = kafka::decode<kafka::AlterPartitionResponse>(*bytes, version);
  ASSERT_TRUE(response);
  const auto got = read_changed(*response, changes);
  ASSERT_THAT(got, SizeIs(3));
  EXPECT_EQ(got[0].partition, (TopicPartition{"t1", 0}));
  EXPECT_EQ(got[0].state.partition_epoch, 100);
  EXPECT_THAT(got[0].state.in_sync, ElementsAre(3));
  EXPECT_EQ(got[1].error, ErrorCode::invalid_update_version);
  EXPECT_EQ(got[2].state.partition_epoch, 107);
}

TEST(ClusterMessagesTest, NamelessAnswersAreInTheOrderOfTheChanges) {
  std::vector changes{change_of(1, 0), change_of(2, 4)};
  for (auto& change : changes) change.partition.topic.clear();
  std::vector<InSyncChanged> answered(2);
  answered[0].partition = {"", 0};
  answered[1].partition = {"", 4};
  answered[1].error = ErrorCode::unknown_topic_id;
  const auto got = read_changed(write_changed(answered, changes), changes);
  EXPECT_EQ(got.at(0).error, ErrorCode::none);
  EXPECT_EQ(got.at(1).error, ErrorCode::unknown_topic_id);
}

TEST(ClusterMessagesTest, AnErrorOfTheWholeIsEveryChangesAndASilenceIsAnError) {
  const std::vector changes{change_of(1, 0)};
  kafka::AlterPartitionResponse response;
  EXPECT_EQ(read_changed(response, changes).at(0).error, ErrorCode::unknown_server_error);
  response.error_code = static_cast<std::int16_t>(ErrorCode::not_controller);
  EXPECT_EQ(read_changed(response, changes).at(0).error, ErrorCode::not_controller);
  EXPECT_THAT(write_changed({}, {}).topics, IsEmpty());
}

}  // namespace
}  // namespace millrace::kafka_transport
