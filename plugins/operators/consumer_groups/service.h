// The service that transports call: each request becomes a command for the aggregate of its group,
// wherever that is, and its answer comes back. What the runtime has to say (not the coordinator,
// being loaded) becomes the error of the answer.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <millrace/aggregates.h>
#include <millrace/environment.h>
#include <millrace/groups.h>

#include "messages.h"

namespace millrace::consumer_groups {

/// Declared by the plugin; the name under which the runtime knows the coordinators.
inline constexpr std::string_view aggregate_name = "consumer_groups";

class Service final : public GroupService {
 public:
  explicit Service(Environment& environment) : environment_(environment) {}

  /// Before the first call, and once.
  void connect(Aggregates& aggregates) noexcept { aggregates_ = &aggregates; }

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

 private:
  /// `failed` is the answer without its error.
  template <class Answer>
  Call<Answer> ask(const std::string& group, Ask::Body body, Answer failed);
  /// For what is answered at once, by the group that the body names.
  template <class Answer, class Body>
  Task<Answer> ask_and_wait(Body body);
  template <class Answer>
  Task<Answer> wait_for(std::string group, std::unique_ptr<Ask> message);
  /// One command for each group, all at once; answers in the order of the groups.
  template <class Answer, class Body>
  Task<std::vector<Answer>> ask_each(std::vector<std::string> groups);
  Shard& here() const noexcept;

  Environment& environment_;
  Aggregates* aggregates_ = nullptr;
};

}  // namespace millrace::consumer_groups
