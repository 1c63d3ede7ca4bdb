#include "entry.h"

#include <utility>

#include "../classic/classic_group.h"
#include "consumer_group.h"
#include "describe.h"
#include "membership.h"
#include "migration.h"

namespace millrace::consumer_groups {
namespace {

ConsumerMembership& membership_of(const Group& group) {
  return static_cast<ConsumerMembership&>(*group.members);
}

void refused(Refusal refusal, ReplyTo to, Turn& turn) {
  turn.answer(
      to, ConsumerHeartbeatAnswer{.error = refusal.error, .message = std::move(refusal.message)});
}

/// The classic group stays what it is until the records that end it are in the log.
void upgrade_by_joining(Group& group, ClassicGroup& classic, MemberHeartbeat& ask, ReplyTo to,
                        Turn& turn) {
  if (ask.request.member_epoch != member_epoch_join) {
    return refused(
        {ErrorCode::group_id_not_found, "Group " + group.id + " is not of the consumer protocol."},
        to, turn);
  }
  ConsumerMembership successor(group.id);
  Draft draft(successor.group());
  if (auto upgraded = upgrade(draft, classic, turn); !upgraded) {
    return refused(std::move(upgraded).error(), to, turn);
  }
  classic.answer_all(ErrorCode::rebalance_in_progress, turn);
  successor.heartbeat_as_successor(draft, ask, to, turn);
  // The successor that the records make knows no deadlines: it looks at once.
  turn.context.set_timer(timer_of(group.id), Duration::zero());
}

}  // namespace

std::unique_ptr<Membership> make_consumer_membership(const std::string& group) {
  return std::make_unique<ConsumerMembership>(group);
}

void consumer_heartbeat(Group& group, MemberHeartbeat& ask, ReplyTo to, Turn& turn) {
  if (auto valid = validate(ask.request, turn.settings.consumer); !valid) {
    return refused(std::move(valid).error(), to, turn);
  }
  if (group.is(Membership::Type::classic)) {
    auto& classic = static_cast<ClassicGroup&>(*group.members);
    if (!classic.empty()) return upgrade_by_joining(group, classic, ask, to, turn);
    if (ask.request.member_epoch != member_epoch_join) {
      return refused({ErrorCode::group_id_not_found,
                      "Group " + group.id + " is not of the consumer protocol."},
                     to, turn);
    }
    if (classic.is_recorded()) {
      if (auto ended = classic.emit_removal(turn); !ended) {
        return refused({ErrorCode::unknown_server_error, ended.error().detail}, to, turn);
      }
    }
    group.members.reset();
  }
  if (!group.members) group.members = make_consumer_membership(group.id);
  membership_of(group).heartbeat(ask, to, turn);
}

void describe_consumers(const Group& group, const Context& context, ConsumerGroupDescribed& out) {
  const ConsumerGroup& described = membership_of(group).group();
  if (described.forgotten()) {  // its first records are still on their way
    out.error = ErrorCode::group_id_not_found;
    out.message = "Group " + out.group + " not found.";
    return;
  }
  describe(described, context.cluster(), ConsumerSettings::read(context), out);
}

}  // namespace millrace::consumer_groups
