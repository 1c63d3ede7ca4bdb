// Where the replicas of new partitions go. Pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "kernel/cluster/cluster_state.h"

namespace millrace::kernel {

/// Replicas of `count` further partitions, the first of each its preferred leader. Never twice on
/// one broker; on as many racks as there are, where every broker has one; even over the brokers in
/// replicas and in leaders, counting what they have already. `replication` is at most the number of
/// brokers, `before` the topic's partitions that are there. Brokers of `avoided` get some only
/// where there are too few others.
std::vector<std::vector<std::int32_t>> place_replicas(const ClusterState& cluster,
                                                      const std::vector<PartitionState>& before,
                                                      std::size_t count, std::size_t replication,
                                                      const std::set<std::int32_t>& avoided = {});

}  // namespace millrace::kernel
