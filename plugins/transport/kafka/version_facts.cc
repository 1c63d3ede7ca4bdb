#include "version_facts.h"

namespace millrace::kafka_transport {

ProduceFeatures produce_features(std::int16_t version) {
  return {
      .legacy_formats = version < 3,  // KIP-98: format V2 alone
      .zstd = version >= 7,           // KIP-110
  };
}

ErrorCode produce_error(std::int16_t version, ErrorCode error) {
  const bool unknown = error == ErrorCode::kafka_storage_error && version < 4;  // KIP-112
  return unknown ? ErrorCode::not_leader_or_follower : error;
}

ErrorCode fetch_error(std::int16_t version, ErrorCode error) {
  const bool unknown = error == ErrorCode::kafka_storage_error && version < 6;  // KIP-112
  return unknown ? ErrorCode::not_leader_or_follower : error;
}

bool produce_tells_leaders(std::int16_t version) { return version >= 10; }

bool fetch_tells_leaders(std::int16_t version) { return version >= 16; }

FetchFeatures fetch_features(std::int16_t version) {
  std::int8_t newest_magic = 0;
  if (version >= 2) newest_magic = 1;  // KIP-31, KIP-32
  if (version >= 4) newest_magic = 2;  // KIP-98
  return {
      .by_topic_id = version >= 13,  // KIP-516
      .zstd = version >= 10,         // KIP-110
      .newest_magic = newest_magic,
  };
}

ListOffsetsFeatures list_offsets_features(std::int16_t version) {
  auto oldest = OffsetSpec::earliest;
  if (version >= 7) oldest = OffsetSpec::max_timestamp;   // KIP-734
  if (version >= 8) oldest = OffsetSpec::earliest_local;  // KIP-405
  if (version >= 9) oldest = OffsetSpec::latest_tiered;   // KIP-1005
  return {
      .oldest_spec = static_cast<std::int64_t>(oldest),
      .offset_list = version == 0,   // KIP-79
      .leader_epoch = version >= 4,  // KIP-320
  };
}

MetadataFeatures metadata_features(std::int16_t version) {
  return {
      .empty_is_all = version == 0,
      .by_topic_id = version >= 12,  // KIP-516; versions 10 and 11 have the field but not the use
  };
}

ApiVersionsFeatures api_versions_features(std::int16_t version) {
  return {.software = version >= 3};  // KIP-511
}

DescribeConfigsFeatures describe_configs_features(std::int16_t version) {
  return {.sources = version >= 1};  // KIP-226
}

ElectLeadersFeatures elect_leaders_features(std::int16_t version) {
  return {.whole_error = version >= 1};  // KIP-460
}

ConfigResourcesFeatures config_resources_features(std::int16_t version) {
  return {.all_types = version >= 1};  // KIP-1142
}

CoordinatorFeatures coordinator_features(std::int16_t version) {
  std::int8_t type_max = 0;
  if (version >= 1) type_max = 1;  // KIP-98
  if (version >= 6) type_max = 2;  // KIP-932
  return {
      .many_keys = version >= 4,  // KIP-699
      .type_max = type_max,
  };
}

JoinGroupFeatures join_group_features(std::int16_t version) {
  return {
      .rebalance_timeout = version >= 1,  // KIP-62
      .known_member_id = version >= 4,    // KIP-394
      .null_protocol = version >= 7,      // KIP-559
      .skip_assignment = version >= 9,    // KIP-814
  };
}

SyncGroupFeatures sync_group_features(std::int16_t version) {
  return {.protocol_required = version >= 5};  // KIP-559
}

LeaveGroupFeatures leave_group_features(std::int16_t version) {
  return {.many_members = version >= 3};  // KIP-345
}

OffsetCommitFeatures offset_commit_features(std::int16_t version) {
  return {.stale_member_epoch = version >= 9};  // KIP-848
}

OffsetFetchFeatures offset_fetch_features(std::int16_t version) {
  return {
      .group_error = version >= 2,  // KIP-88
      .many_groups = version >= 8,  // KIP-709
  };
}

DescribeGroupsFeatures describe_groups_features(std::int16_t version) {
  return {.not_found = version >= 6};  // KIP-1043
}

ConsumerHeartbeatFeatures consumer_heartbeat_features(std::int16_t version) {
  return {.member_id_required = version >= 1};  // KIP-1082
}

}  // namespace millrace::kafka_transport
