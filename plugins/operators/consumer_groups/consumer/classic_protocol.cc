#include "classic_protocol.h"

#include <algorithm>

#include <millrace/bytes.h>
#include <millrace/kafka/codec.h>
#include <millrace/kafka/consumer_protocol.h>

namespace millrace::consumer_groups {
namespace {

/// A version, then the fields; a newer version has its fields behind those of the older ones.
template <class Message>
std::optional<Message> read(const Buffer& bytes, std::int16_t& version) {
  if (bytes.size() < sizeof version) return std::nullopt;
  version = load_be<std::int16_t>(bytes.data());
  if (version < 0) return std::nullopt;
  version = std::min(version, Message::message_versions.max);
  auto decoded = kafka::decode<Message>(bytes.slice(sizeof version), version);
  if (!decoded) return std::nullopt;
  return std::move(*decoded);
}

}  // namespace

std::optional<ClassicSubscription> read_subscription(const Buffer& bytes,
                                                     const ClusterView& cluster) {
  ClassicSubscription subscription;
  const auto content = read<kafka::ConsumerProtocolSubscription>(bytes, subscription.version);
  if (!content) return std::nullopt;
  subscription.topics.assign(content->topics.begin(), content->topics.end());
  if (content->rack_id && !content->rack_id->empty()) subscription.rack = *content->rack_id;
  for (const auto& owned : content->owned_partitions) {
    if (const auto* topic = cluster.find(owned.topic)) {
      subscription.owned.push_back({.topic = topic->id, .partitions = owned.partitions});
    }
  }
  return subscription;
}

std::optional<ClassicAssignment> read_assignment(const Buffer& bytes, const ClusterView& cluster) {
  ClassicAssignment assignment;
  if (bytes.empty()) return assignment;
  std::int16_t version = 0;
  const auto content = read<kafka::ConsumerProtocolAssignment>(bytes, version);
  if (!content) return std::nullopt;
  assignment.has_user_data = content->user_data && !content->user_data->empty();
  for (const auto& assigned : content->assigned_partitions) {
    const auto* topic = cluster.find(assigned.topic);
    if (topic == nullptr || assigned.partitions.empty()) continue;
    auto& partitions = assignment.partitions[topic->id];
    partitions = assigned.partitions;
    std::ranges::sort(partitions);
    const auto [twice, end] = std::ranges::unique(partitions);
    partitions.erase(twice, end);
  }
  return assignment;
}

std::int16_t subscription_version(const Buffer& subscription) {
  std::int16_t version = 0;
  return read<kafka::ConsumerProtocolSubscription>(subscription, version) ? version
                                                                          : std::int16_t{0};
}

Result<Buffer> write_assignment(const Owned& owned, std::int16_t version,
                                const ClusterView& cluster) {
  kafka::ConsumerProtocolAssignment content;
  for (const auto& [id, partitions] : owned) {
    const auto* topic = cluster.find(id);
    if (topic == nullptr) continue;
    auto& assigned = content.assigned_partitions.emplace_back();
    assigned.topic = topic->name;
    for (const auto& [partition, epoch] : partitions) assigned.partitions.push_back(partition);
  }
  MR_TRY(const auto body, kafka::encode(content, version));
  MR_TRY(const auto fields, body.flatten());
  MutableBuffer out(sizeof version + fields.size());
  store_be(out.space().data(), version);
  out.filled(sizeof version);
  out.append(fields);
  return std::move(out).freeze();
}

}  // namespace millrace::consumer_groups
