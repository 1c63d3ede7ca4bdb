// Each API from a client's request to the broker and back, through a connection.
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <millrace/kafka/api_versions.h>
#include <millrace/kafka/create_topics.h>
#include <millrace/kafka/delete_topics.h>
#include <millrace/kafka/fetch.h>
#include <millrace/kafka/find_coordinator.h>
#include <millrace/kafka/init_producer_id.h>
#include <millrace/kafka/list_offsets.h>
#include <millrace/kafka/metadata.h>
#include <millrace/kafka/produce.h>

#include "fakes.h"

namespace millrace::kafka_transport::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr std::int16_t code(ErrorCode error) { return static_cast<std::int16_t>(error); }
constexpr Uuid some_id{{1, 2, 3}};

class HandlersTest : public ConnectionFixture {
 protected:
  HandlersTest() { connect(); }
};

// ---- ApiVersions ----

TEST_F(HandlersTest, ApiVersionsListsExactlyWhatIsServed) {
  const auto answer = ask(0, kafka::ApiVersionsRequest{});
  std::vector<std::int16_t> keys;
  for (const auto& api : answer.api_keys) keys.push_back(api.api_key);
  EXPECT_THAT(keys, ElementsAre(0, 1, 2, 3, 10, 18, 19, 20, 21, 22, 23, 32, 33, 35, 37, 43, 44, 45,
                                46, 60, 61, 74, 75));
  EXPECT_EQ(answer.api_keys[0].min_version, 0);  // librdkafka compresses only if it sees this
  EXPECT_EQ(answer.api_keys[0].max_version, 13);
  EXPECT_EQ(answer.api_keys[1].min_version, 0);
}

TEST_F(HandlersTest, ApiVersionsFromTheFutureIsAnsweredInTheFirstVersion) {
  push(std::string("\0\0\0\x0b\0\x12\0\x63\0\0\0\x07\xff\xff\0", 15));
  ASSERT_EQ(wire.answers().size(), 1);
  const auto answer = kafka::decode_response<kafka::ApiVersionsResponse>(wire.answers()[0], 0, 7);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->error_code, code(ErrorCode::unsupported_version));
  ASSERT_THAT(answer->api_keys, SizeIs(1));  // all that the client needs to ask again
  EXPECT_EQ(answer->api_keys[0].api_key, 18);
  EXPECT_FALSE(wire.closed);
  EXPECT_EQ(
      ask(3, kafka::ApiVersionsRequest{.client_software_name = "x", .client_software_version = "1"})
          .error_code,
      0);
}

TEST_F(HandlersTest, ApiVersionsNotesTheClientsSoftware) {
  kafka::ApiVersionsRequest request;
  request.client_software_name = "apache-kafka-java";
  request.client_software_version = "4.4.0";
  EXPECT_EQ(ask(4, request).error_code, 0);
  EXPECT_EQ(broker.client_info->software, "apache-kafka-java 4.4.0");
  EXPECT_EQ(broker.client_info->client_id, "test");
  EXPECT_EQ(broker.client_info->listener, "kafka");
  request.client_software_name = "-bad name-";
  EXPECT_EQ(ask(4, request).error_code, code(ErrorCode::invalid_request));
  EXPECT_EQ(broker.client_info->software, "apache-kafka-java 4.4.0");
}

TEST_F(HandlersTest, ApiVersionsTellsAClientThatItMeantAnotherBroker) {
  broker.metadata_answer.cluster_id = "ours";
  kafka::ApiVersionsRequest request;
  request.client_software_name = "x";
  request.client_software_version = "1";
  request.node_id = 9;  // means nothing without a cluster
  EXPECT_EQ(ask(5, request).error_code, 0);
  request.cluster_id = "ours";
  EXPECT_EQ(ask(5, request).error_code, code(ErrorCode::rebootstrap_required));
  request.node_id = 1;
  EXPECT_EQ(ask(5, request).error_code, 0);
  request.cluster_id = "theirs";
  EXPECT_EQ(ask(5, request).error_code, code(ErrorCode::rebootstrap_required));
}

