// Partitions by topic, as the consumer protocol (KIP-848) speaks of them.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include <millrace/types.h>

namespace millrace::consumer_groups {

/// Sorted, none twice.
using Partitions = std::vector<std::int32_t>;
/// No topic without partitions.
using Assignment = std::map<Uuid, Partitions>;

/// What a member has, and in which epoch of the group each partition came to it: a commit of that
/// epoch or a later one is the owner's (KIP-1251).
using Owned = std::map<Uuid, std::map<std::int32_t, std::int32_t>>;

inline std::size_t count(const Assignment& assignment) noexcept {
  std::size_t partitions = 0;
  for (const auto& [topic, of_topic] : assignment) partitions += of_topic.size();
  return partitions;
}

inline bool contains(const Owned& owned, const Uuid& topic, std::int32_t partition) {
  const auto found = owned.find(topic);
  return found != owned.end() && found->second.contains(partition);
}

}  // namespace millrace::consumer_groups
