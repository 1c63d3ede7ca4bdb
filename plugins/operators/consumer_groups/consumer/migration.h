// Groups that move between the two protocols while members are in them, as far as
// group.consumer.migration.policy lets them: a classic group becomes one of the consumer protocol
// with the first member that joins by a heartbeat of that, its classic members go on by JoinGroup,
// SyncGroup and Heartbeat; when the last of the others is gone it becomes classic again.
#pragma once

#include <set>
#include <string>

#include "../turn.h"
#include "draft.h"
#include "refusal.h"

namespace millrace::consumer_groups {

class ClassicGroup;

/// Ends the records of the classic group and begins those of its successor; `draft` is of a group
/// that is new. GROUP_ID_NOT_FOUND: it may not, or its members' metadata is not of consumers.
Checked<> upgrade(Draft& draft, const ClassicGroup& classic, Turn& turn);

/// Everybody who would be left without `leaving` is a classic member, and the group may move.
bool may_downgrade(const ConsumerGroup& group, const std::set<std::string, std::less<>>& leaving,
                   const Turn& turn);

/// Ends the group's records and begins those of its successor, without `leaving`. That rebalances
/// when its timer comes, which is set to come at once.
void downgrade(Draft& draft, const std::set<std::string, std::less<>>& leaving, Turn& turn);

void fence_or_downgrade(Draft& draft, const std::set<std::string, std::less<>>& leaving,
                        Turn& turn);

}  // namespace millrace::consumer_groups
