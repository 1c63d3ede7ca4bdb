// A groups' service that remembers what it is asked and answers what the test has laid ready.
#pragma once

#include <deque>
#include <string>
#include <vector>

#include <millrace/groups.h>

#include "fakes.h"

namespace millrace::kafka_transport::testing {

class FakeGroups final : public GroupService {
 public:
  template <class Request, class Answer>
  struct Held {
    Request request;
    Resolver<> dispatched;
    Resolver<Answer> done;
  };

  Task<GroupCoordinator> coordinator(std::string group) override;
  Call<JoinGroupAnswer> join(const ClientInfo& client, JoinGroupRequest request) override;
  Call<SyncGroupAnswer> sync(SyncGroupRequest request) override;
  Task<ErrorCode> heartbeat(GroupHeartbeat request) override;
  Task<LeaveGroupAnswer> leave(LeaveGroupRequest request) override;
  Task<ConsumerHeartbeatAnswer> heartbeat(const ClientInfo& client,
                                          ConsumerHeartbeat request) override;
  Task<std::vector<ConsumerGroupDescribed>> describe_consumer_groups(
      std::vector<std::string> groups) override;
  Call<OffsetCommitAnswer> commit(const ClientInfo& client, OffsetCommitRequest request) override;
  Task<std::vector<GroupOffsets>> offsets(std::vector<GroupOffsetsQuery> groups,
                                          bool require_stable) override;
  Task<OffsetsDeleted> delete_offsets(OffsetDeletion request) override;
  Task<GroupsListed> list(GroupFilter filter) override;
  Task<std::vector<GroupDescribed>> describe(std::vector<std::string> groups) override;
  Task<std::vector<GroupDeleted>> remove(std::vector<std::string> groups) override;

  bool hold = false;  ///< joins, syncs and commits wait for the test

  // what was asked, in order
  std::vector<std::string> coordinators_asked;
  std::deque<Held<JoinGroupRequest, JoinGroupAnswer>> joins;
  std::deque<Held<SyncGroupRequest, SyncGroupAnswer>> syncs;
  std::vector<GroupHeartbeat> heartbeats;
  std::vector<LeaveGroupRequest> leaves;
  std::vector<ConsumerHeartbeat> consumer_heartbeats;
  std::deque<Held<OffsetCommitRequest, OffsetCommitAnswer>> commits;
  std::vector<std::vector<GroupOffsetsQuery>> offsets_asked;
  std::vector<bool> stable_asked;
  std::vector<OffsetDeletion> deletions;
  std::vector<GroupFilter> filters;
  std::vector<std::vector<std::string>> described_asked;  ///< of either protocol
  std::vector<std::vector<std::string>> removed;
  std::vector<std::string> clients;  ///< who joined, sent a heartbeat of KIP-848 or committed

  // what is answered
  GroupCoordinator coordinator_answer{.error = ErrorCode::none, .message = {}, .broker = 4};
  JoinGroupAnswer join_answer;
  SyncGroupAnswer sync_answer;
  ErrorCode heartbeat_answer = ErrorCode::none;
  LeaveGroupAnswer leave_answer;
  ConsumerHeartbeatAnswer consumer_heartbeat_answer;
  std::vector<ConsumerGroupDescribed> consumer_groups;
  ErrorCode commit_error = ErrorCode::none;      ///< of every partition
  ErrorCode offsets_error = ErrorCode::none;     ///< of every group
  std::vector<GroupOffsets::Topic> all_offsets;  ///< of a group that is asked for all
  OffsetsDeleted offsets_deleted;
  GroupsListed listed;
  std::vector<GroupDescribed> described;
  ErrorCode remove_error = ErrorCode::none;
};

namespace detail {
struct WithGroups {
  FakeGroups groups;
};
}  // namespace detail

/// A connection to a broker that has the groups' service.
class GroupsFixture : private detail::WithGroups, public ConnectionFixture {
 protected:
  GroupsFixture() : ConnectionFixture(&(WithGroups::groups)) {}
  using WithGroups::groups;
};

}  // namespace millrace::kafka_transport::testing
