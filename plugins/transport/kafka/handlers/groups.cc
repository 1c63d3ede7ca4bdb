// Groups as a whole: listed, described, deleted.
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <millrace/groups.h>
#include <millrace/kafka/delete_groups.h>
#include <millrace/kafka/describe_groups.h>
#include <millrace/kafka/list_groups.h>

#include "authorized_operations.h"
#include "handlers.h"
#include "names.h"

namespace millrace::kafka_transport {
namespace {

std::vector<std::string> owned(const std::vector<std::string_view>& texts) {
  return {texts.begin(), texts.end()};
}

void write_group(kafka::DescribeGroupsResponse& response, const GroupDescribed& described,
                 const DescribeGroupsFeatures& features, bool operations) {
  const bool gone = described.error == ErrorCode::group_id_not_found && !features.not_found;
  const auto error = gone ? ErrorCode::none : described.error;
  auto& group = response.groups.emplace_back();
  group.error_code = code_of(error);
  if (features.not_found) group.error_message = message_of(described.message);
  group.group_id = described.group;
  group.group_state = described.state;
  group.protocol_type = described.protocol_type;
  group.protocol_data = described.protocol;
  for (const auto& member : described.members) {
    group.members.emplace_back(member.member_id, member.instance_id, member.client_id,
                               member.client_host, member.metadata, member.assignment);
  }
  if (operations && error == ErrorCode::none) group.authorized_operations = group_operations;
}

}  // namespace

Task<Payload> handle_list_groups(Request& request) {
  MR_CO_TRY(const auto asked, request.decode<kafka::ListGroupsRequest>());
  GroupFilter filter{.states = owned(asked.states_filter), .types = owned(asked.types_filter)};
  auto listing = request.listener.groups->list(std::move(filter));
  MR_CO_TRY(const auto listed, co_await std::move(listing));
  kafka::ListGroupsResponse response;
  response.error_code = code_of(listed.error);
  response.groups.reserve(listed.groups.size());
  for (const auto& group : listed.groups) {
    response.groups.emplace_back(group.group, group.protocol_type, group.state, group.type);
  }
  co_return request.encode(response);
}

Task<Payload> handle_describe_groups(Request& request) {
  MR_CO_TRY(const auto asked, request.decode<kafka::DescribeGroupsRequest>());
  const bool operations = asked.include_authorized_operations;
  const auto features = describe_groups_features(request.head.version);
  auto describing = request.listener.groups->describe(owned(asked.groups));
  MR_CO_TRY(const auto described, co_await std::move(describing));
  kafka::DescribeGroupsResponse response;
  for (const auto& group : described) write_group(response, group, features, operations);
  co_return request.encode(response);
}

Task<Payload> handle_delete_groups(Request& request) {
  MR_CO_TRY(const auto asked, request.decode<kafka::DeleteGroupsRequest>());
  auto deleting = request.listener.groups->remove(owned(asked.groups_names));
  MR_CO_TRY(const auto deleted, co_await std::move(deleting));
  kafka::DeleteGroupsResponse response;
  for (const auto& group : deleted) {
    response.results.emplace_back(group.group, code_of(group.error));
  }
  co_return request.encode(response);
}

}  // namespace millrace::kafka_transport
