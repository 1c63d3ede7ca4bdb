// What classic consumers tell each other inside JoinGroup and SyncGroup.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <millrace/aggregate.h>
#include <millrace/groups.h>

#include "assignment.h"

namespace millrace::consumer_groups {

struct ClassicSubscription {
  std::int16_t version = 0;
  std::vector<std::string> topics;
  std::optional<std::string> rack;
  std::vector<TopicIdPartitions> owned;  ///< of topics that exist
};
/// Nothing: these are not the bytes of a consumer.
std::optional<ClassicSubscription> read_subscription(const Buffer& bytes,
                                                     const ClusterView& cluster);

struct ClassicAssignment {
  Assignment partitions;  ///< of topics that exist
  bool has_user_data = false;
};
std::optional<ClassicAssignment> read_assignment(const Buffer& bytes, const ClusterView& cluster);

/// That of the member's subscription is the one to answer it in; 0 when it is none.
std::int16_t subscription_version(const Buffer& subscription);
Result<Buffer> write_assignment(const Owned& owned, std::int16_t version,
                                const ClusterView& cluster);

}  // namespace millrace::consumer_groups