TEST_F(HandlersTest, BytesBehindABodyAreIgnored) {
  auto bytes = frame(0, 5, kafka::ApiVersionsRequest{}) + "trailing";
  bytes[3] = static_cast<char>(bytes[3] + 8);
  push(bytes);
  EXPECT_THAT(answered(), ElementsAre(5));
  EXPECT_FALSE(wire.closed);
}

// ---- Metadata ----

TEST_F(HandlersTest, MetadataOfAllTopicsIsWrittenDifferentlyByVersion) {
  kafka::MetadataRequest none;
  none.topics.emplace();
  kafka::MetadataRequest all;
  all.topics.reset();
  ask(0, none);
  ask(1, all);
  ask(1, none);
  ask(12, all);
  ask(12, none);
  ASSERT_THAT(broker.metadata_asked, SizeIs(5));
  EXPECT_FALSE(broker.metadata_asked[0].topics);
  EXPECT_FALSE(broker.metadata_asked[1].topics);
  EXPECT_THAT(*broker.metadata_asked[2].topics, IsEmpty());
  EXPECT_FALSE(broker.metadata_asked[3].topics);
  EXPECT_THAT(*broker.metadata_asked[4].topics, IsEmpty());
}

TEST_F(HandlersTest, MetadataMayCreateTopicsUnlessTheClientSaysNo) {
  kafka::MetadataRequest request;
  request.topics.emplace().emplace_back().name = "orders";
  ask(3, request);
  request.allow_auto_topic_creation = false;
  ask(4, request);
  EXPECT_TRUE(broker.metadata_asked[0].auto_create);
  EXPECT_FALSE(broker.metadata_asked[1].auto_create);
  EXPECT_EQ(broker.metadata_asked[1].topics->at(0).name, "orders");
}

TEST_F(HandlersTest, MetadataTellsAllThatTheBrokerKnows) {
  auto& known = broker.metadata_answer;
  known.brokers.push_back({4, {"broker.example", 9094}, ""});
  known.cluster_id = "cluster";
  known.controller_id = 4;
  auto& topic = known.topics.emplace_back();
  topic.topic = {"orders", some_id};
  topic.partitions.push_back({.partition = 2,
                              .leader = 4,
                              .leader_epoch = {7},
                              .replicas = {4, 5},
                              .in_sync = {4},
                              .offline = {5}});
  known.topics.push_back({.error = ErrorCode::unknown_topic_id, .topic = {"", {{9}}}});

  const auto answer = ask(13, kafka::MetadataRequest{});
  ASSERT_THAT(answer.brokers, SizeIs(1));
  EXPECT_EQ(answer.brokers[0].host, "broker.example");
  EXPECT_EQ(answer.brokers[0].port, 9094);
  EXPECT_FALSE(answer.brokers[0].rack);
  EXPECT_EQ(answer.cluster_id, "cluster");
  EXPECT_EQ(answer.controller_id, 4);
  ASSERT_THAT(answer.topics, SizeIs(2));
  EXPECT_EQ(answer.topics[0].name, "orders");
  EXPECT_EQ(answer.topics[0].topic_id, some_id);
  EXPECT_EQ(answer.topics[0].topic_authorized_operations, INT32_MIN);
  const auto& partition = answer.topics[0].partitions.at(0);
  EXPECT_EQ(partition.partition_index, 2);
  EXPECT_EQ(partition.leader_epoch, 7);
  EXPECT_THAT(partition.replica_nodes, ElementsAre(4, 5));
  EXPECT_THAT(partition.isr_nodes, ElementsAre(4));
  EXPECT_THAT(partition.offline_replicas, ElementsAre(5));
  EXPECT_EQ(answer.topics[1].error_code, code(ErrorCode::unknown_topic_id));
  EXPECT_FALSE(answer.topics[1].name);
}

