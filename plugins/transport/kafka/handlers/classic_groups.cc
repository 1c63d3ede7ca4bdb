// The classic protocol: members join, wait for each other, learn what is theirs, and say that they
// live.
#include <string>
#include <utility>
#include <vector>

#include <millrace/groups.h>
#include <millrace/kafka/heartbeat.h>
#include <millrace/kafka/join_group.h>
#include <millrace/kafka/leave_group.h>
#include <millrace/kafka/sync_group.h>

#include "handlers.h"
#include "names.h"

namespace millrace::kafka_transport {
namespace {

/// Owns all that it holds: the frame is given back while the others are waited for.
Result<JoinGroupRequest> read_join(const Request& request) {
  MR_TRY(const auto asked, request.decode<kafka::JoinGroupRequest>());
  const auto features = join_group_features(request.head.version);
  JoinGroupRequest join;
  join.group = asked.group_id;
  join.session_timeout = milliseconds(asked.session_timeout_ms);
  join.rebalance_timeout =
      features.rebalance_timeout ? milliseconds(asked.rebalance_timeout_ms) : join.session_timeout;
  join.member_id = asked.member_id;
  join.instance_id = owned(asked.group_instance_id);
  join.protocol_type = asked.protocol_type;
  join.protocols.reserve(asked.protocols.size());
  for (const auto& protocol : asked.protocols) {
    join.protocols.push_back({std::string(protocol.name), protocol.metadata.detach()});
  }
  join.reason = asked.reason.value_or("");
  join.known_member_id_required = features.known_member_id;
  join.skip_assignment = features.skip_assignment;
  return join;
}

Result<Payload> write_joined(const Request& request, const JoinGroupAnswer& answer) {
  const auto features = join_group_features(request.head.version);
  kafka::JoinGroupResponse response;
  response.error_code = code_of(answer.error);
  response.generation_id = answer.generation;
  response.protocol_type = answer.protocol_type;
  response.protocol_name = answer.protocol;
  if (!answer.protocol && !features.null_protocol) response.protocol_name = "";
  response.leader = answer.leader;
  response.skip_assignment = answer.skip_assignment && features.skip_assignment;
  response.member_id = answer.member_id;
  response.members.reserve(answer.members.size());
  for (const auto& member : answer.members) {
    response.members.emplace_back(member.member_id, member.instance_id, member.metadata);
  }
  return request.encode(response);
}

Result<SyncGroupRequest> read_sync(const Request& request) {
  MR_TRY(const auto asked, request.decode<kafka::SyncGroupRequest>());
  SyncGroupRequest sync;
  sync.group = asked.group_id;
  sync.generation = asked.generation_id;
  sync.member_id = asked.member_id;
  sync.instance_id = owned(asked.group_instance_id);
  sync.protocol_type = owned(asked.protocol_type);
  sync.protocol = owned(asked.protocol_name);
  sync.assignments.reserve(asked.assignments.size());
  for (const auto& one : asked.assignments) {
    sync.assignments.push_back({std::string(one.member_id), one.assignment.detach()});
  }
  return sync;
}

Result<Payload> write_synced(const Request& request, const SyncGroupAnswer& answer) {
  kafka::SyncGroupResponse response;
  response.error_code = code_of(answer.error);
  response.protocol_type = answer.protocol_type;
  response.protocol_name = answer.protocol;
  response.assignment = answer.assignment;
  return request.encode(response);
}

Result<LeaveGroupRequest> read_leave(const Request& request) {
  MR_TRY(const auto asked, request.decode<kafka::LeaveGroupRequest>());
  LeaveGroupRequest leave{.group = std::string(asked.group_id), .members = {}};
  if (!leave_group_features(request.head.version).many_members) {
    leave.members.push_back({.member_id = std::string(asked.member_id), .reason = {}});
    return leave;
  }
  for (const auto& member : asked.members) {
    leave.members.push_back({std::string(member.member_id), owned(member.group_instance_id),
                             std::string(member.reason.value_or(""))});
  }
  return leave;
}

Result<Payload> write_left(const Request& request, const LeaveGroupAnswer& answer) {
  kafka::LeaveGroupResponse response;
  response.error_code = code_of(answer.error);
  if (leave_group_features(request.head.version).many_members) {
    for (const auto& member : answer.members) {
      response.members.emplace_back(member.member_id, member.instance_id, code_of(member.error));
    }
  } else if (answer.error == ErrorCode::none && !answer.members.empty()) {
    response.error_code = code_of(answer.members.front().error);
  }
  return request.encode(response);
}

}  // namespace

Task<Payload> handle_join_group(Request& request) {
  MR_CO_TRY(auto join, read_join(request));
  request.park();
  auto call = request.listener.groups->join(request.client, std::move(join));
  MR_CO_CHECK(co_await call.dispatched);
  request.dispatched();
  MR_CO_TRY(const auto answer, co_await call.done);
  co_return write_joined(request, answer);
}

Task<Payload> handle_sync_group(Request& request) {
  MR_CO_TRY(auto sync, read_sync(request));
  const bool complete = sync.protocol_type && sync.protocol;
  if (sync_group_features(request.head.version).protocol_required && !complete) {
    co_return write_synced(request, {.error = ErrorCode::inconsistent_group_protocol});
  }
  request.park();
  auto call = request.listener.groups->sync(std::move(sync));
  MR_CO_CHECK(co_await call.dispatched);
  request.dispatched();
  MR_CO_TRY(const auto answer, co_await call.done);
  co_return write_synced(request, answer);
}

Task<Payload> handle_heartbeat(Request& request) {
  MR_CO_TRY(const auto asked, request.decode<kafka::HeartbeatRequest>());
  GroupHeartbeat heartbeat{
      .group = std::string(asked.group_id),
      .generation = asked.generation_id,
      .member_id = std::string(asked.member_id),
      .instance_id = owned(asked.group_instance_id),
  };
  auto beating = request.listener.groups->heartbeat(std::move(heartbeat));
  MR_CO_TRY(const auto error, co_await std::move(beating));
  kafka::HeartbeatResponse response;
  response.error_code = code_of(error);
  co_return request.encode(response);
}

Task<Payload> handle_leave_group(Request& request) {
  MR_CO_TRY(auto leave, read_leave(request));
  auto leaving = request.listener.groups->leave(std::move(leave));
  MR_CO_TRY(const auto answer, co_await std::move(leaving));
  co_return write_left(request, answer);
}

}  // namespace millrace::kafka_transport
