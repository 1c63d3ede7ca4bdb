// What the coordinator calls of the consumer protocol (KIP-848).
#pragma once

#include <memory>
#include <string>

#include "../group.h"
#include "../turn.h"

namespace millrace::consumer_groups {

/// A membership without members, to be filled by records.
std::unique_ptr<Membership> make_consumer_membership(const std::string& group);

/// `group` may be new, be classic (and move, where group.consumer.migration.policy lets it), or be
/// a consumer group already. Answered by a ConsumerHeartbeatAnswer.
void consumer_heartbeat(Group& group, MemberHeartbeat& ask, ReplyTo to, Turn& turn);

/// `group` is a consumer group; `out.group` is set.
void describe_consumers(const Group& group, const Context& context, ConsumerGroupDescribed& out);

}  // namespace millrace::consumer_groups