TEST_F(HandlersTest, MetadataRefusesTopicIdsWhereTheVersionHasNoUseForThem) {
  kafka::MetadataRequest request;
  auto& topics = request.topics.emplace();
  topics.emplace_back().name = "orders";
  topics.push_back({.topic_id = some_id, .name = std::nullopt});
  const auto answer = ask(10, request);
  EXPECT_THAT(*broker.metadata_asked[0].topics, SizeIs(1));
  ASSERT_THAT(answer.topics, SizeIs(1));
  EXPECT_EQ(answer.topics[0].error_code, code(ErrorCode::invalid_request));
  ask(12, request);
  EXPECT_EQ(broker.metadata_asked[1].topics->at(1).id, some_id);
}

// ---- Produce ----

kafka::ProduceRequest produce_request() {
  kafka::ProduceRequest request;
  request.acks = -1;
  request.timeout_ms = 1500;
  auto& topic = request.topic_data.emplace_back();
  topic.name = "orders";
  topic.partition_data.emplace_back(3, Buffer::copy_of("batch"));
  topic.partition_data.emplace_back(4, std::nullopt);
  return request;
}

TEST_F(HandlersTest, ProduceBringsRecordsToTheBroker) {
  ask(9, produce_request());
  const auto& request = broker.produces.at(0).request;
  EXPECT_EQ(request.acks, -1);
  EXPECT_EQ(request.timeout, std::chrono::milliseconds(1500));
  ASSERT_THAT(request.topics, SizeIs(1));
  EXPECT_EQ(request.topics[0].topic.name, "orders");
  EXPECT_EQ(request.topics[0].partitions[0].partition, 3);
  EXPECT_EQ(request.topics[0].partitions[0].records->text(), "batch");
  EXPECT_FALSE(request.topics[0].partitions[1].records);
}

TEST_F(HandlersTest, ProduceOfOldVersionsMayHoldOldFormats) {
  ask(0, produce_request());
  ask(9, produce_request());
  EXPECT_TRUE(broker.produces[0].request.features.legacy_formats);
  EXPECT_FALSE(broker.produces[0].request.features.zstd);
  EXPECT_FALSE(broker.produces[1].request.features.legacy_formats);
  EXPECT_TRUE(broker.produces[1].request.features.zstd);
}

TEST_F(HandlersTest, ProduceByTopicIdIsAnsweredByTopicId) {
  auto request = produce_request();
  request.topic_data[0].name = "";
  request.topic_data[0].topic_id = some_id;
  const auto answer = ask(13, request);
  EXPECT_EQ(broker.produces.at(0).request.topics[0].topic.id, some_id);
  EXPECT_EQ(answer.responses.at(0).topic_id, some_id);
}

TEST_F(HandlersTest, ProduceAnswersEachPartition) {
  broker.on_produce = [](const ProduceRequest&) {
    ProduceAnswer answer;
    auto& topic = answer.topics.emplace_back(TopicName{"orders", {}});
    topic.partitions.push_back(
        {.partition = 3, .base_offset = {100}, .log_append_time = {1700}, .log_start = {5}});
    topic.partitions.push_back({.partition = 4,
                                .error = ErrorCode::invalid_record,
                                .message = "one record has no key",
                                .record_errors = {{2, "no key"}}});
    return answer;
  };
  const auto answer = ask(8, produce_request());
  const auto& partitions = answer.responses.at(0).partition_responses;
  EXPECT_EQ(partitions[0].base_offset, 100);
  EXPECT_EQ(partitions[0].log_append_time_ms, 1700);
  EXPECT_EQ(partitions[0].log_start_offset, 5);
  EXPECT_FALSE(partitions[0].error_message);
  EXPECT_EQ(partitions[1].error_code, code(ErrorCode::invalid_record));
  EXPECT_EQ(partitions[1].base_offset, -1);
  EXPECT_EQ(partitions[1].error_message, "one record has no key");
  EXPECT_EQ(partitions[1].record_errors.at(0).batch_index, 2);
  EXPECT_EQ(partitions[1].record_errors.at(0).batch_index_error_message, "no key");
}

