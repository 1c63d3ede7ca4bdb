// The APIs that administer a broker, from a client's request to the broker and back.
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <millrace/kafka/create_partitions.h>
#include <millrace/kafka/delete_records.h>
#include <millrace/kafka/describe_cluster.h>
#include <millrace/kafka/describe_log_dirs.h>
#include <millrace/kafka/describe_producers.h>
#include <millrace/kafka/describe_topic_partitions.h>
#include <millrace/kafka/metadata.h>
#include <millrace/kafka/offset_for_leader_epoch.h>

#include "fakes.h"

namespace millrace::kafka_transport::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr std::int16_t code(ErrorCode error) { return static_cast<std::int16_t>(error); }
constexpr std::int32_t every_topic_operation = 3576;    // as Apache Kafka 4.4 says it
constexpr std::int32_t every_cluster_operation = 8096;  // where nothing is forbidden

class AdminHandlersTest : public ConnectionFixture {
 protected:
  AdminHandlersTest() { connect(); }
};

TEST_F(AdminHandlersTest, OffsetForLeaderEpochInEveryVersion) {
  for (std::int16_t version = 0; version <= 4; ++version) {
    kafka::OffsetForLeaderEpochRequest asked;
    auto& topic = asked.topics.emplace_back("orders");
    topic.partitions.push_back({.partition = 3, .current_leader_epoch = 7, .leader_epoch = 5});
    const auto answer = ask(version, asked);
    const auto& query = broker.epoch_ends_asked.back().at(0).partitions.at(0);
    EXPECT_EQ(query.partition, 3);
    EXPECT_EQ(query.epoch, Epoch{5});
    EXPECT_EQ(query.current_leader_epoch, version >= 2 ? Epoch{7} : Epoch{});
    const auto& end = answer.topics.at(0).partitions.at(0);
    EXPECT_EQ(end.partition, 3);
    EXPECT_EQ(end.leader_epoch, version >= 1 ? 5 : -1);
    EXPECT_EQ(end.end_offset, 9);
  }
}

TEST_F(AdminHandlersTest, CreatePartitionsBringsEveryFieldToTheBroker) {
  kafka::CreatePartitionsRequest asked;
  asked.timeout_ms = 9000;
  asked.validate_only = true;
  asked.topics.push_back({.name = "placed", .count = 5});
  asked.topics[0].assignments.reset();
  asked.topics.push_back({.name = "assigned", .count = 2});
  asked.topics[1].assignments.emplace().push_back({.broker_ids = {4, 5}});
  const auto answer = ask(3, asked);
  const auto& request = broker.admin().grow_topics_asked.at(0);
  EXPECT_TRUE(request.validate_only);
  EXPECT_EQ(request.timeout, std::chrono::seconds(9));
  EXPECT_EQ(request.topics.at(0).partitions, 5);
  EXPECT_FALSE(request.topics.at(0).assignments);
  EXPECT_THAT(request.topics.at(1).assignments->at(0), ElementsAre(4, 5));
  ASSERT_THAT(answer.results, SizeIs(2));
  EXPECT_EQ(answer.results[1].name, "assigned");
  EXPECT_FALSE(answer.results[1].error_message);
}

TEST_F(AdminHandlersTest, CreatePartitionsRefusesATopicNamedTwiceAndGrowsTheRest) {
  kafka::CreatePartitionsRequest asked;
  for (const auto* name : {"twice", "once", "twice"}) {
    asked.topics.push_back({.name = name, .count = 2});
    asked.topics.back().assignments.reset();
  }
  const auto answer = ask(0, asked);
  ASSERT_THAT(broker.admin().grow_topics_asked.at(0).topics, SizeIs(1));
  ASSERT_THAT(answer.results, SizeIs(2));
  EXPECT_EQ(answer.results[0].name, "twice");
  EXPECT_EQ(answer.results[0].error_code, code(ErrorCode::invalid_request));
  EXPECT_EQ(answer.results[1].name, "once");
  EXPECT_EQ(answer.results[1].error_code, 0);
}

