// Members that speak the classic protocol in a group of the consumer protocol: JoinGroup brings
// them one step towards their target, SyncGroup hands out what they have then, and Heartbeat tells
// them when it is time for the next step. None of them is the leader: the coordinator assigns.
#pragma once

#include <millrace/groups.h>

#include "../turn.h"
#include "draft.h"
#include "liveness.h"
#include "refusal.h"

namespace millrace::consumer_groups {

Checked<JoinGroupAnswer> join_classic(Draft& draft, Liveness& liveness, Join& ask, Turn& turn);
Checked<SyncGroupAnswer> sync_classic(const ConsumerGroup& group, Liveness& liveness,
                                      const SyncGroupRequest& request, Turn& turn);
ErrorCode heartbeat_classic(Draft& draft, Liveness& liveness, const GroupHeartbeat& request,
                            Turn& turn);
LeaveGroupAnswer leave_classic(Draft& draft, const LeaveGroupRequest& request, Turn& turn);

}  // namespace millrace::consumer_groups
