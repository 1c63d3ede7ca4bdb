// A group that speaks the classic protocol: its members agree on a generation, one of them assigns
// the partitions, and the coordinator knows no more than who is there.
//
//              first joins                  all have rejoined, or the time is over
//     Empty ----------------> PreparingRebalance ----------------> CompletingRebalance
//       ^                       ^   ^                                |  the leader's
//       |  the last has left    |   |  somebody joins, leaves, dies  |  assignment is
//       +-----------------------+   +------------- Stable <----------+  in the log
//
// The log has one record for a group: the generation that is stable, or that it is empty. The rest
// is soft: after a load a group goes on in the generation that its record names, and members who
// had come since find that they are not known and join again.
//
// Sources: KIP-62 (two time-outs), KIP-134 (initial delay), KIP-345 (static members), KIP-394
// (member id required), KIP-814 (a static leader skips the assignment).
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "../group.h"
#include "roster.h"

namespace millrace::consumer_groups {

class ClassicGroup final : public Membership {
 public:
  enum class State { empty, preparing_rebalance, completing_rebalance, stable };

  explicit ClassicGroup(std::string id);

  Type type() const noexcept override { return Type::classic; }
  std::string_view protocol_type() const noexcept override { return protocol_type_; }
  std::string_view state() const noexcept override;
  std::size_t size() const noexcept override { return roster_.size(); }
  bool empty() const noexcept override { return state_ == State::empty; }
  bool gone() const noexcept override;

  void join(Join& ask, ReplyTo to, Turn& turn) override;
  void sync(SyncGroupRequest& request, ReplyTo to, Turn& turn) override;
  void heartbeat(const GroupHeartbeat& request, ReplyTo to, Turn& turn) override;
  void leave(const LeaveGroupRequest& request, ReplyTo to, Turn& turn) override;
  void describe(GroupDescribed& out) const override;

  ErrorCode check_commit(const OffsetCommitRequest& request, Turn& turn) override;
  ErrorCode check_fetch(const GroupOffsetsQuery& query) const override;
  bool subscribed_to(std::string_view topic) const override;
  std::optional<Timestamp> retention_from(Timestamp committed) const override;

  Result<> emit_removal(Turn& turn) override;
  Result<> evolve(RecordKind kind, Bytes key, std::optional<Bytes> value,
                  const EventInfo& info) override;
  void snapshot(SnapshotWriter& out) const override;
  void loaded(Turn& turn) override;
  void timer(Turn& turn) override;

  // ---- for a group that moves between the protocols ----
  const Roster& roster() const noexcept { return roster_; }
  std::int32_t generation() const noexcept { return generation_; }
  const std::string& protocol() const noexcept { return protocol_; }
  bool is_stable() const noexcept { return state_ == State::stable; }
  bool is_recorded() const noexcept { return !recorded_.empty(); }
  /// Whoever waits is told to try again: the group goes on under the other protocol.
  void answer_all(ErrorCode error, Turn& turn);

 private:
  // ---- join.cc ----
  bool has_room_for(std::string_view member_id, const Turn& turn) const;
  bool has_memory_for(const Join& ask, Turn& turn) const;
  bool speaks(const JoinGroupRequest& request) const;
  void join_as_new(Join& ask, ReplyTo to, Turn& turn);
  void join_again(Join& ask, ReplyTo to, Turn& turn);
  void admit(std::string member_id, Join& ask, ReplyTo to, Turn& turn);
  /// A member whose rebalance is wanted: its new metadata, and its wait.
  void rejoin(Member& member, JoinGroupRequest& request, ReplyTo to, Turn& turn);
  /// A static member came back under its instance id, and gets a new member id.
  void replace_static(const std::string& old_id, std::string new_id, Join& ask, ReplyTo to,
                      Turn& turn);
  void replace_in_generation(Member replacement, const std::string& old_id, Join& ask, ReplyTo to,
                             Turn& turn);
  JoinGroupAnswer joined(const Member& member) const;
  std::vector<JoinGroupMember> members_for_leader() const;
  Member make_member(std::string member_id, Join& ask) const;

  // ---- rebalance.cc ----
  void prepare_rebalance(Turn& turn);
  /// Starts a rebalance, or ends the one that is waiting if this was the last to wait for.
  void rebalance_or_complete(Turn& turn);
  void complete_if_all_joined(Turn& turn);
  void complete_join(Turn& turn);
  void begin_generation(Turn& turn);
  void become_empty(Turn& turn);
  void initial_delay_over(Turn& turn);
  void sync_time_over(Turn& turn);
  bool elect_leader_that_joined();
  void remove_member(const std::string& id, ErrorCode told, Turn& turn);
  void expire_members(Turn& turn);

  // ---- requests.cc ----
  ErrorCode check_member(std::string_view member_id,
                         const std::optional<std::string>& instance_id) const;
  ErrorCode check_member(const Member* found, std::string_view member_id,
                         const std::optional<std::string>& instance_id) const;
  ErrorCode check_sync(const SyncGroupRequest& request) const;
  void store_assignments(SyncGroupRequest& request, Turn& turn);
  ErrorCode leave_one(const LeavingMember& leaving, bool& left, Turn& turn);
  void answer_sync(Member& member, SyncGroupAnswer answer, Turn& turn);
  void answer_join(Member& member, JoinGroupAnswer answer, Turn& turn);
  SyncGroupAnswer synced(Buffer assignment) const;

  // ---- classic_group.cc ----
  Result<> emit_generation(Turn& turn, const std::map<std::string, Buffer, std::less<>>& assigned,
                           const Member* replacement = nullptr, std::string_view replaced = {});
  Result<> emit_empty(Turn& turn);
  void build_from(const kafka::GroupMetadataValue& value);
  void follow(const kafka::GroupMetadataValue& value);
  void enter(State state, Timestamp at);
  void compute_subscribed();
  /// Moves the deadline of a member that has shown that it lives.
  void keep_alive(Member& member, Turn& turn);
  void wake_by(MonoTime when, Turn& turn);
  MonoTime next_deadline() const;

  const std::string id_;
  State state_ = State::empty;
  Timestamp state_since_;
  std::string protocol_type_;
  std::int32_t generation_ = 0;
  std::string protocol_;  ///< empty: none chosen
  std::string leader_;    ///< empty: none
  Roster roster_;
  /// Topics of all subscriptions, where these are readable.
  std::optional<std::set<std::string, std::less<>>> subscribed_;
  /// The value of the group's record; empty: there is none.
  Buffer recorded_;

  // ---- soft state of a rebalance ----
  /// Given a member id with which they have not joined yet, and until when they may.
  std::map<std::string, MonoTime, std::less<>> pending_;
  /// Have not asked for their assignment in this generation.
  std::set<std::string, std::less<>> unsynced_;
  bool initial_ = false;           ///< the rebalance that a group begins with
  bool joined_meanwhile_ = false;  ///< somebody came during the present part of the initial delay
  Duration delay_ = {};            ///< that part
  Duration delay_left_ = {};       ///< how much longer the delay may become
  std::optional<MonoTime> join_deadline_;
  std::optional<MonoTime> sync_deadline_;
  std::optional<MonoTime> wakes_;  ///< when the timer is set for
  /// Was of the consumer protocol until just now; its first timer takes it on from there.
  bool successor_ = false;
  /// A static member's successor, until the record that says so is in the log.
  struct Replacement {
    std::string old_id;
    Member member;
  };
  std::optional<Replacement> replacement_;
};

}  // namespace millrace::consumer_groups
