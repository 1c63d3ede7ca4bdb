// Groups: who consumes what, and how far they have come. Provided by the plugin `consumer_groups`,
// called by transports; no version numbers and no wire format in here. Errors of a request are
// codes in its answer; a failed Pending or Task means that the broker is stopping.
//
// Sources: the classic protocol as Kafka has had it since 0.9, with KIP-62, 345 (static members),
// 394 (known member id), 429 (cooperative), 447 (stable offsets); the new one is KIP-848.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <millrace/broker.h>

namespace millrace {

// ---- the classic protocol ----

struct GroupProtocol {
  std::string name;
  Buffer metadata;  ///< what the member's clients tell each other; opaque, mostly
};
struct JoinGroupRequest {
  std::string group;
  Duration session_timeout{};
  Duration rebalance_timeout{};
  std::string member_id;  ///< empty: a new member
  std::optional<std::string> instance_id;
  std::string protocol_type;
  std::vector<GroupProtocol> protocols;  ///< by preference
  std::string reason;
  bool known_member_id_required = false;  ///< KIP-394: JoinGroup 4 on
  bool skip_assignment = false;           ///< KIP-814: the client knows the flag, JoinGroup 9 on
};
struct JoinGroupMember {
  std::string member_id;
  std::optional<std::string> instance_id;
  Buffer metadata;
};
struct JoinGroupAnswer {
  ErrorCode error = ErrorCode::none;
  std::int32_t generation = -1;
  std::optional<std::string> protocol_type;
  std::optional<std::string> protocol;
  std::string leader;
  bool skip_assignment = false;
  std::string member_id;
  std::vector<JoinGroupMember> members;  ///< for the leader alone
};

struct GroupAssignment {
  std::string member_id;
  Buffer assignment;
};
struct SyncGroupRequest {
  std::string group;
  std::int32_t generation = -1;
  std::string member_id;
  std::optional<std::string> instance_id;
  std::optional<std::string> protocol_type;  ///< KIP-559; none: not checked
  std::optional<std::string> protocol;
  std::vector<GroupAssignment> assignments;  ///< by the leader alone
};
struct SyncGroupAnswer {
  ErrorCode error = ErrorCode::none;
  std::optional<std::string> protocol_type;
  std::optional<std::string> protocol;
  Buffer assignment;
};

struct GroupHeartbeat {
  std::string group;
  std::int32_t generation = -1;
  std::string member_id;
  std::optional<std::string> instance_id;
};

struct LeavingMember {
  std::string member_id;
  std::optional<std::string> instance_id;
  std::string reason;
};
struct LeaveGroupRequest {
  std::string group;
  std::vector<LeavingMember> members;
};
struct LeaveGroupAnswer {
  struct Member {
    std::string member_id;
    std::optional<std::string> instance_id;
    ErrorCode error = ErrorCode::none;
  };
  ErrorCode error = ErrorCode::none;
  std::vector<Member> members;
};

// ---- the consumer protocol (KIP-848) ----

struct TopicIdPartitions {
  Uuid topic;
  std::vector<std::int32_t> partitions;
};
struct ConsumerHeartbeat {
  std::string group;
  std::string member_id;          ///< empty: the coordinator makes one (version 0)
  std::int32_t member_epoch = 0;  ///< 0: joins; -1: leaves; -2: a static member leaves for a while
  std::optional<std::string> instance_id;
  std::optional<std::string> rack;
  std::optional<Duration> rebalance_timeout;  ///< from here on none: as before
  std::optional<std::vector<std::string>> subscribed_names;
  std::optional<std::string> subscribed_regex;  ///< RE2
  std::optional<std::string> server_assignor;
  std::optional<std::vector<TopicIdPartitions>> owned;
};
struct ConsumerHeartbeatAnswer {
  ErrorCode error = ErrorCode::none;
  std::string message;
  std::optional<std::string> member_id;
  std::int32_t member_epoch = 0;
  Duration heartbeat_interval{};
  std::optional<std::vector<TopicIdPartitions>> assignment;  ///< none: as before
};

struct ConsumerAssignment {
  struct Topic {
    Uuid id;
    std::string name;
    std::vector<std::int32_t> partitions;
  };
  std::vector<Topic> topics;
};
struct ConsumerGroupDescribed {
  struct Member {
    std::string member_id;
    std::optional<std::string> instance_id;
    std::optional<std::string> rack;
    std::int32_t member_epoch = 0;
    std::string client_id;
    std::string client_host;
    std::vector<std::string> subscribed_names;
    std::optional<std::string> subscribed_regex;
    ConsumerAssignment assignment;
    ConsumerAssignment target;
    std::int8_t type = 1;  ///< -1 not known, 0 classic, 1 consumer
  };
  ErrorCode error = ErrorCode::none;
  std::string message;
  std::string group;
  std::string state;
  std::int32_t group_epoch = 0;
  std::int32_t assignment_epoch = 0;
  std::string assignor;
  std::vector<Member> members;
};

// ---- offsets ----

struct PartitionCommit {
  std::int32_t partition = -1;
  Offset offset;
  Epoch leader_epoch;
  std::optional<std::string> metadata;
  Timestamp commit_timestamp;  ///< OffsetCommit 1 alone; none: now
};
struct TopicCommit {
  TopicName topic;  ///< by id alone from OffsetCommit 10 on
  std::vector<PartitionCommit> partitions;
};
struct OffsetCommitRequest {
  std::string group;
  std::int32_t generation = -1;  ///< or the member's epoch; -1 and no member: not of the group
  std::string member_id;
  std::optional<std::string> instance_id;
  std::optional<Duration> retention;    ///< OffsetCommit 2 to 4; none: the broker's
  bool fenced_by_member_epoch = false;  ///< the client knows STALE_MEMBER_EPOCH: OffsetCommit 9 on
  std::vector<TopicCommit> topics;
};
struct PartitionCommitted {
  std::int32_t partition = -1;
  ErrorCode error = ErrorCode::none;
};
struct TopicCommitted {
  TopicName topic;
  std::vector<PartitionCommitted> partitions;
};
/// Topics and partitions in the request's order.
using OffsetCommitAnswer = std::vector<TopicCommitted>;

struct GroupOffsetsQuery {
  struct Topic {
    TopicName topic;
    std::vector<std::int32_t> partitions;
  };
  std::string group;
  std::optional<std::string> member_id;  ///< KIP-848: checked with the epoch
  std::int32_t member_epoch = -1;
  std::optional<std::vector<Topic>> topics;  ///< none: all that the group has committed
};
struct GroupOffsets {
  struct Partition {
    std::int32_t partition = -1;
    ErrorCode error = ErrorCode::none;
    Offset offset;
    Epoch leader_epoch;
    std::string metadata;
  };
  struct Topic {
    TopicName topic;
    std::vector<Partition> partitions;
  };
  ErrorCode error = ErrorCode::none;
  std::string group;
  std::vector<Topic> topics;
};

struct OffsetDeletion {
  struct Topic {
    std::string topic;
    std::vector<std::int32_t> partitions;
  };
  std::string group;
  std::vector<Topic> topics;
};
struct OffsetsDeleted {
  struct Topic {
    std::string topic;
    std::vector<PartitionCommitted> partitions;
  };
  ErrorCode error = ErrorCode::none;
  std::vector<Topic> topics;
};

// ---- groups as a whole ----

struct GroupFilter {
  std::vector<std::string> states;  ///< "Stable", whatever the case; empty: all
  std::vector<std::string> types;   ///< "classic", "consumer"; empty: all
};
struct GroupListed {
  std::string group;
  std::string protocol_type;
  std::string state;
  std::string type;
};
struct GroupsListed {
  ErrorCode error = ErrorCode::none;
  std::vector<GroupListed> groups;
};

struct GroupDescribed {
  struct Member {
    std::string member_id;
    std::optional<std::string> instance_id;
    std::string client_id;
    std::string client_host;
    Buffer metadata;
    Buffer assignment;
  };
  ErrorCode error = ErrorCode::none;
  std::string message;
  std::string group;
  std::string state;
  std::string protocol_type;
  std::string protocol;
  std::vector<Member> members;
};

struct GroupDeleted {
  std::string group;
  ErrorCode error = ErrorCode::none;
};

struct GroupCoordinator {
  ErrorCode error = ErrorCode::none;
  std::string message;
  std::int32_t broker = -1;
};

/// Broker::service<GroupService>().  [connection's shard]
class GroupService {
 public:
  static constexpr std::string_view service_id = "millrace.groups/1";

