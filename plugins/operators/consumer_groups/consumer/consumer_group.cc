#include "consumer_group.h"

#include <algorithm>
#include <utility>

#include "group_records.h"

namespace millrace::consumer_groups {
namespace {

using TopicsOfRecord =
    std::vector<kafka::ConsumerGroupCurrentMemberAssignmentValue::TopicPartitions>;

/// Before Kafka 4.2 partitions had no epochs of their own: their member's was meant.
Owned owned_of(const TopicsOfRecord& topics, std::int32_t member_epoch) {
  Owned owned;
  for (const auto& topic : topics) {
    auto& partitions = owned[topic.topic_id];
    for (std::size_t i = 0; i < topic.partitions.size(); ++i) {
      const bool has_epoch = topic.assignment_epochs && i < topic.assignment_epochs->size();
      partitions[topic.partitions[i]] = has_epoch ? (*topic.assignment_epochs)[i] : member_epoch;
    }
    if (partitions.empty()) owned.erase(topic.topic_id);
  }
  return owned;
}

MemberState state_of(std::int8_t number) {
  switch (static_cast<MemberState>(number)) {
    case MemberState::stable:
    case MemberState::unrevoked_partitions:
    case MemberState::unreleased_partitions: return static_cast<MemberState>(number);
    default: return MemberState::unknown;
  }
}

std::optional<std::string> owned_text(const std::optional<std::string_view>& text) {
  return text ? std::optional<std::string>(*text) : std::nullopt;
}

MemberMetadata metadata_of(const kafka::ConsumerGroupMemberMetadataValue& value) {
  MemberMetadata metadata;
  metadata.instance_id = owned_text(value.instance_id);
  metadata.rack = owned_text(value.rack_id);
  metadata.client_id = value.client_id;
  metadata.client_host = value.client_host;
  metadata.subscribed_names.assign(value.subscribed_topic_names.begin(),
                                   value.subscribed_topic_names.end());
  std::ranges::sort(metadata.subscribed_names);
  const auto [twice, end] = std::ranges::unique(metadata.subscribed_names);
  metadata.subscribed_names.erase(twice, end);
  metadata.subscribed_regex = value.subscribed_topic_regex.value_or("");
  metadata.rebalance_timeout_ms = value.rebalance_timeout_ms;
  metadata.server_assignor = owned_text(value.server_assignor);
  if (value.classic_member_metadata) {
    auto& classic = metadata.classic.emplace();
    classic.session_timeout_ms = value.classic_member_metadata->session_timeout_ms;
    for (const auto& protocol : value.classic_member_metadata->supported_protocols) {
      classic.protocols.push_back({std::string(protocol.name), protocol.metadata.detach()});
    }
  }
  return metadata;
}

}  // namespace

const ConsumerMember* ConsumerGroup::find(std::string_view member_id) const {
  const auto found = members_->find(member_id);
  return found == members_->end() ? nullptr : &*found->second;
}

const ConsumerMember* ConsumerGroup::find_instance(std::string_view instance_id) const {
  const auto found = instances_.find(instance_id);
  return found == instances_.end() ? nullptr : find(found->second);
}

const Assignment* ConsumerGroup::target(std::string_view member_id) const {
  const auto found = targets_->find(member_id);
  return found == targets_->end() ? nullptr : &*found->second;
}

std::size_t ConsumerGroup::members_with_regex(std::string_view regex) const {
  return static_cast<std::size_t>(std::ranges::count_if(*members_, [&](const auto& entry) {
    return entry.second->metadata.subscribed_regex == regex;
  }));
}

std::size_t ConsumerGroup::classic_members() const {
  return static_cast<std::size_t>(std::ranges::count_if(
      *members_, [](const auto& entry) { return entry.second->is_classic(); }));
}

std::string_view ConsumerGroup::owner(const Uuid& topic, std::int32_t partition) const {
  const auto of_topic = owners_->find(topic);
  if (of_topic == owners_->end()) return {};
  const auto found = of_topic->second.find(partition);
  return found == of_topic->second.end() ? std::string_view{} : found->second;
}

Result<> ConsumerGroup::apply(const GroupRecord& record) {
  MR_TRY(const auto kind, kind_of(record.key));
  return apply(kind, record.key,
               record.value ? std::optional<Bytes>(record.value->bytes()) : std::nullopt);
}

Result<> ConsumerGroup::apply(RecordKind kind, Bytes key, const std::optional<Bytes>& value) {
  switch (kind) {
    case RecordKind::consumer_group_metadata: return apply_metadata(value);
    case RecordKind::consumer_group_partition_metadata:
      has_partition_metadata_ = value.has_value();
      return {};
    case RecordKind::consumer_group_member_metadata: return apply_member(key, value);
    case RecordKind::consumer_group_target_metadata: return apply_target_metadata(value);
    case RecordKind::consumer_group_target_member: return apply_target_member(key, value);
    case RecordKind::consumer_group_current_assignment: return apply_current(key, value);
    case RecordKind::consumer_group_regular_expression: return apply_regex(key, value);
    default:
      return Error{Errc::internal, "a record of kind " +
                                       std::to_string(static_cast<std::int16_t>(kind)) +
                                       " is none of the consumer protocol"};
  }
}

Result<> ConsumerGroup::apply_metadata(const std::optional<Bytes>& value) {
  if (!value) {
    *this = ConsumerGroup(std::move(id_));
    return {};
  }
  MR_TRY(const auto metadata, decode_value<kafka::ConsumerGroupMetadataValue>(*value));
  recorded_ = true;
  epoch_ = metadata.epoch;
  metadata_hash_ = metadata.metadata_hash;
  return {};
}

Result<> ConsumerGroup::apply_member(Bytes key, const std::optional<Bytes>& value) {
  MR_TRY(const auto names, decode_key<kafka::ConsumerGroupMemberMetadataKey>(key));
  if (!value) {
    remove_member(names.member_id);
    return {};
  }
  MR_TRY(const auto content, decode_value<kafka::ConsumerGroupMemberMetadataValue>(*value));
  ConsumerMember& changed = member(names.member_id);
  changed.metadata = metadata_of(content);
  if (changed.metadata.instance_id) instances_[*changed.metadata.instance_id] = changed.id;
  return {};
}

Result<> ConsumerGroup::apply_target_metadata(const std::optional<Bytes>& value) {
  if (!value) {
    assignment_epoch_ = 0;
    assignment_timestamp_ = 0;
    return {};
  }
  MR_TRY(const auto target,
         decode_value<kafka::ConsumerGroupTargetAssignmentMetadataValue>(*value));
  assignment_epoch_ = target.assignment_epoch;
  assignment_timestamp_ = target.assignment_timestamp;
  return {};
}

Result<> ConsumerGroup::apply_target_member(Bytes key, const std::optional<Bytes>& value) {
  MR_TRY(const auto names, decode_key<kafka::ConsumerGroupTargetAssignmentMemberKey>(key));
  if (!value) {
    auto& targets = targets_.own();
    if (const auto found = targets.find(names.member_id); found != targets.end()) {
      targets.erase(found);
    }
    return {};
  }
  MR_TRY(const auto target, decode_value<kafka::ConsumerGroupTargetAssignmentMemberValue>(*value));
  Assignment assignment;
  for (const auto& topic : target.topic_partitions) {
    if (topic.partitions.empty()) continue;
    auto& partitions = assignment[topic.topic_id];
    partitions.insert(partitions.end(), topic.partitions.begin(), topic.partitions.end());
    std::ranges::sort(partitions);
  }
  targets_.own().insert_or_assign(std::string(names.member_id), Shared(std::move(assignment)));
  return {};
}

Result<> ConsumerGroup::apply_current(Bytes key, const std::optional<Bytes>& value) {
  MR_TRY(const auto names, decode_key<kafka::ConsumerGroupCurrentMemberAssignmentKey>(key));
  if (!value) {
    if (find(names.member_id) != nullptr) set_current(member(names.member_id), {});
    return {};
  }
  MR_TRY(const auto content,
         decode_value<kafka::ConsumerGroupCurrentMemberAssignmentValue>(*value));
  CurrentAssignment current;
  current.epoch = content.member_epoch;
  current.previous_epoch = content.previous_member_epoch;
  current.state = state_of(content.state);
  current.assigned = owned_of(content.assigned_partitions, content.member_epoch);
  current.revoking = owned_of(content.partitions_pending_revocation, content.member_epoch);
  set_current(member(names.member_id), std::move(current));
  return {};
}

Result<> ConsumerGroup::apply_regex(Bytes key, const std::optional<Bytes>& value) {
  MR_TRY(const auto names, decode_key<kafka::ConsumerGroupRegularExpressionKey>(key));
  if (!value) {
    if (const auto found = resolved_.find(names.regular_expression); found != resolved_.end()) {
      resolved_.erase(found);
    }
    return {};
  }
  MR_TRY(const auto content, decode_value<kafka::ConsumerGroupRegularExpressionValue>(*value));
  ResolvedRegex resolved;
  resolved.topics.assign(content.topics.begin(), content.topics.end());
  std::ranges::sort(resolved.topics);
  resolved.version = content.version;
  resolved.timestamp = content.timestamp;
  resolved_.insert_or_assign(std::string(names.regular_expression), std::move(resolved));
  return {};
}

ConsumerMember& ConsumerGroup::member(std::string_view id) {
  auto& members = members_.own();
  auto found = members.find(id);
  if (found == members.end()) {
    found = members.emplace(std::string(id), Shared<ConsumerMember>{}).first;
    found->second.own().id = id;
  }
  return found->second.own();
}

void ConsumerGroup::remove_member(std::string_view id) {
  if (find(id) == nullptr) return;
  ConsumerMember& gone = member(id);
  if (gone.metadata.instance_id) {
    // A successor may be recorded already.
    const auto instance = instances_.find(*gone.metadata.instance_id);
    if (instance != instances_.end() && instance->second == gone.id) instances_.erase(instance);
  }
  set_current(gone, {});
  members_.own().erase(members_->find(id));
}

void ConsumerGroup::set_current(ConsumerMember& member, CurrentAssignment current) {
  auto& owners = owners_.own();
  release(owners, member, member.current.assigned);
  release(owners, member, member.current.revoking);
  member.current = std::move(current);
  take(owners, member, member.current.assigned);
  take(owners, member, member.current.revoking);
}

/// Compaction may have taken the record by which an earlier owner let go: the later one counts.
void ConsumerGroup::release(Owners& owners, const ConsumerMember& member, const Owned& owned) {
  for (const auto& [topic, partitions] : owned) {
    const auto of_topic = owners.find(topic);
    if (of_topic == owners.end()) continue;
    for (const auto& [partition, epoch] : partitions) {
      const auto found = of_topic->second.find(partition);
      if (found != of_topic->second.end() && found->second == member.id) {
        of_topic->second.erase(found);
      }
    }
    if (of_topic->second.empty()) owners.erase(of_topic);
  }
}

void ConsumerGroup::take(Owners& owners, const ConsumerMember& member, const Owned& owned) {
  for (const auto& [topic, partitions] : owned) {
    auto& of_topic = owners[topic];
    for (const auto& [partition, epoch] : partitions) of_topic[partition] = member.id;
  }
}

Result<std::vector<GroupRecord>> ConsumerGroup::records() const {
  std::vector<GroupRecord> records;
  for (const auto& [id, member] : *members_) {
    MR_TRY(auto metadata, record::member_metadata(id_, id, member->metadata));
    records.push_back(std::move(metadata));
  }
  for (const auto& [expression, resolved] : resolved_) {
    MR_TRY(auto regex, record::regex(id_, expression, resolved));
    records.push_back(std::move(regex));
  }
  if (has_partition_metadata_) {
    MR_TRY(auto topics, record::partition_metadata(id_));
    records.push_back(std::move(topics));
  }
  if (recorded_) {
    MR_TRY(auto epoch, record::group_epoch(id_, epoch_, metadata_hash_));
    records.push_back(std::move(epoch));
  }
  for (const auto& [id, assignment] : *targets_) {
    MR_TRY(auto target, record::target(id_, id, *assignment));
    records.push_back(std::move(target));
  }
  if (assignment_epoch_ != 0) {
    MR_TRY(auto epoch, record::target_epoch(id_, assignment_epoch_, assignment_timestamp_));
    records.push_back(std::move(epoch));
  }
  for (const auto& [id, member] : *members_) {
    if (member->current == CurrentAssignment{}) continue;
    MR_TRY(auto current, record::current(id_, id, member->current));
    records.push_back(std::move(current));
  }
  return records;
}

}  // namespace millrace::consumer_groups
