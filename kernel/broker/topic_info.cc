#include "kernel/broker/topic_info.h"

#include "kernel/cluster/topics.h"

namespace millrace::kernel {

ErrorCode why_unknown(const TopicName& topic) {
  if (topic.name.empty() && !topic.id.is_none()) return ErrorCode::unknown_topic_id;
  if (const auto refusal = check_topic_name(topic.name)) return refusal->error;
  return ErrorCode::unknown_topic_or_partition;
}

TopicInfo topic_info(const TopicState& topic) {
  return {.topic = {topic.name, topic.id}, .internal = topic.internal(), .partitions = {}};
}

PartitionInfo partition_info(const ClusterState& cluster, const TopicState& topic,
                             std::int32_t partition) {
  const auto& state = topic.partitions[static_cast<std::size_t>(partition)];
  const bool led = cluster.brokers.contains(state.leader);
  PartitionInfo info{.partition = partition,
                     .error = led ? ErrorCode::none : ErrorCode::leader_not_available,
                     .leader = led ? state.leader : -1,
                     .leader_epoch = state.leader_epoch,
                     .replicas = state.replicas,
                     .in_sync = state.in_sync,
                     .offline = {}};
  for (const auto replica : state.replicas) {
    // Alone with what it cannot open.
    const bool failed = state.leader < 0 && state.replicas.size() == 1;
    if (failed || !cluster.brokers.contains(replica)) info.offline.push_back(replica);
  }
  return info;
}

}  // namespace millrace::kernel
