// The APIs of groups from a client's request to the service and back, every version of each.
#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <millrace/kafka/api_versions.h>
#include <millrace/kafka/consumer_group_describe.h>
#include <millrace/kafka/consumer_group_heartbeat.h>
#include <millrace/kafka/delete_groups.h>
#include <millrace/kafka/describe_groups.h>
#include <millrace/kafka/find_coordinator.h>
#include <millrace/kafka/heartbeat.h>
#include <millrace/kafka/join_group.h>
#include <millrace/kafka/leave_group.h>
#include <millrace/kafka/list_groups.h>
#include <millrace/kafka/sync_group.h>

#include "group_fakes.h"

namespace millrace::kafka_transport::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;
using ::testing::SizeIs;
using namespace std::chrono_literals;

constexpr std::int16_t code(ErrorCode error) { return static_cast<std::int16_t>(error); }
constexpr Uuid some_id{{1, 2, 3}};

class GroupHandlersTest : public GroupsFixture {
 protected:
  GroupHandlersTest() {
    broker.metadata_answer.brokers.push_back({4, {"broker.example", 9094}, ""});
    connect();
  }
};

TEST_F(GroupHandlersTest, ApiVersionsListsTheGroupsApisInTheOrderOfKeys) {
  std::vector<std::int16_t> keys;
  for (const auto& api : ask(0, kafka::ApiVersionsRequest{}).api_keys) keys.push_back(api.api_key);
  EXPECT_THAT(keys, IsSupersetOf({8, 9, 10, 11, 12, 13, 14, 15, 16, 42, 47, 68, 69}));
  EXPECT_TRUE(std::ranges::is_sorted(keys));
}

// ---- FindCoordinator ----

TEST_F(GroupHandlersTest, FindCoordinatorTellsTheListenersAddressOfTheBroker) {
  for (std::int16_t version = 0; version <= 3; ++version) {
    kafka::FindCoordinatorRequest request;
    request.key = "readers";
    const auto answer = ask(version, request);
    EXPECT_EQ(answer.error_code, 0);
    EXPECT_EQ(answer.node_id, 4);
    EXPECT_EQ(answer.host, "broker.example");
    EXPECT_EQ(answer.port, 9094);
    if (version >= 1) EXPECT_EQ(answer.error_message, "NONE");
  }
  EXPECT_THAT(groups.coordinators_asked, ElementsAre("readers", "readers", "readers", "readers"));
}

TEST_F(GroupHandlersTest, FindCoordinatorAnswersManyKeysInTheirOrder) {
  for (std::int16_t version = 4; version <= 6; ++version) {
    kafka::FindCoordinatorRequest request;
    request.coordinator_keys = {"b", "a"};
    const auto answer = ask(version, request);
    ASSERT_THAT(answer.coordinators, SizeIs(2));
    EXPECT_EQ(answer.coordinators[0].key, "b");
    EXPECT_EQ(answer.coordinators[1].key, "a");
    EXPECT_EQ(answer.coordinators[1].host, "broker.example");
    EXPECT_EQ(answer.coordinators[1].error_message, "");
  }
}

TEST_F(GroupHandlersTest, FindCoordinatorTellsWhyThereIsNone) {
  groups.coordinator_answer = {ErrorCode::coordinator_not_available, "being made", -1};
  kafka::FindCoordinatorRequest request;
  request.key = "readers";
  auto answer = ask(2, request);
  EXPECT_EQ(answer.error_code, code(ErrorCode::coordinator_not_available));
  EXPECT_EQ(answer.error_message, "being made");
  EXPECT_EQ(answer.node_id, -1);
  EXPECT_EQ(answer.port, -1);

  groups.coordinator_answer = {ErrorCode::none, {}, 5};  // has died meanwhile
  EXPECT_EQ(ask(2, request).error_code, code(ErrorCode::coordinator_not_available));
}

TEST_F(GroupHandlersTest, FindCoordinatorKnowsNobodyForTransactions) {
  kafka::FindCoordinatorRequest request;
  request.key = "tx";
  request.key_type = 1;
  EXPECT_EQ(ask(3, request).error_code, code(ErrorCode::coordinator_not_available));
  EXPECT_THAT(groups.coordinators_asked, IsEmpty());
}

// ---- JoinGroup ----

