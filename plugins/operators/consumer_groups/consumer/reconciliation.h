// How a member gets from what it has to its target, so that no partition ever has two owners: it
// gives up first, says so, goes on to the target's epoch, and takes what others have given up.
//
//                     gives something up
//   STABLE ──────────────────────────────> UNREVOKED_PARTITIONS   (in its old epoch, until it has
//     ^  │                                       │                 said that it owns none of them)
//     │  │ nothing to give up                    │
//     │  v                                       v
//   the target's epoch <──────────────── UNRELEASED_PARTITIONS    (some are still others')
#pragma once

#include <optional>
#include <vector>

#include <millrace/aggregate.h>
#include <millrace/groups.h>

#include "consumer_group.h"

namespace millrace::consumer_groups {

struct Reconciliation {
  const ConsumerGroup& group;
  const ConsumerMember& member;
  const ClusterView& cluster;
  /// Its subscription has changed in this call: what it no longer subscribes to goes at once, even
  /// before there is a new target.
  bool subscription_changed = false;
  /// What it has said that it owns; none: nothing new.
  const std::optional<std::vector<TopicIdPartitions>>& owned;
};

/// The next state of the member; nothing when there is no step to take.
std::optional<CurrentAssignment> reconcile(const Reconciliation& input);

/// Everything that it says it owns is assigned to it.
bool owns_only_assigned(const std::optional<std::vector<TopicIdPartitions>>& owned,
                        const Owned& assigned);

/// A partition of its target is still with somebody else.
bool waits_for_others(const ConsumerGroup& group, const ConsumerMember& member);

}  // namespace millrace::consumer_groups