// ---- Fetch ----

TEST_F(HandlersTest, FetchBringsEveryFieldToTheBroker) {
  kafka::FetchRequest asked;
  asked.max_wait_ms = 500;
  asked.min_bytes = 10;
  asked.max_bytes = 1000;
  asked.isolation_level = 1;
  asked.session_id = 12;
  asked.session_epoch = 3;
  asked.rack_id = "r1";
  auto& topic = asked.topics.emplace_back();
  topic.topic = "orders";
  topic.partitions.push_back({.partition = 2,
                              .current_leader_epoch = 5,
                              .fetch_offset = 77,
                              .last_fetched_epoch = 4,
                              .log_start_offset = 1,
                              .partition_max_bytes = 900});
  asked.forgotten_topics_data.push_back({.topic = "gone", .partitions = {8, 9}});
  ask(12, asked);
  const auto& fetch = broker.fetches.at(0).request;
  EXPECT_EQ(fetch.replica_id, -1);
  EXPECT_EQ(fetch.wait_max, std::chrono::milliseconds(500));
  EXPECT_EQ(fetch.bytes_min, 10);
  EXPECT_EQ(fetch.bytes_max, 1000);
  EXPECT_EQ(fetch.isolation, Isolation::read_committed);
  EXPECT_EQ(fetch.session_id, 12);
  EXPECT_EQ(fetch.session_epoch, 3);
  EXPECT_EQ(fetch.rack, "r1");
  EXPECT_FALSE(fetch.by_topic_id);
  EXPECT_TRUE(fetch.zstd);
  const auto& partition = fetch.topics.at(0).partitions.at(0);
  EXPECT_EQ(partition.partition, 2);
  EXPECT_EQ(partition.current_leader_epoch, Epoch{5});
  EXPECT_EQ(partition.from, Offset{77});
  EXPECT_EQ(partition.last_fetched_epoch, Epoch{4});
  EXPECT_EQ(partition.log_start, Offset{1});
  EXPECT_EQ(partition.bytes_max, 900);
  EXPECT_EQ(fetch.forgotten.at(0).topic.name, "gone");
  EXPECT_THAT(fetch.forgotten.at(0).partitions, ElementsAre(8, 9));
}

TEST_F(HandlersTest, FetchKnowsAFollowerInOldAndNewVersions) {
  kafka::FetchRequest old;
  old.replica_id = 4;
  ask(11, old);
  kafka::FetchRequest now;
  now.replica_state.replica_id = 4;
  ask(15, now);
  EXPECT_EQ(broker.fetches[0].request.replica_id, 4);
  EXPECT_EQ(broker.fetches[1].request.replica_id, 4);
  EXPECT_TRUE(broker.fetches[1].request.by_topic_id);
}

TEST_F(HandlersTest, FetchSendsRecordsAsTheyAre) {
  const std::string batch(5000, 'b');
  broker.on_fetch = [&](const FetchRequest&) {
    FetchAnswer answer{.session_id = 9};
    auto& topic = answer.topics.emplace_back(TopicName{"orders", {}});
    Payload records(Buffer::copy_of(batch));
    records.add(Buffer::copy_of("more"));
    topic.partitions.push_back({.partition = 1,
                                .high_watermark = {10},
                                .last_stable = {8},
                                .log_start = {2},
                                .aborted = {{{5, {6}}}},
                                .records = std::move(records)});
    topic.partitions.push_back({.partition = 2, .error = ErrorCode::offset_out_of_range});
    return answer;
  };
  const auto answer = ask(11, kafka::FetchRequest{});
  EXPECT_EQ(answer.session_id, 9);
  const auto& partitions = answer.responses.at(0).partitions;
  EXPECT_EQ(bytes_of(*partitions[0].records), batch + "more");
  EXPECT_EQ(partitions[0].high_watermark, 10);
  EXPECT_EQ(partitions[0].last_stable_offset, 8);
  EXPECT_EQ(partitions[0].log_start_offset, 2);
  EXPECT_EQ(partitions[0].aborted_transactions->at(0).producer_id, 5);
  EXPECT_EQ(partitions[0].aborted_transactions->at(0).first_offset, 6);
  EXPECT_EQ(partitions[0].preferred_read_replica, -1);
  EXPECT_EQ(partitions[1].error_code, code(ErrorCode::offset_out_of_range));
  EXPECT_FALSE(partitions[1].aborted_transactions);
  ASSERT_TRUE(partitions[1].records);  // empty, not null
  EXPECT_TRUE(partitions[1].records->empty());
}

