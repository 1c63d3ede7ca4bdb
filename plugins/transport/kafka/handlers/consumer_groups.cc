// The consumer protocol (KIP-848): one heartbeat carries what a member wants, has and is given.
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include <millrace/groups.h>
#include <millrace/kafka/consumer_group_describe.h>
#include <millrace/kafka/consumer_group_heartbeat.h>

#include "authorized_operations.h"
#include "handlers.h"
#include "names.h"

namespace millrace::kafka_transport {
namespace {

Result<ConsumerHeartbeat> read_heartbeat(const Request& request) {
  MR_TRY(const auto asked, request.decode<kafka::ConsumerGroupHeartbeatRequest>());
  ConsumerHeartbeat heartbeat;
  heartbeat.group = asked.group_id;
  heartbeat.member_id = asked.member_id;
  heartbeat.member_epoch = asked.member_epoch;
  heartbeat.instance_id = owned(asked.instance_id);
  heartbeat.rack = owned(asked.rack_id);
  if (asked.rebalance_timeout_ms >= 0) {
    heartbeat.rebalance_timeout = milliseconds(asked.rebalance_timeout_ms);
  }
  if (asked.subscribed_topic_names) {
    heartbeat.subscribed_names.emplace(asked.subscribed_topic_names->begin(),
                                       asked.subscribed_topic_names->end());
  }
  heartbeat.subscribed_regex = owned(asked.subscribed_topic_regex);
  heartbeat.server_assignor = owned(asked.server_assignor);
  if (asked.topic_partitions) {
    auto& has = heartbeat.owned.emplace();
    for (const auto& topic : *asked.topic_partitions) {
      has.push_back({topic.topic_id, topic.partitions});
    }
  }
  return heartbeat;
}

Result<Payload> write_heartbeat(const Request& request, const ConsumerHeartbeatAnswer& answer) {
  kafka::ConsumerGroupHeartbeatResponse response;
  response.error_code = code_of(answer.error);
  response.error_message = message_of(answer.message);
  response.member_id = answer.member_id;
  response.member_epoch = answer.member_epoch;
  response.heartbeat_interval_ms = static_cast<std::int32_t>(
      std::chrono::duration_cast<std::chrono::milliseconds>(answer.heartbeat_interval).count());
  if (answer.assignment) {
    auto& assignment = response.assignment.emplace();
    for (const auto& topic : *answer.assignment) {
      assignment.topic_partitions.emplace_back(topic.topic, topic.partitions);
    }
  }
  return request.encode(response);
}

using DescribedGroup = kafka::ConsumerGroupDescribeResponse::Group;

template <class Assignment>
void write_assignment(Assignment& to, const ConsumerAssignment& assignment) {
  for (const auto& topic : assignment.topics) {
    to.topic_partitions.emplace_back(topic.id, topic.name, topic.partitions);
  }
}

void write_member(DescribedGroup& group, const ConsumerGroupDescribed::Member& member) {
  auto& to = group.members.emplace_back();
  to.member_id = member.member_id;
  to.instance_id = member.instance_id;
  to.rack_id = member.rack;
  to.member_epoch = member.member_epoch;
  to.client_id = member.client_id;
  to.client_host = member.client_host;
  to.subscribed_topic_names.assign(member.subscribed_names.begin(), member.subscribed_names.end());
  to.subscribed_topic_regex = member.subscribed_regex;
  write_assignment(to.assignment, member.assignment);
  write_assignment(to.target_assignment, member.target);
  to.member_type = member.type;
}

void write_group(kafka::ConsumerGroupDescribeResponse& response,
                 const ConsumerGroupDescribed& described, bool operations) {
  auto& group = response.groups.emplace_back();
  group.error_code = code_of(described.error);
  group.error_message = message_of(described.message);
  group.group_id = described.group;
  if (described.error != ErrorCode::none) return;
  group.group_state = described.state;
  group.group_epoch = described.group_epoch;
  group.assignment_epoch = described.assignment_epoch;
  group.assignor_name = described.assignor;
  for (const auto& member : described.members) write_member(group, member);
  if (operations) group.authorized_operations = group_operations;
}

}  // namespace

Task<Payload> handle_consumer_group_heartbeat(Request& request) {
  MR_CO_TRY(auto heartbeat, read_heartbeat(request));
  const bool required = consumer_heartbeat_features(request.head.version).member_id_required;
  if (required && heartbeat.member_id.empty()) {
    co_return write_heartbeat(
        request, {.error = ErrorCode::invalid_request, .message = "MemberId can't be empty."});
  }
  auto beating = request.listener.groups->heartbeat(request.client, std::move(heartbeat));
  MR_CO_TRY(const auto answer, co_await std::move(beating));
  co_return write_heartbeat(request, answer);
}

Task<Payload> handle_consumer_group_describe(Request& request) {
  MR_CO_TRY(const auto asked, request.decode<kafka::ConsumerGroupDescribeRequest>());
  const bool operations = asked.include_authorized_operations;
  std::vector<std::string> groups(asked.group_ids.begin(), asked.group_ids.end());
  auto describing = request.listener.groups->describe_consumer_groups(std::move(groups));
  MR_CO_TRY(const auto described, co_await std::move(describing));
  kafka::ConsumerGroupDescribeResponse response;
  for (const auto& group : described) write_group(response, group, operations);
  co_return request.encode(response);
}

}  // namespace millrace::kafka_transport
