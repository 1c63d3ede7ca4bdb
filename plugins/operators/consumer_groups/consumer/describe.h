// A group as ConsumerGroupDescribe and ListGroups show it.
#pragma once

#include <string_view>

#include <millrace/groups.h>

#include "consumer_group.h"
#include "consumer_settings.h"

namespace millrace::consumer_groups {

/// "Empty", "Assigning" (the target is behind the group), "Reconciling" (members are behind the
/// target), "Stable".
std::string_view state_of(const ConsumerGroup& group);

/// `out.group` is set. Topics that are gone are left out.
void describe(const ConsumerGroup& group, const ClusterView& cluster,
              const ConsumerSettings& settings, ConsumerGroupDescribed& out);

}  // namespace millrace::consumer_groups
