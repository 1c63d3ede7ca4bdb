#include "classic_members.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "classic_protocol.h"
#include "fencing.h"
#include "group_records.h"
#include "migration.h"
#include "reconciliation.h"
#include "subscriptions.h"
#include "target.h"

namespace millrace::consumer_groups {
namespace {

using std::chrono::milliseconds;

constexpr std::string_view consumer_protocol = "consumer";

std::int32_t to_ms(Duration duration) {
  return static_cast<std::int32_t>(std::chrono::duration_cast<milliseconds>(duration).count());
}

milliseconds session_of(const ConsumerMember& member) {
  return milliseconds(member.metadata.classic->session_timeout_ms);
}
milliseconds rebalance_of(const ConsumerMember& member) {
  return milliseconds(member.metadata.rebalance_timeout_ms);
}

/// One of the protocols is spoken by all classic members.
bool speaks_with_all(const ConsumerGroup& group, const JoinGroupRequest& request) {
  if (request.protocol_type != consumer_protocol || request.protocols.empty()) return false;
  std::map<std::string_view, std::size_t> speakers;
  std::size_t members = 0;
  for (const auto& [id, member] : group.members()) {
    if (!member->is_classic() || id == request.member_id) continue;
    ++members;
    for (const auto& protocol : member->metadata.classic->protocols) ++speakers[protocol.name];
  }
  return std::ranges::any_of(request.protocols, [&](const GroupProtocol& protocol) {
    const auto found = speakers.find(protocol.name);
    return members == 0 || (found != speakers.end() && found->second == members);
  });
}

Checked<const ConsumerMember*> find_classic(const ConsumerGroup& group,
                                            const std::string& member_id,
                                            const std::optional<std::string>& instance_id) {
  const ConsumerMember* member =
      instance_id ? group.find_instance(*instance_id) : group.find(member_id);
  if (member == nullptr || (!instance_id && member->id != member_id)) {
    return refuse(ErrorCode::unknown_member_id, {});
  }
  if (member->id != member_id) return refuse(ErrorCode::fenced_instance_id, {});
  if (!member->is_classic()) return refuse(ErrorCode::unknown_member_id, {});
  return member;
}

class ClassicJoin {
 public:
  ClassicJoin(Draft& draft, Liveness& liveness, Join& ask, Turn& turn)
      : draft_(draft),
        liveness_(liveness),
        client_(ask.client),
        request_(ask.request),
        turn_(turn) {}

  Checked<JoinGroupAnswer> run() {
    if (auto possible = check(); !possible) return std::unexpected(std::move(possible).error());
    const bool new_id = request_.member_id.empty();
    if (new_id) request_.member_id = to_string(turn_.context.uuid());
    if (new_id && request_.known_member_id_required && !request_.instance_id) {
      return JoinGroupAnswer{.error = ErrorCode::member_id_required,
                             .member_id = request_.member_id};
    }
    if (request_.instance_id) {
      if (auto found = take_instance(new_id); !found) {
        return std::unexpected(std::move(found).error());
      }
    }
    const auto subscription =
        read_subscription(request_.protocols.front().metadata, turn_.context.cluster());
    if (!subscription) return refuse(ErrorCode::inconsistent_group_protocol, {});
    update(*subscription);
    return reconciled(*subscription);
  }

 private:
  Checked<> check() const {
    const auto& settings = turn_.settings.consumer;
    if (!settings.migration.upgrade && !settings.migration.downgrade) {
      return refuse(ErrorCode::inconsistent_group_protocol, {});
    }
    const ConsumerGroup& group = draft_.group();
    const bool known = group.find(request_.member_id) != nullptr ||
                       (request_.instance_id && group.find_instance(*request_.instance_id));
    if (!known && group.members().size() >= settings.members_max) {
      return refuse(ErrorCode::group_max_size_reached, {});
    }
    if (request_.session_timeout < turn_.settings.session_timeout_min ||
        request_.session_timeout > turn_.settings.session_timeout_max) {
      return refuse(ErrorCode::invalid_session_timeout, {});
    }
    if (!speaks_with_all(group, request_)) {
      return refuse(ErrorCode::inconsistent_group_protocol, {});
    }
    return {};
  }

