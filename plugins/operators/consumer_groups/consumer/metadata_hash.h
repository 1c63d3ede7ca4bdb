// One number for the topics that a group reads: once it differs, the group's assignment must be
// computed anew. The number is in the group's record, and it is the one that Kafka 4 computes, so
// that a group that moves between the two is not rebalanced for the move.
#pragma once

#include <cstdint>
#include <set>
#include <string>

#include <millrace/aggregate.h>

namespace millrace::consumer_groups {

/// XXH3 of a topic's id, name, partitions and their racks.
std::int64_t topic_hash(const ClusterTopic& topic);

/// Of the topics that exist; 0 when none does.
std::int64_t metadata_hash(const std::set<std::string, std::less<>>& topics,
                           const ClusterView& cluster);

}  // namespace millrace::consumer_groups