TEST_F(AdminHandlersTest, DeleteRecordsAnswersTheLowWatermark) {
  kafka::DeleteRecordsRequest asked;
  asked.timeout_ms = 1500;
  auto& topic = asked.topics.emplace_back("orders");
  topic.partitions.push_back({.partition_index = 0, .offset = 17});
  topic.partitions.push_back({.partition_index = 1, .offset = -1});
  const auto answer = ask(2, asked);
  const auto& request = broker.admin().trim_asked.at(0);
  EXPECT_EQ(request.timeout, std::chrono::milliseconds(1500));
  EXPECT_EQ(request.topics.at(0).partitions.at(1).before, Offset{});
  EXPECT_EQ(answer.topics.at(0).partitions.at(0).low_watermark, 17);
  EXPECT_EQ(answer.topics.at(0).partitions.at(1).partition_index, 1);
}

TEST_F(AdminHandlersTest, DescribeClusterTellsBrokersAndController) {
  broker.metadata_answer = {.brokers = {{1, {"one", 9092}, "r1"}, {2, {"two", 9093}, ""}},
                            .cluster_id = "cluster",
                            .controller_id = 2,
                            .topics = {}};
  for (std::int16_t version = 0; version <= 2; ++version) {
    const auto answer = ask(version, kafka::DescribeClusterRequest{});
    EXPECT_EQ(answer.error_code, 0);
    EXPECT_EQ(answer.cluster_id, "cluster");
    EXPECT_EQ(answer.controller_id, 2);
    ASSERT_THAT(answer.brokers, SizeIs(2));
    EXPECT_EQ(answer.brokers[0].rack, "r1");
    EXPECT_EQ(answer.brokers[1].port, 9093);
    EXPECT_FALSE(answer.brokers[1].is_fenced);
    EXPECT_EQ(answer.cluster_authorized_operations, std::numeric_limits<std::int32_t>::min());
  }
  EXPECT_TRUE(broker.metadata_asked.at(0).topics->empty());
  const auto answer =
      ask(0, kafka::DescribeClusterRequest{.include_cluster_authorized_operations = true});
  EXPECT_EQ(answer.cluster_authorized_operations, every_cluster_operation);
}

TEST_F(AdminHandlersTest, DescribeClusterIsForBrokersNotForControllers) {
  const auto error_of = [this](std::int8_t endpoint_type) {
    return ask(1, kafka::DescribeClusterRequest{.endpoint_type = endpoint_type}).error_code;
  };
  EXPECT_EQ(error_of(2), code(ErrorCode::mismatched_endpoint_type));
  EXPECT_EQ(error_of(3), code(ErrorCode::unsupported_endpoint_type));
  EXPECT_THAT(broker.metadata_asked, IsEmpty());
}

TEST_F(AdminHandlersTest, DescribeTopicPartitionsPagesThroughTopics) {
  TopicInfo orders{.topic = {"orders", Uuid{{9}}}, .partitions = {}};
  orders.partitions.push_back({.partition = 4, .leader = 1, .replicas = {1, 2}, .in_sync = {1}});
  broker.admin().topic_page.topics.push_back(orders);
  broker.admin().topic_page.next = TopicPartition{"orders", 5};
  kafka::DescribeTopicPartitionsRequest asked;
  asked.topics.push_back({.name = "orders"});
  asked.response_partition_limit = 1;
  asked.cursor.emplace("orders", 4);
  const auto answer = ask(0, asked);
  const auto& request = broker.admin().describe_topics_asked.at(0);
  EXPECT_THAT(*request.topics, ElementsAre("orders"));
  EXPECT_EQ(request.from, (TopicPartition{"orders", 4}));
  EXPECT_EQ(request.partitions_max, 1);
  ASSERT_THAT(answer.topics, SizeIs(1));
  EXPECT_EQ(answer.topics[0].topic_authorized_operations, every_topic_operation);
  EXPECT_THAT(answer.topics[0].partitions.at(0).replica_nodes, ElementsAre(1, 2));
  EXPECT_THAT(*answer.topics[0].partitions[0].last_known_elr, IsEmpty());
  ASSERT_TRUE(answer.next_cursor);
  EXPECT_EQ(answer.next_cursor->partition_index, 5);
}

