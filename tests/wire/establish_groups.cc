#include <chrono>
#include <string>
#include <string_view>

#include <millrace/error_code.h>
#include <millrace/kafka/consumer_group_heartbeat.h>
#include <millrace/kafka/find_coordinator.h>
#include <millrace/kafka/join_group.h>
#include <millrace/kafka/leave_group.h>
#include <millrace/kafka/offset_commit.h>
#include <millrace/kafka/offset_fetch.h>
#include <millrace/kafka/sync_group.h>

#include "first_state.h"

namespace millrace::wire {

namespace {

using namespace std::string_view_literals;

constexpr std::int16_t find_version = 3;
constexpr std::int16_t fetch_version = 5;
constexpr std::int16_t join_version = 3;  // the last that lets a member in without an id
constexpr std::int16_t sync_version = 2;
constexpr std::int16_t leave_version = 2;
constexpr std::int16_t commit_version = 7;
constexpr std::int16_t heartbeat_version = 0;
constexpr std::int32_t timeout_ms = 10'000;
constexpr std::chrono::seconds start_max{10};

Result<> check(std::int16_t code, const std::string& group, std::string_view what) {
  if (code == 0) return {};
  return Error{Errc::unsupported, "group " + group + ": " + std::string(what) + ": " +
                                      std::string(name_of(ErrorCode{code}))};
}

bool is_starting(std::int16_t code) {
  const ErrorCode error{code};
  return error == ErrorCode::coordinator_not_available ||
         error == ErrorCode::coordinator_load_in_progress || error == ErrorCode::not_coordinator;
}

/// The first one makes the topic that groups are kept in.
Result<> wait_for_coordinator(const std::string& group, Link& link) {
  kafka::FindCoordinatorRequest find;
  find.key = group;
  kafka::OffsetFetchRequest fetch;
  fetch.group_id = group;
  const auto deadline = std::chrono::steady_clock::now() + start_max;
  while (true) {
    MR_TRY(const auto found, link.ask(find, find_version));
    auto code = found.error_code;
    if (code == 0) {
      MR_TRY(const auto fetched, link.ask(fetch, fetch_version));
      code = fetched.error_code;
    }
    if (!is_starting(code)) return check(code, group, "asking its coordinator");
    if (std::chrono::steady_clock::now() > deadline) return check(code, group, "no coordinator");
  }
}

Result<> visit_classic(const std::string& group, const std::string& protocol_type, Link& link) {
  kafka::JoinGroupRequest join;
  join.group_id = group;
  join.session_timeout_ms = timeout_ms;
  join.rebalance_timeout_ms = timeout_ms;
  join.protocol_type = protocol_type;
  // A subscription to nothing: version, topics, user data.
  join.protocols.push_back({"range", Buffer::copy_of("\0\0\0\0\0\0\xff\xff\xff\xff"sv)});
  MR_TRY(const auto joined, link.ask(join, join_version));
  MR_CHECK(check(joined.error_code, group, "joining"));
  kafka::SyncGroupRequest sync;
  sync.group_id = group;
  sync.generation_id = joined.generation_id;
  sync.member_id = joined.member_id;
  sync.assignments.push_back({joined.member_id, Buffer()});
  MR_TRY(const auto synced, link.ask(sync, sync_version));
  MR_CHECK(check(synced.error_code, group, "synchronising"));
  kafka::LeaveGroupRequest leave;
  leave.group_id = group;
  leave.member_id = joined.member_id;
  MR_TRY(const auto left, link.ask(leave, leave_version));
  return check(left.error_code, group, "leaving");
}

Result<> visit_consumer(const std::string& group, Link& link) {
  kafka::ConsumerGroupHeartbeatRequest heartbeat;
  heartbeat.group_id = group;
  heartbeat.member_id = "was-here";
  heartbeat.rebalance_timeout_ms = timeout_ms;
  heartbeat.subscribed_topic_names.emplace().emplace_back("was-here");
  heartbeat.topic_partitions.emplace();
  MR_TRY(const auto joined, link.ask(heartbeat, heartbeat_version));
  MR_CHECK(check(joined.error_code, group, "joining"));
  heartbeat.member_epoch = -1;
  MR_TRY(const auto left, link.ask(heartbeat, heartbeat_version));
  return check(left.error_code, group, "leaving");
}

Result<> commit(const std::string& group, const GroupState& state, Link& link) {
  if (state.committed.empty()) return {};
  kafka::OffsetCommitRequest request;
  request.group_id = group;
  for (const auto& [partition, committed] : state.committed) {
    if (request.topics.empty() || request.topics.back().name != partition.topic) {
      request.topics.emplace_back().name = partition.topic;
    }
    auto& to = request.topics.back().partitions.emplace_back();
    to.partition_index = partition.partition;
    to.committed_offset = committed.offset;
    to.committed_leader_epoch = committed.leader_epoch;
    to.committed_metadata = committed.metadata;
  }
  MR_TRY(const auto answer, link.ask(request, commit_version));
  for (const auto& topic : answer.topics) {
    for (const auto& partition : topic.partitions) {
      MR_CHECK(check(partition.error_code, group, "committing"));
    }
  }
  return {};
}

}  // namespace

Result<> establish_groups(const FirstState& state, Link& link) {
  for (const auto& name : state.named_groups) MR_CHECK(wait_for_coordinator(name, link));
  for (const auto& [name, group] : state.groups) {
    MR_CHECK(wait_for_coordinator(name, link));
    if (group.type == "consumer") MR_CHECK(visit_consumer(name, link));
    if (group.type == "classic" && !group.protocol_type.empty()) {
      MR_CHECK(visit_classic(name, group.protocol_type, link));
    }
    MR_CHECK(commit(name, group, link));
  }
  return {};
}

}  // namespace millrace::wire