  virtual ~GroupService() = default;

  virtual Task<GroupCoordinator> coordinator(std::string group) = 0;

  // Answered when the others have come: seconds later.
  virtual Call<JoinGroupAnswer> join(const ClientInfo& client, JoinGroupRequest request) = 0;
  virtual Call<SyncGroupAnswer> sync(SyncGroupRequest request) = 0;
  virtual Task<ErrorCode> heartbeat(GroupHeartbeat request) = 0;
  virtual Task<LeaveGroupAnswer> leave(LeaveGroupRequest request) = 0;

  virtual Task<ConsumerHeartbeatAnswer> heartbeat(const ClientInfo& client,
                                                  ConsumerHeartbeat request) = 0;
  virtual Task<std::vector<ConsumerGroupDescribed>> describe_consumer_groups(
      std::vector<std::string> groups) = 0;

  virtual Call<OffsetCommitAnswer> commit(const ClientInfo& client,
                                          OffsetCommitRequest request) = 0;
  /// One group, or many.
  virtual Task<std::vector<GroupOffsets>> offsets(std::vector<GroupOffsetsQuery> groups,
                                                  bool require_stable) = 0;
  virtual Task<OffsetsDeleted> delete_offsets(OffsetDeletion request) = 0;

  virtual Task<GroupsListed> list(GroupFilter filter) = 0;
  virtual Task<std::vector<GroupDescribed>> describe(std::vector<std::string> groups) = 0;
  virtual Task<std::vector<GroupDeleted>> remove(std::vector<std::string> groups) = 0;
};

}  // namespace millrace