TEST_F(AdminHandlersTest, DescribeTopicPartitionsBoundsItsPages) {
  const auto bounded = [this](std::int32_t limit) {
    ask(0, kafka::DescribeTopicPartitionsRequest{.response_partition_limit = limit});
    return broker.admin().describe_topics_asked.back().partitions_max;
  };
  EXPECT_EQ(bounded(1'000'000), 2000);
  EXPECT_EQ(bounded(-1), 1);
  EXPECT_FALSE(broker.admin().describe_topics_asked.back().topics);  // all of them

  kafka::DescribeTopicPartitionsRequest asked;
  asked.topics.push_back({.name = "orders"});
  asked.cursor.emplace("orders", -4);
  EXPECT_EQ(ask(0, asked).topics.at(0).error_code, code(ErrorCode::invalid_request));
}

TEST_F(AdminHandlersTest, DescribeLogDirsTellsSizesAndSpace) {
  broker.admin().log_folders = {{.path = "/data",
                                 .topics = {{"orders", {{.partition = 2, .bytes = 123}}}},
                                 .bytes_total = 1000,
                                 .bytes_usable = 600}};
  kafka::DescribeLogDirsRequest asked;
  asked.topics.reset();
  for (std::int16_t version = 0; version <= 5; ++version) {
    const auto answer = ask(version, asked);
    ASSERT_THAT(answer.results, SizeIs(1));
    EXPECT_EQ(answer.results[0].log_dir, "/data");
    EXPECT_EQ(answer.results[0].topics.at(0).partitions.at(0).partition_size, 123);
    EXPECT_EQ(answer.results[0].total_bytes, version >= 4 ? 1000 : -1);
    EXPECT_EQ(answer.results[0].usable_bytes, version >= 4 ? 600 : -1);
  }
  EXPECT_FALSE(broker.admin().describe_log_folders_asked.at(0));
  asked.topics.emplace().push_back({.topic = "orders", .partitions = {2}});
  ask(5, asked);
  EXPECT_THAT(broker.admin().describe_log_folders_asked.back()->at(0).partitions, ElementsAre(2));
}

TEST_F(AdminHandlersTest, DescribeProducersTellsWhatAPartitionRemembers) {
  broker.admin().producers = {{.producer_id = 4000,
                               .producer_epoch = 2,
                               .last_sequence = 9,
                               .last_timestamp = {1234},
                               .coordinator_epoch = 1,
                               .transaction_start = {50}}};
  kafka::DescribeProducersRequest asked;
  asked.topics.push_back({.name = "orders", .partition_indexes = {0, 1}});
  const auto answer = ask(0, asked);
  ASSERT_THAT(answer.topics.at(0).partitions, SizeIs(2));
  const auto& producer = answer.topics[0].partitions[1].active_producers.at(0);
  EXPECT_EQ(producer.producer_id, 4000);
  EXPECT_EQ(producer.producer_epoch, 2);
  EXPECT_EQ(producer.last_sequence, 9);
  EXPECT_EQ(producer.last_timestamp, 1234);
  EXPECT_EQ(producer.coordinator_epoch, 1);
  EXPECT_EQ(producer.current_txn_start_offset, 50);
}

TEST_F(AdminHandlersTest, MetadataTellsOperationsWhenAsked) {
  broker.metadata_answer.topics.push_back({.topic = {"orders", {}}, .partitions = {}});
  kafka::MetadataRequest asked;
  asked.include_topic_authorized_operations = true;
  asked.include_cluster_authorized_operations = true;
  const auto answer = ask(8, asked);
  EXPECT_EQ(answer.cluster_authorized_operations, every_cluster_operation);
  EXPECT_EQ(answer.topics.at(0).topic_authorized_operations, every_topic_operation);
}

}  // namespace
}  // namespace millrace::kafka_transport::testing