kafka::JoinGroupRequest join_request(std::int16_t version) {
  kafka::JoinGroupRequest request;
  request.group_id = "readers";
  request.session_timeout_ms = 10'000;
  if (version >= 1) request.rebalance_timeout_ms = 60'000;
  request.member_id = "m-1";
  if (version >= 5) request.group_instance_id = "static-1";
  request.protocol_type = "consumer";
  request.protocols.push_back({"range", Buffer::copy_of("wants")});
  request.protocols.push_back({"sticky", Buffer::copy_of("also")});
  if (version >= 8) request.reason = "hello";
  return request;
}

TEST_F(GroupHandlersTest, JoinGroupBringsAllThatItsVersionHas) {
  for (std::int16_t version = 0; version <= 9; ++version) {
    SCOPED_TRACE(version);
    ask(version, join_request(version));
    const auto& join = groups.joins.back().request;
    EXPECT_EQ(join.group, "readers");
    EXPECT_EQ(join.session_timeout, 10s);
    EXPECT_EQ(join.rebalance_timeout, version >= 1 ? 60s : 10s);
    EXPECT_EQ(join.member_id, "m-1");
    EXPECT_EQ(join.instance_id.has_value(), version >= 5);
    EXPECT_EQ(join.protocol_type, "consumer");
    ASSERT_THAT(join.protocols, SizeIs(2));
    EXPECT_EQ(join.protocols[1].name, "sticky");
    EXPECT_EQ(join.protocols[1].metadata.text(), "also");
    EXPECT_EQ(join.reason, version >= 8 ? "hello" : "");
    EXPECT_EQ(join.known_member_id_required, version >= 4);
    EXPECT_EQ(join.skip_assignment, version >= 9);
    EXPECT_EQ(groups.clients.back(), "test");
  }
}

TEST_F(GroupHandlersTest, JoinGroupAnswersTheLeaderWithItsMembers) {
  groups.join_answer = {.error = ErrorCode::none,
                        .generation = 7,
                        .protocol_type = "consumer",
                        .protocol = "range",
                        .leader = "m-1",
                        .skip_assignment = true,
                        .member_id = "m-1",
                        .members = {{"m-1", std::nullopt, Buffer::copy_of("wants")},
                                    {"m-2", "static-2", Buffer::copy_of("too")}}};
  for (std::int16_t version = 0; version <= 9; ++version) {
    SCOPED_TRACE(version);
    const auto answer = ask(version, join_request(version));
    EXPECT_EQ(answer.error_code, 0);
    EXPECT_EQ(answer.generation_id, 7);
    EXPECT_EQ(answer.protocol_type.has_value(), version >= 7);
    EXPECT_EQ(answer.protocol_name, "range");
    EXPECT_EQ(answer.leader, "m-1");
    EXPECT_EQ(answer.skip_assignment, version >= 9);
    ASSERT_THAT(answer.members, SizeIs(2));
    EXPECT_EQ(answer.members[1].member_id, "m-2");
    EXPECT_EQ(answer.members[1].group_instance_id.has_value(), version >= 5);
    EXPECT_EQ(answer.members[1].metadata.text(), "too");
  }
}

TEST_F(GroupHandlersTest, JoinGroupThatIsRefusedHasNoProtocol) {
  groups.join_answer = {.error = ErrorCode::member_id_required, .member_id = "m-9"};
  for (std::int16_t version = 0; version <= 9; ++version) {
    SCOPED_TRACE(version);
    const auto answer = ask(version, join_request(version));
    EXPECT_EQ(answer.error_code, code(ErrorCode::member_id_required));
    EXPECT_EQ(answer.generation_id, -1);
    EXPECT_EQ(answer.member_id, "m-9");
    EXPECT_EQ(answer.protocol_name.has_value(), version < 7);
  }
  EXPECT_EQ(counter("millrace_kafka_errors_total",
                    {{"api", "JoinGroup"}, {"error", "MEMBER_ID_REQUIRED"}}),
            10);
}