TEST_F(HandlersTest, FetchAsksForTheNewestFormatThatTheVersionReads) {
  for (const std::int16_t version : {0, 1, 2, 3, 4, 17}) ask(version, kafka::FetchRequest{});
  std::vector<int> magics;
  for (const auto& fetch : broker.fetches) magics.push_back(fetch.request.newest_magic);
  EXPECT_THAT(magics, ElementsAre(0, 0, 1, 1, 2, 2));
}

// KIP-112.
TEST_F(HandlersTest, OldClientsAreNotToldOfStorageErrors) {
  broker.on_fetch = [](const FetchRequest&) {
    FetchAnswer answer;
    answer.topics.push_back(
        {{"orders", {}}, {{.partition = 1, .error = ErrorCode::kafka_storage_error}}});
    return answer;
  };
  for (const std::int16_t version : {5, 6}) {
    const auto answer = ask(version, kafka::FetchRequest{});
    EXPECT_EQ(
        answer.responses.at(0).partitions.at(0).error_code,
        code(version == 5 ? ErrorCode::not_leader_or_follower : ErrorCode::kafka_storage_error));
  }
  EXPECT_EQ(produce_error(3, ErrorCode::kafka_storage_error), ErrorCode::not_leader_or_follower);
  EXPECT_EQ(produce_error(4, ErrorCode::kafka_storage_error), ErrorCode::kafka_storage_error);
}

// ---- ListOffsets ----

kafka::ListOffsetsRequest list_offsets_request(std::vector<std::int64_t> timestamps) {
  kafka::ListOffsetsRequest request;
  request.replica_id = -1;
  auto& topic = request.topics.emplace_back();
  topic.name = "orders";
  for (const auto timestamp : timestamps) {
    topic.partitions.push_back(
        {.partition_index = static_cast<std::int32_t>(timestamp & 0xff), .timestamp = timestamp});
  }
  return request;
}

TEST_F(HandlersTest, ListOffsetsAnswersInTheShapeOfTheVersion) {
  const auto oldest = ask(0, list_offsets_request({-1}));
  EXPECT_THAT(oldest.topics.at(0).partitions.at(0).old_style_offsets, ElementsAre(42, 7));
  const auto old = ask(1, list_offsets_request({-1}));
  EXPECT_EQ(old.topics.at(0).partitions.at(0).offset, 42);
  const auto now = ask(7, list_offsets_request({-1}));
  EXPECT_EQ(now.topics.at(0).partitions.at(0).offset, 42);
  EXPECT_EQ(now.topics.at(0).partitions.at(0).leader_epoch, 3);
}

