// Members that are out of the group: they left, went silent, or did not give up in time.
#pragma once

#include <set>
#include <string>
#include <string_view>

#include <millrace/aggregate.h>

#include "draft.h"

namespace millrace::consumer_groups {

/// What they had is free from here on; the next heartbeat of any other member hands it out.
void fence(Draft& draft, const std::set<std::string, std::less<>>& members,
           const ClusterView& cluster);

/// A static member is away for a while: what it has waits for its instance until its session ends.
void leave_for_a_while(Draft& draft, const ConsumerMember& member);

/// A static member is back under another member id: it gets what the one before had. Answers what
/// it is in the draft.
const ConsumerMember& replace_member(Draft& draft, const ConsumerMember& gone,
                                     std::string_view successor);

/// Every record of the group, ended.
void end_group(Draft& draft);

}  // namespace millrace::consumer_groups
