// Who of a group reads what: the assignors of the consumer protocol, which the coordinator runs
// (KIP-848). Pure: the same members, topics and earlier assignment give the same result, whatever
// the order they come in.
//
// Whatever an assignor does, every partition of a topic that somebody subscribes to is given to
// exactly one of its subscribers.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <millrace/aggregate.h>

#include "assignment.h"

namespace millrace::consumer_groups {

struct AssignorMember {
  std::string_view id;
  /// Of a static member: its place in the order survives its restart.
  std::optional<std::string_view> instance_id;
  std::optional<std::string_view> rack;
  /// Topics that exist, none twice.
  std::vector<const ClusterTopic*> topics;
  /// What it was to have before; may name partitions that are gone.
  const Assignment* before = nullptr;
};

/// [any thread]
class Assignor {
 public:
  virtual ~Assignor() = default;
  virtual std::string_view name() const noexcept = 0;
  /// One assignment for each of `members`, in their order.
  virtual std::vector<Assignment> assign(std::span<const AssignorMember> members) const = 0;
};

/// nullptr: there is none of this name.
const Assignor* find_assignor(std::string_view name) noexcept;

// ---- what assignors share ----

/// Indexes of `members` in the order in which they are served: static ones first.
std::vector<std::size_t> serving_order(std::span<const AssignorMember> members);

/// The topics that `members` subscribe to, each with its subscribers in the order of `order`;
/// sorted by id.
struct SubscribedTopic {
  const ClusterTopic* topic = nullptr;
  std::vector<std::size_t> subscribers;
};
std::vector<SubscribedTopic> subscribed_topics(std::span<const AssignorMember> members,
                                               std::span<const std::size_t> order);

/// A replica of the partition is where the member is.
bool in_rack(const AssignorMember& member, const ClusterTopic& topic, std::int32_t partition);

}  // namespace millrace::consumer_groups
