// Leaders elected and replicas moved, from a client's request to the broker and back.
#include <chrono>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <millrace/kafka/alter_partition_reassignments.h>
#include <millrace/kafka/elect_leaders.h>
#include <millrace/kafka/list_partition_reassignments.h>

#include "fakes.h"

namespace millrace::kafka_transport::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr std::int16_t code(ErrorCode error) { return static_cast<std::int16_t>(error); }

class ReplicaHandlersTest : public ConnectionFixture {
 protected:
  ReplicaHandlersTest() { connect(); }
  /// One partition's outcome.
  static ClusterOutcome outcome(ErrorCode error, std::string message) {
    ClusterOutcome made;
    auto& topic = made.topics.emplace_back("orders");
    topic.partitions.push_back({.partition = 3, .error = error, .message = std::move(message)});
    return made;
  }
};

TEST_F(ReplicaHandlersTest, ElectLeadersInEveryVersion) {
  broker.admin().cluster_outcome = outcome(ErrorCode::election_not_needed, "it leads");
  for (std::int16_t version = 0; version <= 2; ++version) {
    kafka::ElectLeadersRequest asked;
    asked.election_type = version > 0 ? 1 : 0;
    asked.timeout_ms = 9000;
    auto& topic = asked.topic_partitions.emplace().emplace_back();
    topic.topic = "orders";
    topic.partitions = {3, 4};
    const auto answer = ask(version, asked);
    const auto& election = broker.admin().elect_leaders_asked.back();
    EXPECT_EQ(election.type, version > 0 ? ElectionType::unclean : ElectionType::preferred);
    EXPECT_EQ(election.timeout, std::chrono::seconds(9));
    EXPECT_EQ(election.partitions->at(0).topic, "orders");
    EXPECT_THAT(election.partitions->at(0).partitions, ElementsAre(3, 4));
    const auto& result = answer.replica_election_results.at(0);
    EXPECT_EQ(result.topic, "orders");
    EXPECT_EQ(result.partition_result.at(0).partition_id, 3);
    EXPECT_EQ(result.partition_result.at(0).error_code, code(ErrorCode::election_not_needed));
    EXPECT_EQ(result.partition_result.at(0).error_message, "it leads");
  }
}

TEST_F(ReplicaHandlersTest, ElectLeadersOfAllPartitions) {
  kafka::ElectLeadersRequest asked;
  asked.topic_partitions.reset();
  EXPECT_EQ(ask(2, asked).error_code, 0);
  EXPECT_FALSE(broker.admin().elect_leaders_asked.at(0).partitions);
}

TEST_F(ReplicaHandlersTest, ElectLeadersOfNoControllerIsAnErrorInEveryVersion) {
  broker.admin().cluster_outcome.error = ErrorCode::not_controller;
  kafka::ElectLeadersRequest asked;
  auto& topic = asked.topic_partitions.emplace().emplace_back();
  topic.topic = "orders";
  topic.partitions = {3, 4};
  EXPECT_EQ(ask(1, asked).error_code, code(ErrorCode::not_controller));
  const auto old = ask(0, asked);  // which has no error of the whole
  ASSERT_THAT(old.replica_election_results, SizeIs(1));
  ASSERT_THAT(old.replica_election_results[0].partition_result, SizeIs(2));
  EXPECT_EQ(old.replica_election_results[0].partition_result[1].partition_id, 4);
  EXPECT_EQ(old.replica_election_results[0].partition_result[1].error_code,
            code(ErrorCode::not_controller));
}

TEST_F(ReplicaHandlersTest, ElectLeadersByAnUnknownRuleIsRefused) {
  kafka::ElectLeadersRequest asked;
  asked.election_type = 2;
  asked.topic_partitions.reset();
  EXPECT_EQ(ask(2, asked).error_code, code(ErrorCode::invalid_request));
  EXPECT_THAT(broker.admin().elect_leaders_asked, IsEmpty());
}

TEST_F(ReplicaHandlersTest, ReassignmentsInEveryVersion) {
  broker.admin().cluster_outcome = outcome(ErrorCode::invalid_replica_assignment, "no broker 9");
  for (std::int16_t version = 0; version <= 1; ++version) {
    kafka::AlterPartitionReassignmentsRequest asked;
    asked.timeout_ms = 5000;
    asked.allow_replication_factor_change = version == 0;
    auto& topic = asked.topics.emplace_back();
    topic.name = "orders";
    topic.partitions.emplace_back().partition_index = 3;
    topic.partitions[0].replicas = {{9, 1}};
    topic.partitions.emplace_back().partition_index = 4;
    topic.partitions[1].replicas.reset();
    const auto answer = ask(version, asked);
    const auto& request = broker.admin().reassign_asked.back();
    EXPECT_EQ(request.timeout, std::chrono::seconds(5));
    EXPECT_EQ(request.replication_factor_may_change, version == 0);
    EXPECT_THAT(*request.topics.at(0).partitions.at(0).replicas, ElementsAre(9, 1));
    EXPECT_EQ(request.topics.at(0).partitions.at(1).partition, 4);
    EXPECT_FALSE(request.topics.at(0).partitions.at(1).replicas) << "a cancellation";
    EXPECT_EQ(answer.error_code, 0);
    EXPECT_FALSE(answer.error_message);
    EXPECT_EQ(answer.allow_replication_factor_change, version == 0 ? true : false);
    const auto& result = answer.responses.at(0).partitions.at(0);
    EXPECT_EQ(result.partition_index, 3);
    EXPECT_EQ(result.error_code, code(ErrorCode::invalid_replica_assignment));
    EXPECT_EQ(result.error_message, "no broker 9");
  }
}

TEST_F(ReplicaHandlersTest, OngoingReassignmentsAreListed) {
  auto& listed = broker.admin().reassignments.topics.emplace_back("orders");
  listed.partitions.push_back(
      {.partition = 3, .replicas = {1, 2, 9}, .adding = {9}, .removing = {2}});
  kafka::ListPartitionReassignmentsRequest asked;
  auto answer = ask(0, asked);
  EXPECT_FALSE(broker.admin().list_reassignments_asked.at(0)) << "all";
  const auto& partition = answer.topics.at(0).partitions.at(0);
  EXPECT_EQ(answer.topics[0].name, "orders");
  EXPECT_EQ(partition.partition_index, 3);
  EXPECT_THAT(partition.replicas, ElementsAre(1, 2, 9));
  EXPECT_THAT(partition.adding_replicas, ElementsAre(9));
  EXPECT_THAT(partition.removing_replicas, ElementsAre(2));

  auto& topic = asked.topics.emplace().emplace_back();
  topic.name = "orders";
  topic.partition_indexes = {3};
  broker.admin().reassignments = {};
  broker.admin().reassignments.error = ErrorCode::not_controller;
  broker.admin().reassignments.message = "broker 2 is the controller";
  answer = ask(0, asked);
  EXPECT_THAT(broker.admin().list_reassignments_asked.at(1)->at(0).partitions, ElementsAre(3));
  EXPECT_EQ(answer.error_code, code(ErrorCode::not_controller));
  EXPECT_EQ(answer.error_message, "broker 2 is the controller");
}

}  // namespace
}  // namespace millrace::kafka_transport::testing
