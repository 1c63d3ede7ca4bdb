#include "plugins/transport/kafka/leader_hints.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <millrace/kafka/fetch.h>
#include <millrace/kafka/produce.h>

#include "fakes.h"

namespace millrace::kafka_transport::testing {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

class LeaderHintsTest : public ConnectionFixture {
 protected:
  /// Partitions 0 and 1 of a topic are led by broker 2; 0 is refused here.
  LeaderHintsTest() {
    TopicInfo orders{.topic = {"orders", id}, .partitions = {}};
    for (const std::int32_t partition : {0, 1}) {
      orders.partitions.push_back({.partition = partition,
                                   .leader = 2,
                                   .leader_epoch = {8},
                                   .replicas = {2, 1},
                                   .in_sync = {2, 1}});
    }
    broker.metadata_answer = {.brokers = {{1, {"one", 9092}, ""}, {2, {"two", 9093}, "r2"}},
                              .cluster_id = "cluster",
                              .controller_id = 1,
                              .topics = {orders}};
    broker.on_produce = [this](const ProduceRequest& request) {
      auto answer = plain_answer(request);
      answer.topics.at(0).partitions.at(0).error = refusal;
      return answer;
    };
    broker.on_fetch = [this](const FetchRequest& request) {
      auto answer = plain_answer(request);
      answer.topics.at(0).partitions.at(0).error = refusal;
      return answer;
    };
    connect();
  }

  kafka::ProduceResponse produce(std::int16_t version) {
    kafka::ProduceRequest asked;
    asked.acks = -1;
    auto& topic = asked.topic_data.emplace_back();
    topic.name = "orders";
    topic.topic_id = id;
    for (const std::int32_t partition : {0, 1}) {
      topic.partition_data.emplace_back().index = partition;
    }
    return ask(version, asked);
  }
  kafka::FetchResponse fetch(std::int16_t version, std::int32_t replica = -1) {
    kafka::FetchRequest asked;
    if (version >= 15) asked.replica_state.replica_id = replica;
    auto& topic = asked.topics.emplace_back();
    topic.topic = "orders";
    topic.topic_id = id;
    for (const std::int32_t partition : {0, 1}) {
      topic.partitions.emplace_back().partition = partition;
    }
    return ask(version, asked);
  }

  const Uuid id{{7}};
  ErrorCode refusal = ErrorCode::not_leader_or_follower;
};

TEST_F(LeaderHintsTest, AProducerIsToldWhoLeadsWhatWasRefused) {
  const auto answer = produce(13);
  const auto& partitions = answer.responses.at(0).partition_responses;
  EXPECT_EQ(partitions.at(0).current_leader.leader_id, 2);
  EXPECT_EQ(partitions.at(0).current_leader.leader_epoch, 8);
  EXPECT_EQ(partitions.at(1).current_leader.leader_id, -1) << "it was not refused";
  ASSERT_THAT(answer.node_endpoints, SizeIs(1));
  EXPECT_EQ(answer.node_endpoints[0].node_id, 2);
  EXPECT_EQ(answer.node_endpoints[0].host, "two");
  EXPECT_EQ(answer.node_endpoints[0].port, 9093);
  EXPECT_EQ(answer.node_endpoints[0].rack, "r2");
  EXPECT_EQ(broker.metadata_asked.at(0).topics->at(0).id, id);
}

TEST_F(LeaderHintsTest, AConsumerToo) {
  for (const auto error : {ErrorCode::not_leader_or_follower, ErrorCode::fenced_leader_epoch}) {
    refusal = error;
    const auto answer = fetch(16);
    EXPECT_EQ(answer.responses.at(0).partitions.at(0).current_leader.leader_id, 2);
    EXPECT_EQ(answer.responses.at(0).partitions.at(1).current_leader.leader_id, -1);
    ASSERT_THAT(answer.node_endpoints, SizeIs(1));
    EXPECT_EQ(answer.node_endpoints[0].node_id, 2);
  }
}

TEST_F(LeaderHintsTest, ByNameWhereTheRequestHasNames) {
  const auto answer = produce(10);
  EXPECT_EQ(broker.metadata_asked.at(0).topics->at(0).name, "orders");
  EXPECT_EQ(answer.responses.at(0).partition_responses.at(0).current_leader.leader_epoch, 8);
}

TEST_F(LeaderHintsTest, NobodyIsAskedWhereNobodyCouldBeTold) {
  produce(9);
  fetch(15);
  fetch(17, 3);  // a follower, which hears of leaders from the controller
  refusal = ErrorCode::unknown_topic_or_partition;
  produce(13);
  fetch(17);
  refusal = ErrorCode::none;
  produce(13);
  EXPECT_THAT(broker.metadata_asked, IsEmpty());
}

TEST_F(LeaderHintsTest, APartitionWithoutLeaderHasNone) {
  for (auto& partition : broker.metadata_answer.topics[0].partitions) partition.leader = -1;
  const auto answer = produce(13);
  EXPECT_EQ(answer.responses.at(0).partition_responses.at(0).current_leader.leader_id, -1);
  EXPECT_THAT(answer.node_endpoints, IsEmpty());
}

}  // namespace
}  // namespace millrace::kafka_transport::testing