TEST_F(HandlersTest, ListOffsetsRefusesSpecialTimestampsThatTheVersionLacks) {
  const auto answer = ask(5, list_offsets_request({-2, -3, 1000, -77}));
  const auto& asked = broker.list_offsets_asked.at(0).topics.at(0).partitions;
  ASSERT_THAT(asked, SizeIs(2));
  EXPECT_EQ(asked[0].timestamp, -2);
  EXPECT_EQ(asked[1].timestamp, 1000);
  const auto& partitions = answer.topics.at(0).partitions;
  ASSERT_THAT(partitions, SizeIs(4));
  int refused = 0;
  for (const auto& partition : partitions) {
    if (partition.error_code == 0) continue;
    ++refused;
    EXPECT_EQ(partition.error_code, code(ErrorCode::unsupported_version));
    EXPECT_EQ(partition.offset, -1);
    EXPECT_EQ(partition.timestamp, -1);
  }
  EXPECT_EQ(refused, 2);
  ask(7, list_offsets_request({-3}));
  EXPECT_EQ(broker.list_offsets_asked.at(1).topics.at(0).partitions.at(0).timestamp, -3);
}

// ---- CreateTopics, DeleteTopics ----

TEST_F(HandlersTest, CreateTopicsBringsEveryFieldToTheBroker) {
  kafka::CreateTopicsRequest asked;
  asked.timeout_ms = 9000;
  asked.validate_only = true;
  asked.topics.push_back({.name = "orders", .num_partitions = 3, .replication_factor = 2});
  asked.topics.push_back({.name = "placed", .num_partitions = -1, .replication_factor = -1});
  asked.topics[1].assignments.push_back({.partition_index = 0, .broker_ids = {4, 5}});
  asked.topics[1].configs.push_back({.name = "retention.ms", .value = "5"});
  asked.topics[1].configs.push_back({.name = "cleanup.policy", .value = std::nullopt});
  ask(7, asked);
  const auto& request = broker.admin().create_topics_asked.at(0);
  EXPECT_TRUE(request.validate_only);
  EXPECT_EQ(request.timeout, std::chrono::seconds(9));
  EXPECT_EQ(request.topics.at(0).name, "orders");
  EXPECT_EQ(request.topics.at(0).partitions, 3);
  EXPECT_EQ(request.topics.at(0).replication_factor, 2);
  EXPECT_THAT(request.topics.at(1).assignments.at(0), ElementsAre(4, 5));
  EXPECT_EQ(request.topics.at(1).configs.at(0).second, "5");
  EXPECT_FALSE(request.topics.at(1).configs.at(1).second);
}

TEST_F(HandlersTest, CreateTopicsRefusesATopicNamedTwiceAndCreatesTheRest) {
  kafka::CreateTopicsRequest asked;
  for (const auto* name : {"twice", "once", "twice"}) {
    asked.topics.push_back({.name = name, .num_partitions = 1, .replication_factor = 1});
  }
  const auto answer = ask(7, asked);
  ASSERT_THAT(broker.admin().create_topics_asked.at(0).topics, SizeIs(1));
  EXPECT_EQ(broker.admin().create_topics_asked[0].topics[0].name, "once");
  ASSERT_THAT(answer.topics, SizeIs(2));
  EXPECT_EQ(answer.topics[0].name, "twice");
  EXPECT_EQ(answer.topics[0].error_code, code(ErrorCode::invalid_request));
  EXPECT_EQ(answer.topics[1].name, "once");
  EXPECT_EQ(answer.topics[1].error_code, 0);
  EXPECT_EQ(answer.topics[1].num_partitions, 1);
}

TEST_F(HandlersTest, CreateTopicsRefusesAPartitionAssignedTwice) {
  kafka::CreateTopicsRequest asked;
  auto& topic = asked.topics.emplace_back();
  topic.name = "orders";
  topic.assignments.push_back({.partition_index = 0, .broker_ids = {1}});
  topic.assignments.push_back({.partition_index = 0, .broker_ids = {2}});
  const auto answer = ask(2, asked);
  EXPECT_EQ(answer.topics.at(0).error_code, code(ErrorCode::invalid_replica_assignment));
  EXPECT_THAT(broker.admin().create_topics_asked.at(0).topics, IsEmpty());
}

