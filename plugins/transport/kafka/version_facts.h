// What a protocol version implies beyond the layout of its messages, which the generated readers
// and writers know. Everything else in this plugin is free of version numbers.
#pragma once

#include <cstdint>

#include <millrace/broker.h>
#include <millrace/kafka/api_key.h>

namespace millrace::kafka_transport {

ProduceFeatures produce_features(std::int16_t version);
/// Clients from before KAFKA_STORAGE_ERROR take it for one that lasts; they are told to look for
/// the leader again instead.
ErrorCode produce_error(std::int16_t version, ErrorCode error);
ErrorCode fetch_error(std::int16_t version, ErrorCode error);
/// The answer can tell who leads, and where that is (KIP-951).
bool produce_tells_leaders(std::int16_t version);
bool fetch_tells_leaders(std::int16_t version);

struct FetchFeatures {
  bool by_topic_id = false;
  bool zstd = false;
  std::int8_t newest_magic = 0;
};
FetchFeatures fetch_features(std::int16_t version);

struct ListOffsetsFeatures {
  std::int64_t oldest_spec = 0;  ///< the lowest special timestamp that the version has
  bool offset_list = false;      ///< answered with a list of offsets instead of one
  bool leader_epoch = false;     ///< the answer has the epoch of the offset
};
ListOffsetsFeatures list_offsets_features(std::int16_t version);

struct MetadataFeatures {
  bool empty_is_all = false;  ///< how "all topics" was written before null existed
  bool by_topic_id = false;
};
MetadataFeatures metadata_features(std::int16_t version);

struct ApiVersionsFeatures {
  bool software = false;  ///< the client says what it is
};
ApiVersionsFeatures api_versions_features(std::int16_t version);

struct DescribeConfigsFeatures {
  bool sources = false;  ///< the answer tells where a value comes from, not only whether it is set
};
DescribeConfigsFeatures describe_configs_features(std::int16_t version);

struct ElectLeadersFeatures {
  bool whole_error = false;  ///< the answer has an error of its own; before, every partition has it
};
ElectLeadersFeatures elect_leaders_features(std::int16_t version);

struct ConfigResourcesFeatures {
  bool all_types = false;  ///< the first version knows client metrics alone
};
ConfigResourcesFeatures config_resources_features(std::int16_t version);

struct CoordinatorFeatures {
  bool many_keys = false;
  std::int8_t type_max = 0;  ///< 0 group, 1 transaction, 2 share
};
CoordinatorFeatures coordinator_features(std::int16_t version);

struct JoinGroupFeatures {
  bool rebalance_timeout = false;  ///< else the session's is both
  bool known_member_id = false;    ///< a new member is sent back once, with its id
  bool null_protocol = false;      ///< the answer can say that there is no protocol
  bool skip_assignment = false;
};
JoinGroupFeatures join_group_features(std::int16_t version);

struct SyncGroupFeatures {
  bool protocol_required = false;
};
SyncGroupFeatures sync_group_features(std::int16_t version);

struct LeaveGroupFeatures {
  bool many_members = false;
};
LeaveGroupFeatures leave_group_features(std::int16_t version);

struct OffsetCommitFeatures {
  bool stale_member_epoch = false;  ///< the client knows that error
};
OffsetCommitFeatures offset_commit_features(std::int16_t version);

struct OffsetFetchFeatures {
  bool group_error =
      false;  ///< the answer has an error of the group; before, every partition has it
  bool many_groups = false;
};
OffsetFetchFeatures offset_fetch_features(std::int16_t version);

struct DescribeGroupsFeatures {
  /// A group that is not there is an error, with a message; before, it was a dead group.
  bool not_found = false;
};
DescribeGroupsFeatures describe_groups_features(std::int16_t version);

struct ConsumerHeartbeatFeatures {
  bool member_id_required = false;  ///< members make their ids themselves
};
ConsumerHeartbeatFeatures consumer_heartbeat_features(std::int16_t version);

}  // namespace millrace::kafka_transport
