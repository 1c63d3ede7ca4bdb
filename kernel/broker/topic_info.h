// Topics as clients are told of them.
#pragma once

#include <cstdint>

#include <millrace/broker.h>

#include "kernel/cluster/cluster_state.h"

namespace millrace::kernel {

/// Why a topic is not found: a name that may not exist, an unknown id, an unknown name.
ErrorCode why_unknown(const TopicName& topic);

/// Without its partitions.
TopicInfo topic_info(const TopicState& topic);
/// A leader that is not there any more is none.
PartitionInfo partition_info(const ClusterState& cluster, const TopicState& topic,
                             std::int32_t partition);

}  // namespace millrace::kernel