  Checked<> take_instance(bool new_id) {
    const ConsumerMember* holder = draft_.group().find_instance(*request_.instance_id);
    if (holder == nullptr) {
      if (!new_id) return refuse(ErrorCode::unknown_member_id, {});
      return {};
    }
    if (new_id) {
      replace_member(draft_, *holder, request_.member_id);
    } else if (holder->id != request_.member_id) {
      return refuse(ErrorCode::fenced_instance_id, {});
    }
    return {};
  }

  void update(const ClassicSubscription& subscription) {
    const ConsumerMember* member = draft_.group().find(request_.member_id);
    const MemberMetadata before = member ? member->metadata : MemberMetadata{};
    MemberMetadata after = before;
    if (request_.instance_id) after.instance_id = request_.instance_id;
    if (subscription.rack) after.rack = subscription.rack;
    after.rebalance_timeout_ms = to_ms(request_.rebalance_timeout);
    after.subscribed_names = subscription.topics;
    std::ranges::sort(after.subscribed_names);
    const auto [twice, end] = std::ranges::unique(after.subscribed_names);
    after.subscribed_names.erase(twice, end);
    after.subscribed_regex.clear();
    after.server_assignor.reset();
    after.client_id = client_.id;
    after.client_host = client_.host;
    after.classic = ClassicMember{to_ms(request_.session_timeout), request_.protocols};

    const bool bump_for_new = draft_.group().epoch() == 0;
    if (member == nullptr || after != before) {
      draft_.add(record::member_metadata(draft_.group().id(), request_.member_id, after));
    }
    const bool regex_gone = !before.subscribed_regex.empty();
    if (regex_gone) refresh_regexes(draft_, false, turn_.context.cluster(), turn_.wall());
    subscription_changed_ = regex_gone || after.subscribed_names != before.subscribed_names;
    if (bump_for_new || subscription_changed_) {
      bump_group_epoch(draft_, turn_.context.cluster());
    }
    update_target(draft_, turn_);
  }

  Checked<JoinGroupAnswer> reconciled(const ClassicSubscription& subscription) {
    const ConsumerMember* member = draft_.group().find(request_.member_id);
    if (member == nullptr) return refuse(ErrorCode::invalid_request, {});
    const std::optional owned = subscription.owned;
    const auto step = reconcile({.group = draft_.group(),
                                 .member = *member,
                                 .cluster = turn_.context.cluster(),
                                 .subscription_changed = subscription_changed_,
                                 .owned = owned});
    liveness_.clear(member->id, Duty::rejoin);
    liveness_.set(member->id, Duty::heartbeat, turn_.now() + session_of(*member));
    liveness_.set(member->id, Duty::sync, turn_.now() + rebalance_of(*member));
    JoinGroupAnswer answer{.generation = step ? step->epoch : member->current.epoch,
                           .protocol_type = std::string(consumer_protocol),
                           .protocol = member->metadata.classic->protocols.front().name,
                           .member_id = member->id};
    if (step) draft_.add_unseen(record::current(draft_.group().id(), member->id, *step));
    return answer;
  }

