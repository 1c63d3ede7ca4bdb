#include "entry.h"

namespace millrace::groups {

std::unique_ptr<Membership> make_consumer_membership(const std::string& /*group*/) {
  return nullptr;
}

void consumer_heartbeat(Group& /*group*/, MemberHeartbeat& /*ask*/, ReplyTo to, Turn& turn) {
  turn.answer(to, ConsumerHeartbeatAnswer{.error = ErrorCode::unsupported_version});
}

void describe_consumers(const Group& /*group*/, const Context& /*context*/,
                        ConsumerGroupDescribed& out) {
  out.error = ErrorCode::group_id_not_found;
}

}  // namespace millrace::groups
