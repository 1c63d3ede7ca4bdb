#include "group_records.h"

#include <utility>

#include <millrace/kafka/group_records.h>

namespace millrace::consumer_groups::record {
namespace {

template <class Key>
Result<GroupRecord> tombstone(const Key& key) {
  MR_TRY(auto key_bytes, encode_key(key));
  return GroupRecord{std::move(key_bytes), std::nullopt};
}

template <class Key, class Value>
Result<GroupRecord> with_value(const Key& key, const Value& value) {
  MR_TRY(auto key_bytes, encode_key(key));
  MR_TRY(auto value_bytes, encode_value(value, Value::message_versions.max));
  return GroupRecord{std::move(key_bytes), std::move(value_bytes)};
}

template <class Key>
Key key_of(std::string_view group) {
  Key key;
  key.group_id = group;
  return key;
}
template <class Key>
Key key_of(std::string_view group, std::string_view member) {
  Key key;
  key.group_id = group;
  key.member_id = member;
  return key;
}

std::vector<kafka::ConsumerGroupCurrentMemberAssignmentValue::TopicPartitions> topics_of(
    const Owned& owned) {
  std::vector<kafka::ConsumerGroupCurrentMemberAssignmentValue::TopicPartitions> topics;
  topics.reserve(owned.size());
  for (const auto& [id, partitions] : owned) {
    auto& topic = topics.emplace_back();
    topic.topic_id = id;
    topic.assignment_epochs.emplace();
    for (const auto& [partition, epoch] : partitions) {
      topic.partitions.push_back(partition);
      topic.assignment_epochs->push_back(epoch);
    }
  }
  return topics;
}

}  // namespace

Result<GroupRecord> group_epoch(std::string_view group, std::int32_t epoch,
                                std::int64_t metadata_hash) {
  kafka::ConsumerGroupMetadataValue value;
  value.epoch = epoch;
  value.metadata_hash = metadata_hash;
  return with_value(key_of<kafka::ConsumerGroupMetadataKey>(group), value);
}

Result<GroupRecord> member_metadata(std::string_view group, std::string_view member,
                                    const MemberMetadata& metadata) {
  kafka::ConsumerGroupMemberMetadataValue value;
  value.instance_id = metadata.instance_id;
  value.rack_id = metadata.rack;
  value.client_id = metadata.client_id;
  value.client_host = metadata.client_host;
  value.subscribed_topic_names.assign(metadata.subscribed_names.begin(),
                                      metadata.subscribed_names.end());
  value.subscribed_topic_regex = metadata.subscribed_regex;
  value.rebalance_timeout_ms = metadata.rebalance_timeout_ms;
  value.server_assignor = metadata.server_assignor;
  value.classic_member_metadata.reset();
  if (metadata.classic) {
    auto& classic = value.classic_member_metadata.emplace();
    classic.session_timeout_ms = metadata.classic->session_timeout_ms;
    for (const auto& protocol : metadata.classic->protocols) {
      auto& supported = classic.supported_protocols.emplace_back();
      supported.name = protocol.name;
      supported.metadata = protocol.metadata;
    }
  }
  return with_value(key_of<kafka::ConsumerGroupMemberMetadataKey>(group, member), value);
}

Result<GroupRecord> target_epoch(std::string_view group, std::int32_t epoch,
                                 std::int64_t timestamp) {
  kafka::ConsumerGroupTargetAssignmentMetadataValue value;
  value.assignment_epoch = epoch;
  value.assignment_timestamp = timestamp;
  return with_value(key_of<kafka::ConsumerGroupTargetAssignmentMetadataKey>(group), value);
}

Result<GroupRecord> target(std::string_view group, std::string_view member,
                           const Assignment& assignment) {
  kafka::ConsumerGroupTargetAssignmentMemberValue value;
  for (const auto& [id, partitions] : assignment) {
    auto& topic = value.topic_partitions.emplace_back();
    topic.topic_id = id;
    topic.partitions = partitions;
  }
  return with_value(key_of<kafka::ConsumerGroupTargetAssignmentMemberKey>(group, member), value);
}

Result<GroupRecord> current(std::string_view group, std::string_view member,
                            const CurrentAssignment& assignment) {
  kafka::ConsumerGroupCurrentMemberAssignmentValue value;
  value.member_epoch = assignment.epoch;
  value.previous_member_epoch = assignment.previous_epoch;
  value.state = static_cast<std::int8_t>(assignment.state);
  value.assigned_partitions = topics_of(assignment.assigned);
  value.partitions_pending_revocation = topics_of(assignment.revoking);
  return with_value(key_of<kafka::ConsumerGroupCurrentMemberAssignmentKey>(group, member), value);
}

Result<GroupRecord> regex(std::string_view group, std::string_view regex,
                          const ResolvedRegex& resolved) {
  kafka::ConsumerGroupRegularExpressionKey key;
  key.group_id = group;
  key.regular_expression = regex;
  kafka::ConsumerGroupRegularExpressionValue value;
  value.topics.assign(resolved.topics.begin(), resolved.topics.end());
  value.version = resolved.version;
  value.timestamp = resolved.timestamp;
  return with_value(key, value);
}

Result<GroupRecord> partition_metadata(std::string_view group) {
  return with_value(key_of<kafka::ConsumerGroupPartitionMetadataKey>(group),
                    kafka::ConsumerGroupPartitionMetadataValue{});
}

Result<GroupRecord> group_epoch_end(std::string_view group) {
  return tombstone(key_of<kafka::ConsumerGroupMetadataKey>(group));
}
Result<GroupRecord> partition_metadata_end(std::string_view group) {
  return tombstone(key_of<kafka::ConsumerGroupPartitionMetadataKey>(group));
}
Result<GroupRecord> member_metadata_end(std::string_view group, std::string_view member) {
  return tombstone(key_of<kafka::ConsumerGroupMemberMetadataKey>(group, member));
}
Result<GroupRecord> target_epoch_end(std::string_view group) {
  return tombstone(key_of<kafka::ConsumerGroupTargetAssignmentMetadataKey>(group));
}
Result<GroupRecord> target_end(std::string_view group, std::string_view member) {
  return tombstone(key_of<kafka::ConsumerGroupTargetAssignmentMemberKey>(group, member));
}
Result<GroupRecord> current_end(std::string_view group, std::string_view member) {
  return tombstone(key_of<kafka::ConsumerGroupCurrentMemberAssignmentKey>(group, member));
}
Result<GroupRecord> regex_end(std::string_view group, std::string_view regex) {
  kafka::ConsumerGroupRegularExpressionKey key;
  key.group_id = group;
  key.regular_expression = regex;
  return tombstone(key);
}

}  // namespace millrace::consumer_groups::record
