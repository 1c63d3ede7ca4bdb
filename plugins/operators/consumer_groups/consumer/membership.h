// The members of a group of the consumer protocol, as the coordinator sees them: requests become
// decisions, decisions become records, and records make the group.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "../group.h"
#include "consumer_group.h"
#include "heartbeat.h"
#include "liveness.h"

namespace millrace::consumer_groups {

/// [partition's shard]
class ConsumerMembership final : public Membership {
 public:
  explicit ConsumerMembership(std::string id) : group_(std::move(id)) {}

  const ConsumerGroup& group() const noexcept { return group_; }
  /// Answered by a ConsumerHeartbeatAnswer.
  void heartbeat(MemberHeartbeat& ask, ReplyTo to, Turn& turn);
  /// The same with the group as `draft` says it will be: it is still another's.
  void heartbeat_as_successor(Draft& draft, MemberHeartbeat& ask, ReplyTo to, Turn& turn);

  Type type() const noexcept override { return Type::consumer; }
  std::string_view protocol_type() const noexcept override { return "consumer"; }
  std::string_view state() const noexcept override;
  std::size_t size() const noexcept override { return group_.members().size(); }
  bool empty() const noexcept override { return group_.members().empty(); }
  /// A member whose records are on their way counts.
  bool gone() const noexcept override { return group_.forgotten() && liveness_.empty(); }

  void join(Join& ask, ReplyTo to, Turn& turn) override;
  void sync(SyncGroupRequest& request, ReplyTo to, Turn& turn) override;
  void heartbeat(const GroupHeartbeat& request, ReplyTo to, Turn& turn) override;
  void leave(const LeaveGroupRequest& request, ReplyTo to, Turn& turn) override;
  void describe(GroupDescribed& /*out*/) const override {}  // DescribeGroups is not of this type

  ErrorCode check_commit(const OffsetCommitRequest& request, Turn& turn) override;
  ErrorCode check_commit_of(const OffsetCommitRequest& request, const Uuid& topic,
                            std::int32_t partition) const override;
  ErrorCode check_fetch(const GroupOffsetsQuery& query) const override;
  bool subscribed_to(std::string_view topic) const override;
  std::optional<Timestamp> retention_from(Timestamp committed) const override { return committed; }

  Result<> emit_removal(Turn& turn) override;
  Result<> evolve(RecordKind kind, Bytes key, std::optional<Bytes> value,
                  const EventInfo& info) override;
  void snapshot(SnapshotWriter& out) const override;
  void loaded(Turn& turn) override;
  void timer(Turn& turn) override;

 private:
  Duration session_of(const ConsumerMember& member, const Turn& turn) const;
  void give_fresh_deadlines(const ConsumerMember& member, Turn& turn);
  /// The group's timer comes by then; one that is set for earlier is left alone.
  void wake_by(MonoTime deadline, Turn& turn);
  void wake_for(std::string_view member, Turn& turn);

  ConsumerGroup group_;
  // ---- soft ----
  Liveness liveness_;
  ClusterSeen seen_;
  std::optional<MonoTime> wakes_;
};

}  // namespace millrace::consumer_groups
