// How far groups have come: committed, asked for, forgotten.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <millrace/groups.h>
#include <millrace/kafka/offset_commit.h>
#include <millrace/kafka/offset_delete.h>
#include <millrace/kafka/offset_fetch.h>

#include "handlers.h"
#include "names.h"

namespace millrace::kafka_transport {
namespace {

Result<OffsetCommitRequest> read_commit(const Request& request) {
  MR_TRY(const auto asked, request.decode<kafka::OffsetCommitRequest>());
  OffsetCommitRequest commit;
  commit.group = asked.group_id;
  commit.generation = asked.generation_id_or_member_epoch;
  commit.member_id = asked.member_id;
  commit.instance_id = owned(asked.group_instance_id);
  if (asked.retention_time_ms >= 0) {
    // A Duration has room for less than an int64 of milliseconds.
    constexpr std::chrono::milliseconds longest = std::chrono::hours(24 * 365 * 100);
    commit.retention = std::min(std::chrono::milliseconds(asked.retention_time_ms), longest);
  }
  commit.fenced_by_member_epoch = offset_commit_features(request.head.version).stale_member_epoch;
  commit.topics.reserve(asked.topics.size());
  for (const auto& topic : asked.topics) {
    auto& to = commit.topics.emplace_back(topic_name(topic.name, topic.topic_id));
    to.partitions.reserve(topic.partitions.size());
    for (const auto& partition : topic.partitions) {
      to.partitions.push_back({.partition = partition.partition_index,
                               .offset = {partition.committed_offset},
                               .leader_epoch = {partition.committed_leader_epoch},
                               .metadata = owned(partition.committed_metadata),
                               .commit_timestamp = {partition.commit_timestamp}});
    }
  }
  return commit;
}

Result<Payload> write_committed(const Request& request, const OffsetCommitAnswer& answer) {
  kafka::OffsetCommitResponse response;
  response.topics.reserve(answer.size());
  for (const auto& topic : answer) {
    auto& to = response.topics.emplace_back(topic.topic.name, topic.topic.id);
    to.partitions.reserve(topic.partitions.size());
    for (const auto& partition : topic.partitions) {
      to.partitions.emplace_back(partition.partition, code_of(partition.error));
    }
  }
  return request.encode(response);
}

struct AskedOffsets {
  std::vector<GroupOffsetsQuery> groups;
  bool require_stable = false;
};

AskedOffsets read_one_group(const kafka::OffsetFetchRequest& asked) {
  GroupOffsetsQuery query;
  query.group = asked.group_id;
  if (asked.topics) {
    auto& topics = query.topics.emplace();
    for (const auto& topic : *asked.topics) {
      topics.push_back({topic_name(topic.name, {}), topic.partition_indexes});
    }
  }
  return {{std::move(query)}, asked.require_stable};
}

Result<AskedOffsets> read_fetch(const Request& request) {
  MR_TRY(const auto asked, request.decode<kafka::OffsetFetchRequest>());
  if (!offset_fetch_features(request.head.version).many_groups) return read_one_group(asked);
  AskedOffsets offsets{.groups = {}, .require_stable = asked.require_stable};
  offsets.groups.reserve(asked.groups.size());
  for (const auto& group : asked.groups) {
    auto& query = offsets.groups.emplace_back();
    query.group = group.group_id;
    query.member_id = owned(group.member_id);
    query.member_epoch = group.member_epoch;
    if (!group.topics) continue;
    auto& topics = query.topics.emplace();
    for (const auto& topic : *group.topics) {
      topics.push_back({topic_name(topic.name, topic.topic_id), topic.partition_indexes});
    }
  }
  return offsets;
}

template <class Partition>
void write_partition(std::vector<Partition>& partitions, const GroupOffsets::Partition& offset) {
  auto& to = partitions.emplace_back();
  to.partition_index = offset.partition;
  to.committed_offset = offset.offset.value;
  to.committed_leader_epoch = offset.leader_epoch.value;
  to.metadata = offset.metadata;
  to.error_code = code_of(offset.error);
}

/// What a group's error becomes where an answer has room for errors of partitions alone.
GroupOffsets error_by_partition(const GroupOffsetsQuery& asked, ErrorCode error) {
  GroupOffsets offsets;
  if (!asked.topics) return offsets;
  for (const auto& topic : *asked.topics) {
    auto& to = offsets.topics.emplace_back(topic.topic);
    for (const auto number : topic.partitions) {
      to.partitions.push_back({.partition = number,
                               .error = error,
                               .offset = {-1},
                               .leader_epoch = {-1},
                               .metadata = {}});
    }
  }
  return offsets;
}

Result<Payload> write_one_group(const Request& request, const GroupOffsets& group) {
  kafka::OffsetFetchResponse response;
  response.error_code = code_of(group.error);
  response.topics.reserve(group.topics.size());
  for (const auto& topic : group.topics) {
    auto& to = response.topics.emplace_back(topic.topic.name);
    for (const auto& partition : topic.partitions) write_partition(to.partitions, partition);
  }
  return request.encode(response);
}

Result<Payload> write_groups(const Request& request, const std::vector<GroupOffsets>& groups) {
  kafka::OffsetFetchResponse response;
  response.groups.reserve(groups.size());
  for (const auto& group : groups) {
    auto& to = response.groups.emplace_back();
    to.group_id = group.group;
    to.error_code = code_of(group.error);
    for (const auto& topic : group.topics) {
      auto& of_topic = to.topics.emplace_back(topic.topic.name, topic.topic.id);
      for (const auto& partition : topic.partitions) {
        write_partition(of_topic.partitions, partition);
      }
    }
  }
  return request.encode(response);
}

}  // namespace

Task<Payload> handle_offset_commit(Request& request) {
  MR_CO_TRY(auto commit, read_commit(request));
  request.park();
  auto call = request.listener.groups->commit(request.client, std::move(commit));
  MR_CO_CHECK(co_await call.dispatched);
  request.dispatched();
  MR_CO_TRY(const auto answer, co_await call.done);
  co_return write_committed(request, answer);
}

Task<Payload> handle_offset_fetch(Request& request) {
  MR_CO_TRY(auto asked, read_fetch(request));
  const auto features = offset_fetch_features(request.head.version);
  std::optional<GroupOffsetsQuery> only;
  if (!features.group_error) only = asked.groups.front();
  auto asking = request.listener.groups->offsets(std::move(asked.groups), asked.require_stable);
  MR_CO_TRY(auto groups, co_await std::move(asking));
  if (features.many_groups) co_return write_groups(request, groups);
  if (groups.empty()) co_return Error{Errc::internal, "the groups' service answered no group"};
  auto& group = groups.front();
  if (only && group.error != ErrorCode::none) group = error_by_partition(*only, group.error);
  co_return write_one_group(request, group);
}

Task<Payload> handle_offset_delete(Request& request) {
  MR_CO_TRY(const auto asked, request.decode<kafka::OffsetDeleteRequest>());
  OffsetDeletion deletion{.group = std::string(asked.group_id), .topics = {}};
  for (const auto& topic : asked.topics) {
    auto& to = deletion.topics.emplace_back(std::string(topic.name));
    for (const auto& partition : topic.partitions) {
      to.partitions.push_back(partition.partition_index);
    }
  }
  auto deleting = request.listener.groups->delete_offsets(std::move(deletion));
  MR_CO_TRY(const auto deleted, co_await std::move(deleting));
  kafka::OffsetDeleteResponse response;
  response.error_code = code_of(deleted.error);
  for (const auto& topic : deleted.topics) {
    auto& to = response.topics.emplace_back(topic.topic);
    for (const auto& partition : topic.partitions) {
      to.partitions.emplace_back(partition.partition, code_of(partition.error));
    }
  }
  co_return request.encode(response);
}

}  // namespace millrace::kafka_transport
