// What a ConsumerGroupHeartbeat does: a member joins, goes on, or leaves.
#pragma once

#include <millrace/groups.h>

#include "../turn.h"
#include "draft.h"
#include "liveness.h"
#include "refusal.h"

namespace millrace::consumer_groups {

/// How far the group has followed the cluster. Soft: a new leader looks again.
struct ClusterSeen {
  std::int64_t topics_version = -1;  ///< the group's hash is that of this version
  std::int64_t regex_version = -1;   ///< the expressions were resolved in this one
  MonoTime regexes_at = MonoTime::min();
};

/// What makes no sense in any state of the group; the assignor that it names must be known.
Checked<> validate(const ConsumerHeartbeat& request, const ConsumerSettings& settings);

/// A request that validate() has passed. What it changes is in `draft`.
Checked<ConsumerHeartbeatAnswer> heartbeat(Draft& draft, Liveness& liveness, ClusterSeen& seen,
                                           MemberHeartbeat& ask, Turn& turn);

}  // namespace millrace::consumer_groups
