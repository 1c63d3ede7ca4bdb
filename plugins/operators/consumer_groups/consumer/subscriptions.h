// What a group reads: names, and what regular expressions have matched; and the group's epoch,
// which counts the changes of that.
#pragma once

#include <set>
#include <string>
#include <vector>

#include <millrace/aggregate.h>

#include "draft.h"
#include "refusal.h"

namespace millrace::consumer_groups {

/// Of all members together.
std::set<std::string, std::less<>> subscribed_topics(const ConsumerGroup& group);

/// Topics of one member that exist, none twice.
std::vector<const ClusterTopic*> topics_of(const MemberMetadata& metadata,
                                           const ConsumerGroup::Regexes& resolved,
                                           const ClusterView& cluster);

/// Ends what nobody subscribes to any more, resolves what is not resolved yet, and with `all` what
/// is as well. Writes what differs; whether any set of topics does. The expressions of members are
/// known to be valid.
bool refresh_regexes(Draft& draft, bool all, const ClusterView& cluster, Timestamp wall);

/// The next epoch of the group as it is drafted.
void bump_group_epoch(Draft& draft, const ClusterView& cluster);

}  // namespace millrace::consumer_groups