TEST_F(HandlersTest, DeleteTopicsTakesNamesAndIds) {
  kafka::DeleteTopicsRequest by_name;
  by_name.topic_names = {"orders"};
  EXPECT_EQ(ask(5, by_name).responses.at(0).name, "orders");
  EXPECT_EQ(broker.admin().delete_topics_asked.at(0).at(0).name, "orders");

  kafka::DeleteTopicsRequest asked;
  asked.topics.push_back({.name = "orders"});
  asked.topics.push_back({.name = std::nullopt, .topic_id = some_id});
  asked.topics.push_back({.name = "both", .topic_id = some_id});
  asked.topics.push_back({.name = std::nullopt});
  const auto answer = ask(6, asked);
  ASSERT_THAT(broker.admin().delete_topics_asked.at(1), SizeIs(2));
  EXPECT_EQ(broker.admin().delete_topics_asked[1][1].id, some_id);
  ASSERT_THAT(answer.responses, SizeIs(4));
  EXPECT_EQ(answer.responses[0].error_code, code(ErrorCode::invalid_request));
  EXPECT_EQ(answer.responses[1].error_code, code(ErrorCode::invalid_request));
  EXPECT_EQ(answer.responses[2].name, "orders");
  EXPECT_EQ(answer.responses[3].topic_id, some_id);
  EXPECT_FALSE(answer.responses[3].name);
}

// ---- InitProducerId, FindCoordinator ----

TEST_F(HandlersTest, InitProducerIdAsksTheBroker) {
  kafka::InitProducerIdRequest asked;
  asked.transactional_id.reset();
  asked.transaction_timeout_ms = 60000;
  const auto answer = ask(4, asked);
  EXPECT_EQ(answer.producer_id, 4000);
  EXPECT_EQ(answer.producer_epoch, 0);
  EXPECT_FALSE(broker.init_producer_id_asked.at(0).transactional_id);
  EXPECT_EQ(broker.init_producer_id_asked.at(0).transaction_timeout, std::chrono::minutes(1));
}

TEST_F(HandlersTest, InitProducerIdRefusesAnIdWithoutItsEpoch) {
  kafka::InitProducerIdRequest asked;
  asked.producer_id = 5;
  const auto answer = ask(4, asked);
  EXPECT_EQ(answer.error_code, code(ErrorCode::invalid_request));
  EXPECT_EQ(answer.producer_id, -1);
  EXPECT_THAT(broker.init_producer_id_asked, IsEmpty());
}

TEST_F(HandlersTest, FindCoordinatorHasNoneToOffer) {
  kafka::FindCoordinatorRequest one;
  one.key = "group";
  for (std::int16_t version = 0; version <= 3; ++version) {
    const auto answer = ask(version, one);
    EXPECT_EQ(answer.error_code, code(ErrorCode::coordinator_not_available));
    EXPECT_EQ(answer.node_id, -1);
    EXPECT_EQ(answer.port, -1);
  }
  kafka::FindCoordinatorRequest many;
  many.coordinator_keys = {"a", "b"};
  const auto answer = ask(4, many);
  ASSERT_THAT(answer.coordinators, SizeIs(2));
  EXPECT_EQ(answer.coordinators[1].key, "b");
  EXPECT_EQ(answer.coordinators[1].error_code, code(ErrorCode::coordinator_not_available));
}

TEST_F(HandlersTest, FindCoordinatorRefusesKeyTypesThatTheVersionLacks) {
  kafka::FindCoordinatorRequest asked;
  asked.key = "k";
  asked.key_type = 7;
  EXPECT_EQ(ask(2, asked).error_code, code(ErrorCode::invalid_request));
  kafka::FindCoordinatorRequest share;
  share.key_type = 2;
  share.coordinator_keys = {"k"};
  EXPECT_EQ(ask(5, share).coordinators.at(0).error_code, code(ErrorCode::invalid_request));
  EXPECT_EQ(ask(6, share).coordinators.at(0).error_code,
            code(ErrorCode::coordinator_not_available));
}

}  // namespace
}  // namespace millrace::kafka_transport::testing
