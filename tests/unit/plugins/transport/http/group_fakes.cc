#include <cstdlib>
#include <utility>

#include "fakes.h"

namespace millrace::http_transport::testing {

Task<std::vector<ConsumerGroupDescribed>> FakeGroups::describe_consumer_groups(
    std::vector<std::string> groups) {
  std::vector<ConsumerGroupDescribed> found;
  for (const auto& name : groups) {
    const auto at = std::ranges::find(consumer, name, &ConsumerGroupDescribed::group);
    if (at != consumer.end()) {
      found.push_back(*at);
    } else {
      auto& missing = found.emplace_back();
      missing.error = ErrorCode::group_id_not_found;
      missing.group = name;
    }
  }
  co_return found;
}

Task<std::vector<GroupDescribed>> FakeGroups::describe(std::vector<std::string> groups) {
  std::vector<GroupDescribed> found;
  for (const auto& name : groups) {
    const auto at = std::ranges::find(classic, name, &GroupDescribed::group);
    if (at != classic.end()) {
      found.push_back(*at);
    } else {
      auto& missing = found.emplace_back();
      missing.error = ErrorCode::group_id_not_found;
      missing.group = name;
    }
  }
  co_return found;
}

Task<std::vector<GroupOffsets>> FakeGroups::offsets(std::vector<GroupOffsetsQuery> groups, bool) {
  std::vector<GroupOffsets> answers;
  for (const auto& query : groups) {
    answers.push_back(committed);
    answers.back().group = query.group;
  }
  co_return answers;
}

Task<GroupsListed> FakeGroups::list(GroupFilter) { co_return GroupsListed{error, listed}; }

Task<std::vector<GroupDeleted>> FakeGroups::remove(std::vector<std::string> groups) {
  std::vector<GroupDeleted> answers;
  for (const auto& group : groups) answers.push_back({group, error});
  removed.insert(removed.end(), groups.begin(), groups.end());
  co_return answers;
}

// What no path of this transport asks for.
Task<GroupCoordinator> FakeGroups::coordinator(std::string) { std::abort(); }
Call<JoinGroupAnswer> FakeGroups::join(const ClientInfo&, JoinGroupRequest) { std::abort(); }
Call<SyncGroupAnswer> FakeGroups::sync(SyncGroupRequest) { std::abort(); }
Task<ErrorCode> FakeGroups::heartbeat(GroupHeartbeat) { std::abort(); }
Task<LeaveGroupAnswer> FakeGroups::leave(LeaveGroupRequest) { std::abort(); }
Task<ConsumerHeartbeatAnswer> FakeGroups::heartbeat(const ClientInfo&, ConsumerHeartbeat) {
  std::abort();
}
Call<OffsetCommitAnswer> FakeGroups::commit(const ClientInfo&, OffsetCommitRequest) {
  std::abort();
}
Task<OffsetsDeleted> FakeGroups::delete_offsets(OffsetDeletion) { std::abort(); }

}  // namespace millrace::http_transport::testing