TEST_F(GroupHandlersTest, JoinGroupWaitsForTheOthersWithoutItsFrame) {
  groups.hold = true;
  auto request = join_request(5);
  const std::string large(100'000, 'x');
  request.protocols[0].metadata = Buffer::copy_of(large);
  push(frame(5, 1, request));
  EXPECT_LT(broker.memory(shard).bytes_used(), 10'000U);
  EXPECT_EQ(groups.joins.at(0).request.protocols[0].metadata.size(), large.size());

  // Another request begins once the join has its place.
  push(frame(0, 2, kafka::HeartbeatRequest{}));
  EXPECT_THAT(groups.heartbeats, IsEmpty());
  groups.joins[0].dispatched.resolve();
  shard.run();
  EXPECT_THAT(groups.heartbeats, SizeIs(1));
  EXPECT_THAT(answered(), IsEmpty());
  groups.joins[0].done.resolve(JoinGroupAnswer{});
  shard.run();
  EXPECT_THAT(answered(), ElementsAre(1, 2));
}

TEST_F(GroupHandlersTest, JoinGroupEndsWithItsConnection) {
  groups.hold = true;
  push(frame(5, 1, join_request(5)));
  groups.joins[0].dispatched.resolve();
  wire.close_peer();
  shard.run();
  EXPECT_TRUE(ended);
}

// ---- SyncGroup ----

kafka::SyncGroupRequest sync_request(std::int16_t version) {
  kafka::SyncGroupRequest request;
  request.group_id = "readers";
  request.generation_id = 7;
  request.member_id = "m-1";
  if (version >= 3) request.group_instance_id = "static-1";
  if (version >= 5) request.protocol_type = "consumer";
  if (version >= 5) request.protocol_name = "range";
  request.assignments.push_back({"m-2", Buffer::copy_of("yours")});
  return request;
}

TEST_F(GroupHandlersTest, SyncGroupBringsTheLeadersAssignmentAndAnswersOnesOwn) {
  groups.sync_answer = {ErrorCode::none, "consumer", "range", Buffer::copy_of("mine")};
  for (std::int16_t version = 0; version <= 5; ++version) {
    SCOPED_TRACE(version);
    const auto answer = ask(version, sync_request(version));
    const auto& sync = groups.syncs.back().request;
    EXPECT_EQ(sync.group, "readers");
    EXPECT_EQ(sync.generation, 7);
    EXPECT_EQ(sync.member_id, "m-1");
    EXPECT_EQ(sync.instance_id.has_value(), version >= 3);
    EXPECT_EQ(sync.protocol.has_value(), version >= 5);
    ASSERT_THAT(sync.assignments, SizeIs(1));
    EXPECT_EQ(sync.assignments[0].member_id, "m-2");
    EXPECT_EQ(sync.assignments[0].assignment.text(), "yours");
    EXPECT_EQ(answer.assignment.text(), "mine");
    EXPECT_EQ(answer.protocol_name.has_value(), version >= 5);
  }
}

TEST_F(GroupHandlersTest, SyncGroupMustNameTheProtocolWhereTheVersionCan) {
  auto request = sync_request(5);
  request.protocol_name.reset();
  EXPECT_EQ(ask(5, request).error_code, code(ErrorCode::inconsistent_group_protocol));
  EXPECT_THAT(groups.syncs, IsEmpty());
}

TEST_F(GroupHandlersTest, SyncGroupEndsWithItsConnection) {
  groups.hold = true;
  push(frame(3, 1, sync_request(3)));
  groups.syncs[0].dispatched.resolve();
  wire.close_peer();
  shard.run();
  EXPECT_TRUE(ended);
}

// ---- Heartbeat, LeaveGroup ----

TEST_F(GroupHandlersTest, HeartbeatAnswersTheServicesCode) {
  groups.heartbeat_answer = ErrorCode::rebalance_in_progress;
  for (std::int16_t version = 0; version <= 4; ++version) {
    SCOPED_TRACE(version);
    kafka::HeartbeatRequest request;
    request.group_id = "readers";
    request.generation_id = 7;
    request.member_id = "m-1";
    if (version >= 3) request.group_instance_id = "static-1";
    EXPECT_EQ(ask(version, request).error_code, code(ErrorCode::rebalance_in_progress));
    EXPECT_EQ(groups.heartbeats.back().generation, 7);
    EXPECT_EQ(groups.heartbeats.back().member_id, "m-1");
    EXPECT_EQ(groups.heartbeats.back().instance_id.has_value(), version >= 3);
  }
}

TEST_F(GroupHandlersTest, LeaveGroupOfOneMemberHasItsErrorAsItsOwn) {
  groups.leave_answer.members.push_back(
      {.member_id = "m-1", .error = ErrorCode::unknown_member_id});
  for (std::int16_t version = 0; version <= 2; ++version) {
    kafka::LeaveGroupRequest request;
    request.group_id = "readers";
    request.member_id = "m-1";
    EXPECT_EQ(ask(version, request).error_code, code(ErrorCode::unknown_member_id));
    ASSERT_THAT(groups.leaves.back().members, SizeIs(1));
    EXPECT_EQ(groups.leaves.back().members[0].member_id, "m-1");
  }
}

TEST_F(GroupHandlersTest, LeaveGroupOfManyHasAnErrorForEach) {
  groups.leave_answer.members = {{"m-1", std::nullopt, ErrorCode::none},
                                 {"", "static-2", ErrorCode::unknown_member_id}};
  for (std::int16_t version = 3; version <= 5; ++version) {
    kafka::LeaveGroupRequest request;
    request.group_id = "readers";
    request.members.emplace_back().member_id = "m-1";
    request.members.emplace_back().group_instance_id = "static-2";
    if (version >= 5) request.members[0].reason = "bye";
    const auto answer = ask(version, request);
    EXPECT_EQ(groups.leaves.back().members.at(0).reason, version >= 5 ? "bye" : "");
    EXPECT_EQ(groups.leaves.back().members.at(1).instance_id, "static-2");
    EXPECT_EQ(answer.error_code, 0);
    ASSERT_THAT(answer.members, SizeIs(2));
    EXPECT_EQ(answer.members[1].group_instance_id, "static-2");
    EXPECT_EQ(answer.members[1].error_code, code(ErrorCode::unknown_member_id));
  }
}

// ---- ListGroups, DescribeGroups, DeleteGroups ----

TEST_F(GroupHandlersTest, ListGroupsFiltersByWhatItsVersionHas) {
  groups.listed.groups.push_back({"readers", "consumer", "Stable", "classic"});
  for (std::int16_t version = 0; version <= 5; ++version) {
    SCOPED_TRACE(version);
    kafka::ListGroupsRequest request;
    if (version >= 4) request.states_filter = {"Stable", "Empty"};
    if (version >= 5) request.types_filter = {"classic"};
    const auto answer = ask(version, request);
    EXPECT_THAT(groups.filters.back().states, SizeIs(version >= 4 ? 2 : 0));
    EXPECT_THAT(groups.filters.back().types, SizeIs(version >= 5 ? 1 : 0));
    ASSERT_THAT(answer.groups, SizeIs(1));
    EXPECT_EQ(answer.groups[0].group_id, "readers");
    EXPECT_EQ(answer.groups[0].protocol_type, "consumer");
    EXPECT_EQ(answer.groups[0].group_state, version >= 4 ? "Stable" : "");
    EXPECT_EQ(answer.groups[0].group_type, version >= 5 ? "classic" : "");
  }
}

TEST_F(GroupHandlersTest, DescribeGroupsTellsOfAMissingGroupAsItsVersionDoes) {
  groups.described = {{.error = ErrorCode::none,
                       .message = {},
                       .group = "readers",
                       .state = "Stable",
                       .protocol_type = "consumer",
                       .protocol = "range",
                       .members = {{"m-1", "static-1", "client", "/192.0.2.7",
                                    Buffer::copy_of("wants"), Buffer::copy_of("has")}}},
                      {.error = ErrorCode::group_id_not_found,
                       .message = "Group none not found.",
                       .group = "none",
                       .state = "Dead",
                       .protocol_type = {},
                       .protocol = {},
                       .members = {}}};
  for (std::int16_t version = 0; version <= 6; ++version) {
    SCOPED_TRACE(version);
    kafka::DescribeGroupsRequest request;
    request.groups = {"readers", "none"};
    request.include_authorized_operations = version >= 3;
    const auto answer = ask(version, request);
    EXPECT_THAT(groups.described_asked.back(), ElementsAre("readers", "none"));
    ASSERT_THAT(answer.groups, SizeIs(2));
    const auto& readers = answer.groups[0];
    EXPECT_EQ(readers.group_state, "Stable");
    EXPECT_EQ(readers.protocol_data, "range");
    EXPECT_EQ(readers.authorized_operations != INT32_MIN, version >= 3);
    ASSERT_THAT(readers.members, SizeIs(1));
    EXPECT_EQ(readers.members[0].client_host, "/192.0.2.7");
    EXPECT_EQ(readers.members[0].group_instance_id.has_value(), version >= 4);
    EXPECT_EQ(readers.members[0].member_metadata.text(), "wants");
    EXPECT_EQ(readers.members[0].member_assignment.text(), "has");
    EXPECT_EQ(answer.groups[1].group_state, "Dead");
    EXPECT_EQ(answer.groups[1].error_code, version >= 6 ? code(ErrorCode::group_id_not_found) : 0);
    EXPECT_EQ(answer.groups[1].error_message.has_value(), version >= 6);
  }
}

TEST_F(GroupHandlersTest, DeleteGroupsAnswersForEach) {
  groups.remove_error = ErrorCode::non_empty_group;
  for (std::int16_t version = 0; version <= 3; ++version) {
    kafka::DeleteGroupsRequest request;
    request.groups_names = {"a", "b"};
    const auto answer = ask(version, request);
    EXPECT_THAT(groups.removed.back(), ElementsAre("a", "b"));
    ASSERT_THAT(answer.results, SizeIs(2));
    EXPECT_EQ(answer.results[1].group_id, "b");
    EXPECT_EQ(answer.results[1].error_code, code(ErrorCode::non_empty_group));
  }
}

// ---- ConsumerGroupHeartbeat, ConsumerGroupDescribe ----

TEST_F(GroupHandlersTest, ConsumerGroupHeartbeatBringsWhatAMemberSaysOnce) {
  groups.consumer_heartbeat_answer.member_id = "m-1";
  groups.consumer_heartbeat_answer.member_epoch = 5;
  groups.consumer_heartbeat_answer.heartbeat_interval = 5s;
  groups.consumer_heartbeat_answer.assignment.emplace().push_back({some_id, {0, 2}});
  for (std::int16_t version = 0; version <= 1; ++version) {
    SCOPED_TRACE(version);
    kafka::ConsumerGroupHeartbeatRequest request;
    request.group_id = "readers";
    request.member_id = "m-1";
    request.member_epoch = 0;
    request.instance_id = "static-1";
    request.rack_id = "east";
    request.rebalance_timeout_ms = 60'000;
    request.subscribed_topic_names.emplace().emplace_back("orders");
    if (version >= 1) request.subscribed_topic_regex = "o.*";
    request.server_assignor = "range";
    request.topic_partitions.emplace().push_back({some_id, {1}});
    const auto answer = ask(version, request);

    const auto& heartbeat = groups.consumer_heartbeats.back();
    EXPECT_EQ(heartbeat.group, "readers");
    EXPECT_EQ(heartbeat.member_id, "m-1");
    EXPECT_EQ(heartbeat.instance_id, "static-1");
    EXPECT_EQ(heartbeat.rack, "east");
    EXPECT_EQ(heartbeat.rebalance_timeout, Duration(60s));
    EXPECT_THAT(*heartbeat.subscribed_names, ElementsAre("orders"));
    EXPECT_EQ(heartbeat.subscribed_regex.has_value(), version >= 1);
    EXPECT_EQ(heartbeat.server_assignor, "range");
    ASSERT_THAT(*heartbeat.owned, SizeIs(1));
    EXPECT_EQ(heartbeat.owned->at(0).topic, some_id);
    EXPECT_THAT(heartbeat.owned->at(0).partitions, ElementsAre(1));

    EXPECT_EQ(answer.error_code, 0);
    EXPECT_FALSE(answer.error_message);
    EXPECT_EQ(answer.member_epoch, 5);
    EXPECT_EQ(answer.heartbeat_interval_ms, 5000);
    ASSERT_TRUE(answer.assignment);
    EXPECT_EQ(answer.assignment->topic_partitions.at(0).topic_id, some_id);
    EXPECT_THAT(answer.assignment->topic_partitions.at(0).partitions, ElementsAre(0, 2));
  }
}

TEST_F(GroupHandlersTest, ConsumerGroupHeartbeatLeavesOutWhatHasNotChanged) {
  kafka::ConsumerGroupHeartbeatRequest request;
  request.group_id = "readers";
  request.member_id = "m-1";
  request.member_epoch = 5;
  const auto answer = ask(1, request);
  const auto& heartbeat = groups.consumer_heartbeats.back();
  EXPECT_EQ(heartbeat.member_epoch, 5);
  EXPECT_FALSE(heartbeat.rebalance_timeout);
  EXPECT_FALSE(heartbeat.subscribed_names);
  EXPECT_FALSE(heartbeat.subscribed_regex);
  EXPECT_FALSE(heartbeat.owned);
  EXPECT_FALSE(answer.assignment);
}

TEST_F(GroupHandlersTest, ConsumerGroupHeartbeatNeedsAMemberIdFromOneOn) {
  kafka::ConsumerGroupHeartbeatRequest request;
  request.group_id = "readers";
  EXPECT_EQ(ask(0, request).error_code, 0);
  const auto answer = ask(1, request);
  EXPECT_EQ(answer.error_code, code(ErrorCode::invalid_request));
  EXPECT_EQ(answer.error_message, "MemberId can't be empty.");
  EXPECT_THAT(groups.consumer_heartbeats, SizeIs(1));
}

TEST_F(GroupHandlersTest, ConsumerGroupDescribeTellsWhatAMemberHasAndShallHave) {
  auto& described = groups.consumer_groups.emplace_back();
  described.group = "readers";
  described.state = "Reconciling";
  described.group_epoch = 8;
  described.assignment_epoch = 7;
  described.assignor = "uniform";
  auto& member = described.members.emplace_back();
  member.member_id = "m-1";
  member.member_epoch = 6;
  member.client_id = "client";
  member.client_host = "/192.0.2.7";
  member.subscribed_names = {"orders"};
  member.assignment.topics.push_back({some_id, "orders", {0}});
  member.target.topics.push_back({some_id, "orders", {0, 1}});
  groups.consumer_groups.push_back({.error = ErrorCode::group_id_not_found,
                                    .message = "Group none not found.",
                                    .group = "none",
                                    .state = {},
                                    .assignor = {},
                                    .members = {}});
  for (std::int16_t version = 0; version <= 1; ++version) {
    kafka::ConsumerGroupDescribeRequest request;
    request.group_ids = {"readers", "none"};
    request.include_authorized_operations = true;
    const auto answer = ask(version, request);
    ASSERT_THAT(answer.groups, SizeIs(2));
    const auto& group = answer.groups[0];
    EXPECT_EQ(group.group_state, "Reconciling");
    EXPECT_EQ(group.group_epoch, 8);
    EXPECT_EQ(group.assignment_epoch, 7);
    EXPECT_EQ(group.assignor_name, "uniform");
    EXPECT_NE(group.authorized_operations, INT32_MIN);
    ASSERT_THAT(group.members, SizeIs(1));
    EXPECT_EQ(group.members[0].member_epoch, 6);
    EXPECT_EQ(group.members[0].assignment.topic_partitions.at(0).topic_name, "orders");
    EXPECT_THAT(group.members[0].target_assignment.topic_partitions.at(0).partitions,
                ElementsAre(0, 1));
    EXPECT_EQ(group.members[0].member_type, version >= 1 ? 1 : -1);
    EXPECT_EQ(answer.groups[1].error_code, code(ErrorCode::group_id_not_found));
    EXPECT_EQ(answer.groups[1].error_message, "Group none not found.");
    EXPECT_EQ(answer.groups[1].authorized_operations, INT32_MIN);
  }
}

// Where it has the whole of a long name, say: the wire has room for 32767 bytes.
TEST_F(GroupHandlersTest, AMessageThatIsTooLongIsCut) {
  groups.consumer_groups.push_back({.error = ErrorCode::group_id_not_found,
                                    .message = std::string(32'760, 'g') + " not found.",
                                    .group = "g",
                                    .state = {},
                                    .assignor = {},
                                    .members = {}});
  kafka::ConsumerGroupDescribeRequest request;
  request.group_ids = {"g"};
  const auto answer = ask(1, request);
  ASSERT_THAT(answer.groups, SizeIs(1));
  EXPECT_EQ(answer.groups[0].error_code, code(ErrorCode::group_id_not_found));
  EXPECT_EQ(answer.groups[0].error_message->size(), 4096U);
}

}  // namespace
}  // namespace millrace::kafka_transport::testing