  Draft& draft_;
  Liveness& liveness_;
  const ClientName& client_;
  JoinGroupRequest& request_;
  Turn& turn_;
  bool subscription_changed_ = false;
};

/// There is a step to take, which needs the member to join again.
bool has_to_rejoin(const ConsumerGroup& group, const ConsumerMember& member) {
  return member.current.epoch < group.assignment_epoch() ||
         member.current.state == MemberState::unrevoked_partitions ||
         (member.current.state == MemberState::unreleased_partitions &&
          !waits_for_others(group, member));
}

}  // namespace

Checked<JoinGroupAnswer> join_classic(Draft& draft, Liveness& liveness, Join& ask, Turn& turn) {
  return ClassicJoin(draft, liveness, ask, turn).run();
}

Checked<SyncGroupAnswer> sync_classic(const ConsumerGroup& group, Liveness& liveness,
                                      const SyncGroupRequest& request, Turn& turn) {
  const auto found = find_classic(group, request.member_id, request.instance_id);
  if (!found) return std::unexpected(found.error());
  const ConsumerMember& member = **found;
  if (request.generation != member.current.epoch) return refuse(ErrorCode::illegal_generation, {});
  const GroupProtocol& protocol = member.metadata.classic->protocols.front();
  if ((request.protocol_type && *request.protocol_type != consumer_protocol) ||
      (request.protocol && *request.protocol != protocol.name)) {
    return refuse(ErrorCode::inconsistent_group_protocol, {});
  }
  // A member that has to give up first has joined for that; the next step comes after it.
  if (member.current.epoch < group.assignment_epoch() &&
      member.current.state != MemberState::unrevoked_partitions) {
    liveness.set_if_absent(member.id, Duty::rejoin, turn.now() + rebalance_of(member));
    return refuse(ErrorCode::rebalance_in_progress, {});
  }
  liveness.clear(member.id, Duty::sync);
  liveness.set(member.id, Duty::heartbeat, turn.now() + session_of(member));
  auto assignment = write_assignment(
      member.current.assigned, subscription_version(protocol.metadata), turn.context.cluster());
  if (!assignment) return refuse(ErrorCode::unknown_server_error, {});
  return SyncGroupAnswer{.protocol_type = std::string(consumer_protocol),
                         .protocol = protocol.name,
                         .assignment = std::move(*assignment)};
}

ErrorCode heartbeat_classic(Draft& draft, Liveness& liveness, const GroupHeartbeat& request,
                            Turn& turn) {
  const ConsumerGroup& group = draft.group();
  const auto found = find_classic(group, request.member_id, request.instance_id);
  if (!found) return found.error().error;
  const ConsumerMember& member = **found;
  if (request.generation != member.current.epoch) return ErrorCode::illegal_generation;
  liveness.set(member.id, Duty::heartbeat, turn.now() + session_of(member));
  // The last that spoke the consumer protocol was replaced by an instance that does not.
  if (group.classic_members() == group.members().size() && may_downgrade(group, {}, turn)) {
    downgrade(draft, {}, turn);
    return ErrorCode::rebalance_in_progress;
  }
  if (!has_to_rejoin(group, member)) return ErrorCode::none;
  liveness.set_if_absent(member.id, Duty::rejoin, turn.now() + rebalance_of(member));
  return ErrorCode::rebalance_in_progress;
}

LeaveGroupAnswer leave_classic(Draft& draft, const LeaveGroupRequest& request, Turn& turn) {
  LeaveGroupAnswer answer;
  std::set<std::string, std::less<>> leaving;
  for (const auto& asked : request.members) {
    auto& out = answer.members.emplace_back();
    out.member_id = asked.member_id;
    out.instance_id = asked.instance_id;
    const ConsumerGroup& group = draft.group();
    const ConsumerMember* member =
        asked.instance_id ? group.find_instance(*asked.instance_id) : group.find(asked.member_id);
    // By its instance alone anybody may be removed: that is what tools ask for.
    const bool foreign = member && !asked.member_id.empty() && !member->is_classic();
    if (member == nullptr || foreign || leaving.contains(member->id)) {
      out.error = ErrorCode::unknown_member_id;
    } else if (!asked.member_id.empty() && asked.member_id != member->id) {
      out.error = ErrorCode::fenced_instance_id;
    } else {
      leaving.insert(member->id);
    }
  }
  if (!leaving.empty()) fence_or_downgrade(draft, leaving, turn);
  return answer;
}

}  // namespace millrace::consumer_groups
