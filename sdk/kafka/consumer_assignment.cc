#include <millrace/kafka/consumer_assignment.h>

#include <algorithm>
#include <string>

#include <millrace/bytes.h>
#include <millrace/kafka/codec.h>
#include <millrace/kafka/consumer_protocol.h>

namespace millrace::kafka {

std::optional<std::vector<TopicPartition>> read_consumer_assignment(const Buffer& bytes) {
  std::vector<TopicPartition> partitions;
  if (bytes.empty()) return partitions;
  if (bytes.size() < sizeof(std::int16_t)) return std::nullopt;
  const auto version = load_be<std::int16_t>(bytes.data());
  if (version < 0) return std::nullopt;
  const auto known = std::min(version, ConsumerProtocolAssignment::message_versions.max);
  const auto assignment =
      decode<ConsumerProtocolAssignment>(bytes.slice(sizeof(std::int16_t)), known);
  if (!assignment) return std::nullopt;
  for (const auto& topic : assignment->assigned_partitions) {
    for (const auto number : topic.partitions) {
      partitions.push_back({std::string(topic.topic), number});
    }
  }
  std::ranges::sort(partitions);
  return partitions;
}

}  // namespace millrace::kafka
