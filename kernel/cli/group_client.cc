#include "kernel/cli/group_client.h"

#include <algorithm>
#include <utility>

#include <millrace/kafka/consumer_assignment.h>
#include <millrace/kafka/consumer_group_describe.h>
#include <millrace/kafka/delete_groups.h>
#include <millrace/kafka/describe_groups.h>
#include <millrace/kafka/find_coordinator.h>
#include <millrace/kafka/list_groups.h>
#include <millrace/kafka/list_offsets.h>
#include <millrace/kafka/offset_commit.h>
#include <millrace/kafka/offset_fetch.h>
#include <millrace/utf8.h>

#include "kernel/cli/output.h"
#include "kernel/config/text.h"

namespace millrace::kernel::cli {

namespace {

using kafka::ApiKey;

/// The first request for a group may make the topic that groups are kept in.
constexpr int coordinator_attempts = 50;
constexpr Duration coordinator_pause = std::chrono::milliseconds(200);

bool is_starting(ErrorCode code) {
  return code == ErrorCode::coordinator_not_available ||
         code == ErrorCode::coordinator_load_in_progress || code == ErrorCode::not_coordinator;
}

std::string named(const std::string& group) { return "group " + in_quotes(group); }

std::string text_of(const std::optional<std::string_view>& text) {
  return std::string(text.value_or(""));
}

template <class Answer>
Result<GroupView> view_of(const Answer& group) {
  if (const ErrorCode code{group.error_code}; code != ErrorCode::none) {
    return error_of(code, named(std::string(group.group_id)));
  }
  GroupView view;
  view.group = group.group_id;
  view.state = group.group_state;
  return view;
}

ErrorCode first_error(const kafka::OffsetCommitResponse& answer) {
  for (const auto& topic : answer.topics) {
    for (const auto& partition : topic.partitions) {
      if (partition.error_code != 0) return ErrorCode{partition.error_code};
    }
  }
  return ErrorCode::none;
}

TopicPartition first_failed(const kafka::OffsetCommitResponse& answer) {
  for (const auto& topic : answer.topics) {
    for (const auto& partition : topic.partitions) {
      if (partition.error_code != 0) return {std::string(topic.name), partition.partition_index};
    }
  }
  return {};
}

}  // namespace

Task<std::unique_ptr<GroupClient>> GroupClient::connect(Network& network, std::string bootstrap) {
  MR_CO_TRY(auto cluster, co_await ClusterClient::connect(network, std::move(bootstrap)));
  co_return std::unique_ptr<GroupClient>(new GroupClient(std::move(cluster)));
}

Task<std::int32_t> GroupClient::coordinator_id(std::string group) {
  MR_CO_TRY(const auto version, cluster_->any().version_of(ApiKey::find_coordinator));
  for (int attempt = 1;; ++attempt) {
    kafka::FindCoordinatorRequest request;
    const bool many = version >= 4;
    if (many) request.coordinator_keys.push_back(group);
    if (!many) request.key = group;
    MR_CO_TRY(const auto answer, co_await cluster_->any().call(std::move(request)));
    if (many && answer.coordinators.size() != 1) {
      co_return Error{Errc::corrupt, "the broker answered for another group"};
    }
    const ErrorCode code{many ? answer.coordinators[0].error_code : answer.error_code};
    if (code == ErrorCode::none) co_return many ? answer.coordinators[0].node_id : answer.node_id;
    if (!is_starting(code) || attempt == coordinator_attempts) {
      co_return error_of(code, "the coordinator of " + named(group));
    }
    MR_CO_CHECK(co_await sleep(coordinator_pause));
  }
}

Task<kafka::Client*> GroupClient::coordinator(std::string group) {
  for (int attempt = 1;; ++attempt) {
    MR_CO_TRY(const auto id, co_await coordinator_id(group));
    std::vector<std::string> no_topics;
    MR_CO_TRY(const auto known, co_await cluster_->metadata(std::move(no_topics)));
    MR_CO_TRY(auto* at, co_await cluster_->broker(id));
    // Who has become it a moment ago may not know it yet, or be reading what is committed.
    kafka::DescribeGroupsRequest request;
    request.groups.push_back(group);
    MR_CO_TRY(const auto answer, co_await at->call(std::move(request)));
    const auto code = answer.groups.empty() ? std::int16_t{0} : answer.groups.front().error_code;
    if (!is_starting(ErrorCode{code}) || attempt == coordinator_attempts) co_return at;
    MR_CO_CHECK(co_await sleep(coordinator_pause));
  }
}

template <class Request, class CodeOf>
Task<typename Request::Response> GroupClient::ask_coordinator(std::string group, Request request,
                                                              CodeOf code_of) {
  for (int attempt = 1;; ++attempt) {
    MR_CO_TRY(auto* at, co_await coordinator(group));
    MR_CO_TRY(auto answer, co_await at->call(request));
    if (!is_starting(code_of(answer)) || attempt == coordinator_attempts) {
      co_return std::move(answer);
    }
    MR_CO_CHECK(co_await sleep(coordinator_pause));
  }
}

Task<std::vector<GroupLine>> GroupClient::list() {
  std::vector<std::string> no_topics;
  MR_CO_TRY(const auto known, co_await cluster_->metadata(std::move(no_topics)));
  std::vector<GroupLine> groups;
  for (const auto& broker : known.brokers) {
    MR_CO_TRY(auto* at, co_await cluster_->broker(broker.id));
    auto answered = co_await at->call(kafka::ListGroupsRequest{});
    for (int attempt = 1;
         answered && is_starting(ErrorCode{answered->error_code}) && attempt < coordinator_attempts;
         ++attempt) {
      MR_CO_CHECK(co_await sleep(coordinator_pause));
      answered = co_await at->call(kafka::ListGroupsRequest{});
    }
    MR_CO_TRY(const auto answer, std::move(answered));
    if (const ErrorCode code{answer.error_code}; code != ErrorCode::none) {
      co_return error_of(code, "the groups of broker " + std::to_string(broker.id));
    }
    for (const auto& group : answer.groups) {
      groups.push_back({std::string(group.group_id), std::string(group.group_state),
                        std::string(group.group_type), std::string(group.protocol_type),
                        broker.id});
    }
  }
  std::ranges::sort(groups, {}, &GroupLine::group);
  co_return groups;
}

Task<GroupView> GroupClient::describe(std::string group) {
  auto described = co_await find(group);
  if (described || described.error().code != Errc::not_found) co_return std::move(described);
  const auto all = co_await list();
  std::vector<std::string> known;
  if (all) {
    for (const auto& one : *all) known.push_back(one.group);
  }
  const auto hint = nearest_hint(group, known);
  co_return Error{Errc::not_found, described.error().detail + shown(hint, 1024)};
}

Task<GroupView> GroupClient::find(std::string group) {
  MR_CO_TRY(const auto id, co_await coordinator_id(group));
  MR_CO_TRY(auto* at, co_await coordinator(group));
  std::optional<GroupView> view;
  if (at->version_of(ApiKey::consumer_group_describe)) {
    MR_CO_TRY(view, co_await describe_consumer_group(*at, group));
  }
  if (!view) {
    MR_CO_TRY(view, co_await describe_classic_group(*at, group));
  }
  view->coordinator = id;
  std::ranges::sort(view->members, {}, &GroupMember::member_id);
  co_return *std::move(view);
}

Task<std::optional<GroupView>> GroupClient::describe_consumer_group(kafka::Client& at,
                                                                    std::string group) {
  kafka::ConsumerGroupDescribeRequest request;
  request.group_ids.push_back(group);
  MR_CO_TRY(const auto answer, co_await at.call(std::move(request)));
  if (answer.groups.size() != 1) co_return Error{Errc::corrupt, "the broker answered no group"};
  const auto& described = answer.groups.front();
  if (ErrorCode{described.error_code} == ErrorCode::group_id_not_found) co_return std::nullopt;
  MR_CO_TRY(auto view, view_of(described));
  view.type = "consumer";
  view.assignor = described.assignor_name;
  for (const auto& one : described.members) {
    auto& member = view.members.emplace_back();
    member.member_id = one.member_id;
    member.instance_id = text_of(one.instance_id);
    member.client_id = one.client_id;
    member.host = one.client_host;
    for (const auto& topic : one.assignment.topic_partitions) {
      for (const auto number : topic.partitions) {
        member.partitions.push_back({std::string(topic.topic_name), number});
      }
    }
    std::ranges::sort(member.partitions);
  }
  co_return view;
}

Task<GroupView> GroupClient::describe_classic_group(kafka::Client& at, std::string group) {
  kafka::DescribeGroupsRequest request;
  request.groups.push_back(group);
  MR_CO_TRY(const auto answer, co_await at.call(std::move(request)));
  if (answer.groups.size() != 1) co_return Error{Errc::corrupt, "the broker answered no group"};
  const auto& described = answer.groups.front();
  MR_CO_TRY(auto view, view_of(described));
  // Older brokers tell of a group that is not there as of a dead one.
  if (view.state == "Dead") co_return error_of(ErrorCode::group_id_not_found, named(group));
  view.type = "classic";
  view.assignor = described.protocol_data;
  for (const auto& one : described.members) {
    auto& member = view.members.emplace_back();
    member.member_id = one.member_id;
    member.instance_id = text_of(one.group_instance_id);
    member.client_id = one.client_id;
    member.host = one.client_host;
    if (described.protocol_type != "consumer") continue;
    auto partitions = kafka::read_consumer_assignment(one.member_assignment);
    if (partitions) member.partitions = *std::move(partitions);
  }
  co_return view;
}

Task<std::map<Uuid, std::string>> GroupClient::topic_names() {
  MR_CO_TRY(const auto known, co_await cluster_->metadata(std::nullopt));
  std::map<Uuid, std::string> names;
  for (const auto& topic : known.topics) names.emplace(topic.topic.id, topic.topic.name);
  co_return names;
}

Task<CommittedOffsets> GroupClient::committed(std::string group) {
  MR_CO_TRY(auto* at, co_await coordinator(group));
  MR_CO_TRY(const auto version, at->version_of(ApiKey::offset_fetch));
  const bool many = version >= 8;
  kafka::OffsetFetchRequest request;
  if (many) {
    auto& asked = request.groups.emplace_back();
    asked.group_id = group;
    asked.topics.reset();
  } else {
    request.group_id = group;
    request.topics.reset();
  }
  const auto code_of = [many](const kafka::OffsetFetchResponse& answer) {
    if (!many) return ErrorCode{answer.error_code};
    return ErrorCode{answer.groups.empty() ? std::int16_t{0} : answer.groups[0].error_code};
  };
  auto asking = ask_coordinator(group, std::move(request), code_of);
  MR_CO_TRY(const auto answer, co_await std::move(asking));
  if (many && answer.groups.size() != 1) {
    co_return Error{Errc::corrupt, "the broker answered for another group"};
  }
  const auto code = code_of(answer);
  if (code != ErrorCode::none) co_return error_of(code, named(group));

  MR_CO_TRY(const auto names, co_await topic_names());
  CommittedOffsets offsets;
  const auto add = [&](std::string topic, const auto& partitions) {
    for (const auto& partition : partitions) {
      if (partition.committed_offset < 0) continue;
      offsets[{topic, partition.partition_index}] = Offset{partition.committed_offset};
    }
  };
  for (const auto& topic : answer.topics) add(std::string(topic.name), topic.partitions);
  if (!many) co_return offsets;
  for (const auto& topic : answer.groups[0].topics) {
    const auto found = names.find(topic.topic_id);
    if (!topic.name.empty()) {
      add(std::string(topic.name), topic.partitions);
    } else if (found != names.end()) {
      add(found->second, topic.partitions);
    }
  }
  co_return offsets;
}

Task<LogOffsets> GroupClient::offsets_at(std::vector<TopicPartition> partitions,
                                         std::int64_t timestamp) {
  std::ranges::sort(partitions);
  std::vector<std::string> topics;
  for (const auto& one : partitions) {
    if (topics.empty() || topics.back() != one.topic) topics.push_back(one.topic);
  }
  LogOffsets offsets;
  if (topics.empty()) co_return offsets;
  MR_CO_TRY(const auto known, co_await cluster_->metadata(std::move(topics)));
  std::map<std::int32_t, std::vector<TopicPartition>> by_leader;
  for (const auto& topic : known.topics) {
    for (const auto& info : topic.partitions) {
      const TopicPartition partition{topic.topic.name, info.partition};
      if (info.leader < 0 || !std::ranges::binary_search(partitions, partition)) continue;
      by_leader[info.leader].push_back(partition);
    }
  }
  for (const auto& [leader, led] : by_leader) {
    kafka::ListOffsetsRequest request;
    request.replica_id = -1;
    for (const auto& partition : led) {
      if (request.topics.empty() || request.topics.back().name != partition.topic) {
        request.topics.emplace_back().name = partition.topic;
      }
      auto& query = request.topics.back().partitions.emplace_back();
      query.partition_index = partition.partition;
      query.timestamp = timestamp;
    }
    MR_CO_TRY(auto* at, co_await cluster_->broker(leader));
    MR_CO_TRY(const auto answer, co_await at->call(std::move(request)));
    for (const auto& topic : answer.topics) {
      for (const auto& found : topic.partitions) {
        if (found.error_code != 0 || found.offset < 0) continue;
        offsets[{std::string(topic.name), found.partition_index}] = Offset{found.offset};
      }
    }
  }
  co_return offsets;
}

Task<> GroupClient::commit(std::string group, CommittedOffsets offsets) {
  MR_CO_TRY(const auto names, co_await topic_names());
  std::map<std::string_view, Uuid> ids;
  for (const auto& [id, name] : names) ids.emplace(name, id);
  kafka::OffsetCommitRequest request;
  request.group_id = group;
  for (const auto& [partition, offset] : offsets) {
    if (request.topics.empty() || request.topics.back().name != partition.topic) {
      auto& topic = request.topics.emplace_back();
      topic.name = partition.topic;
      topic.topic_id = ids[partition.topic];
    }
    auto& to = request.topics.back().partitions.emplace_back();
    to.partition_index = partition.partition;
    to.committed_offset = offset.value;
    to.committed_metadata = "";
  }
  auto asking = ask_coordinator(group, std::move(request), first_error);
  MR_CO_TRY(const auto answer, co_await std::move(asking));
  if (const auto code = first_error(answer); code != ErrorCode::none) {
    co_return error_of(code,
                       "committing " + to_string(first_failed(answer)) + " for " + named(group));
  }
  co_return {};
}

Task<> GroupClient::remove(std::string group) {
  kafka::DeleteGroupsRequest request;
  request.groups_names.push_back(group);
  const auto code_of = [](const kafka::DeleteGroupsResponse& answer) {
    return ErrorCode{answer.results.empty() ? std::int16_t{0} : answer.results[0].error_code};
  };
  auto asking = ask_coordinator(group, std::move(request), code_of);
  MR_CO_TRY(const auto answer, co_await std::move(asking));
  if (answer.results.size() != 1) co_return Error{Errc::corrupt, "the broker answered no group"};
  if (const ErrorCode code{answer.results[0].error_code}; code != ErrorCode::none) {
    co_return error_of(code, named(group));
  }
  co_return {};
}

}  // namespace millrace::kernel::cli
