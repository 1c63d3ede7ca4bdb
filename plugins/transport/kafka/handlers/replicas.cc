// Leaders elected and replicas moved, by the controller.
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <millrace/admin.h>
#include <millrace/kafka/alter_partition_reassignments.h>
#include <millrace/kafka/elect_leaders.h>
#include <millrace/kafka/list_partition_reassignments.h>

#include "handlers.h"
#include "names.h"

namespace millrace::kafka_transport {
namespace {

template <class Written>
void write_outcome(const PartitionOutcome& outcome, Written& to) {
  to.error_code = code_of(outcome.error);
  to.error_message = message_of(outcome.message);
}

// ---- ElectLeaders ----

Result<ElectionRequest> read_election(const Request& request) {
  MR_TRY(const auto asked, request.decode<kafka::ElectLeadersRequest>());
  ElectionRequest election;
  election.type = static_cast<ElectionType>(asked.election_type);
  election.timeout = milliseconds(asked.timeout_ms);
  if (!asked.topic_partitions) return election;
  auto& partitions = election.partitions.emplace();
  for (const auto& topic : *asked.topic_partitions) {
    partitions.push_back({std::string(topic.topic), topic.partitions});
  }
  return election;
}

bool is_election_type(ElectionType type) {
  return type == ElectionType::preferred || type == ElectionType::unclean;
}

/// Where a version has no room for an error of the whole, every partition has it.
void spread_error(ClusterOutcome& outcome, const std::vector<TopicPartitions>& asked) {
  outcome.topics.clear();
  for (const auto& topic : asked) {
    auto& to = outcome.topics.emplace_back(topic.topic);
    for (const auto partition : topic.partitions) {
      to.partitions.push_back(
          {.partition = partition, .error = outcome.error, .message = outcome.message});
    }
  }
  outcome.error = ErrorCode::none;
}

kafka::ElectLeadersResponse write_elected(const ClusterOutcome& elected) {
  kafka::ElectLeadersResponse response;
  response.error_code = code_of(elected.error);
  for (const auto& topic : elected.topics) {
    auto& to = response.replica_election_results.emplace_back();
    to.topic = topic.topic;
    for (const auto& partition : topic.partitions) {
      auto& result = to.partition_result.emplace_back();
      result.partition_id = partition.partition;
      write_outcome(partition, result);
    }
  }
  return response;
}

// ---- AlterPartitionReassignments ----

Result<ReassignmentRequest> read_reassignment(const Request& request) {
  MR_TRY(const auto asked, request.decode<kafka::AlterPartitionReassignmentsRequest>());
  ReassignmentRequest reassignment;
  reassignment.timeout = milliseconds(asked.timeout_ms);
  reassignment.replication_factor_may_change = asked.allow_replication_factor_change;
  for (const auto& topic : asked.topics) {
    auto& to = reassignment.topics.emplace_back();
    to.topic = topic.name;
    for (const auto& partition : topic.partitions) {
      to.partitions.push_back(
          {.partition = partition.partition_index, .replicas = partition.replicas});
    }
  }
  return reassignment;
}

kafka::AlterPartitionReassignmentsResponse write_reassigned(const ClusterOutcome& outcome,
                                                            bool replication_factor_may_change) {
  kafka::AlterPartitionReassignmentsResponse response;
  response.allow_replication_factor_change = replication_factor_may_change;
  response.error_code = code_of(outcome.error);
  response.error_message = message_of(outcome.message);
  for (const auto& topic : outcome.topics) {
    auto& to = response.responses.emplace_back();
    to.name = topic.topic;
    for (const auto& partition : topic.partitions) {
      auto& result = to.partitions.emplace_back();
      result.partition_index = partition.partition;
      write_outcome(partition, result);
    }
  }
  return response;
}

// ---- ListPartitionReassignments ----

Result<std::optional<std::vector<TopicPartitions>>> read_listing(const Request& request) {
  MR_TRY(const auto asked, request.decode<kafka::ListPartitionReassignmentsRequest>());
  std::optional<std::vector<TopicPartitions>> topics;
  if (!asked.topics) return topics;
  topics.emplace();
  for (const auto& topic : *asked.topics) {
    topics->push_back({std::string(topic.name), topic.partition_indexes});
  }
  return topics;
}

kafka::ListPartitionReassignmentsResponse write_listed(const ReassignmentsListed& listed) {
  kafka::ListPartitionReassignmentsResponse response;
  response.error_code = code_of(listed.error);
  response.error_message = message_of(listed.message);
  for (const auto& topic : listed.topics) {
    auto& to = response.topics.emplace_back();
    to.name = topic.topic;
    for (const auto& partition : topic.partitions) {
      auto& ongoing = to.partitions.emplace_back();
      ongoing.partition_index = partition.partition;
      ongoing.replicas = partition.replicas;
      ongoing.adding_replicas = partition.adding;
      ongoing.removing_replicas = partition.removing;
    }
  }
  return response;
}

}  // namespace

Task<Payload> handle_elect_leaders(Request& request) {
  MR_CO_TRY(auto election, read_election(request));
  if (!is_election_type(election.type)) {
    ClusterOutcome refused;
    refused.error = ErrorCode::invalid_request;
    co_return request.encode(write_elected(refused));
  }
  const auto asked = election.partitions.value_or(std::vector<TopicPartitions>());
  auto electing = request.broker.admin().elect_leaders(request.session, std::move(election));
  MR_CO_TRY(auto elected, co_await std::move(electing));
  const auto features = elect_leaders_features(request.head.version);
  if (elected.error != ErrorCode::none && !features.whole_error) spread_error(elected, asked);
  co_return request.encode(write_elected(elected));
}

Task<Payload> handle_alter_partition_reassignments(Request& request) {
  MR_CO_TRY(auto reassignment, read_reassignment(request));
  const bool may_change = reassignment.replication_factor_may_change;
  auto moving = request.broker.admin().reassign(request.session, std::move(reassignment));
  MR_CO_TRY(const auto outcome, co_await std::move(moving));
  co_return request.encode(write_reassigned(outcome, may_change));
}

Task<Payload> handle_list_partition_reassignments(Request& request) {
  MR_CO_TRY(auto topics, read_listing(request));
  auto listing = request.broker.admin().list_reassignments(request.session, std::move(topics));
  MR_CO_TRY(const auto listed, co_await std::move(listing));
  co_return request.encode(write_listed(listed));
}

}  // namespace millrace::kafka_transport
