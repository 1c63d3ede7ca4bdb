#include "group_fakes.h"

#include <utility>

namespace millrace::kafka_transport::testing {
namespace {

template <class Request, class Answer>
Call<Answer> call(std::deque<FakeGroups::Held<Request, Answer>>& calls, Request request, bool held,
                  Answer answer) {
  auto [dispatched, is_dispatched] = make_pending<>();
  auto [done, is_done] = make_pending<Answer>();
  if (!held) {
    dispatched.resolve();
    done.resolve(std::move(answer));
  }
  calls.push_back({std::move(request), std::move(dispatched), std::move(done)});
  return {std::move(is_dispatched), std::move(is_done)};
}

}  // namespace

Task<GroupCoordinator> FakeGroups::coordinator(std::string group) {
  coordinators_asked.push_back(std::move(group));
  co_return coordinator_answer;
}

Call<JoinGroupAnswer> FakeGroups::join(const ClientInfo& client, JoinGroupRequest request) {
  clients.push_back(client.client_id);
  return call(joins, std::move(request), hold, join_answer);
}

Call<SyncGroupAnswer> FakeGroups::sync(SyncGroupRequest request) {
  return call(syncs, std::move(request), hold, sync_answer);
}

Task<ErrorCode> FakeGroups::heartbeat(GroupHeartbeat request) {
  heartbeats.push_back(std::move(request));
  co_return heartbeat_answer;
}

Task<LeaveGroupAnswer> FakeGroups::leave(LeaveGroupRequest request) {
  leaves.push_back(std::move(request));
  co_return leave_answer;
}

Task<ConsumerHeartbeatAnswer> FakeGroups::heartbeat(const ClientInfo& client,
                                                    ConsumerHeartbeat request) {
  clients.push_back(client.client_id);
  consumer_heartbeats.push_back(std::move(request));
  co_return consumer_heartbeat_answer;
}

Task<std::vector<ConsumerGroupDescribed>> FakeGroups::describe_consumer_groups(
    std::vector<std::string> groups) {
  described_asked.push_back(std::move(groups));
  co_return consumer_groups;
}

Call<OffsetCommitAnswer> FakeGroups::commit(const ClientInfo& client, OffsetCommitRequest request) {
  clients.push_back(client.client_id);
  OffsetCommitAnswer answer;
  for (const auto& topic : request.topics) {
    auto& to = answer.emplace_back(topic.topic);
    for (const auto& partition : topic.partitions) {
      to.partitions.push_back({partition.partition, commit_error});
    }
  }
  return call(commits, std::move(request), hold, std::move(answer));
}

Task<std::vector<GroupOffsets>> FakeGroups::offsets(std::vector<GroupOffsetsQuery> groups,
                                                    bool require_stable) {
  offsets_asked.push_back(groups);
  stable_asked.push_back(require_stable);
  std::vector<GroupOffsets> answer;
  for (const auto& group : groups) {
    auto& to = answer.emplace_back();
    to.group = group.group;
    to.error = offsets_error;
    if (offsets_error != ErrorCode::none) continue;
    if (!group.topics) {
      to.topics = all_offsets;
      continue;
    }
    for (const auto& topic : *group.topics) {
      auto& of_topic = to.topics.emplace_back(topic.topic);
      for (const auto number : topic.partitions) {
        of_topic.partitions.push_back({.partition = number,
                                       .error = ErrorCode::none,
                                       .offset = {100 + number},
                                       .leader_epoch = {3},
                                       .metadata = "kept"});
      }
    }
  }
  co_return answer;
}

Task<OffsetsDeleted> FakeGroups::delete_offsets(OffsetDeletion request) {
  deletions.push_back(std::move(request));
  co_return offsets_deleted;
}

Task<GroupsListed> FakeGroups::list(GroupFilter filter) {
  filters.push_back(std::move(filter));
  co_return listed;
}

Task<std::vector<GroupDescribed>> FakeGroups::describe(std::vector<std::string> groups) {
  described_asked.push_back(std::move(groups));
  co_return described;
}

Task<std::vector<GroupDeleted>> FakeGroups::remove(std::vector<std::string> groups) {
  std::vector<GroupDeleted> answer;
  for (const auto& group : groups) answer.push_back({group, remove_error});
  removed.push_back(std::move(groups));
  co_return answer;
}

}  // namespace millrace::kafka_transport::testing
