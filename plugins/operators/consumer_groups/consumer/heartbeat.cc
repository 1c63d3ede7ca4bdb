#include "heartbeat.h"

#include <algorithm>
#include <utility>

#include "assignor.h"
#include "fencing.h"
#include "group_records.h"
#include "metadata_hash.h"
#include "migration.h"
#include "reconciliation.h"
#include "regex.h"
#include "subscriptions.h"
#include "target.h"

namespace millrace::consumer_groups {
namespace {

/// New topics come in bursts: expressions are not matched anew for each of them.
constexpr Duration regex_refresh_interval_min = std::chrono::seconds(10);

bool blank(std::string_view text) {
  return text.find_first_not_of(" \t\r\n") == std::string_view::npos;
}
bool blank_if_set(const std::optional<std::string>& text) { return text && blank(*text); }

Checked<> validate_join(const ConsumerHeartbeat& request) {
  if (!request.rebalance_timeout) {
    return refuse(ErrorCode::invalid_request, "RebalanceTimeoutMs must be set to join.");
  }
  if (!request.owned || !request.owned->empty()) {
    return refuse(ErrorCode::invalid_request, "TopicPartitions must be empty to join.");
  }
  if (!request.subscribed_names && !request.subscribed_regex) {
    return refuse(ErrorCode::invalid_request,
                  "SubscribedTopicNames or SubscribedTopicRegex must be set to join.");
  }
  return {};
}

std::string joined(const std::vector<std::string>& names) {
  std::string list;
  for (const auto& name : names) list += (list.empty() ? "" : ", ") + name;
  return list;
}

/// The reply to the request that made its epoch may have been lost: a member may come with the one
/// before, as long as it owns nothing that is not its own.
Checked<> check_epoch(const ConsumerMember& member, const ConsumerHeartbeat& request) {
  const std::int32_t epoch = request.member_epoch;
  if (epoch == member_epoch_join || epoch == member.current.epoch) return {};
  if (epoch == member.current.previous_epoch && epoch < member.current.epoch &&
      owns_only_assigned(request.owned, member.current.assigned)) {
    return {};
  }
  return refuse(ErrorCode::fenced_member_epoch,
                "The member is in epoch " + std::to_string(member.current.epoch) + " and not " +
                    std::to_string(epoch) + ": it must give up its partitions and join again.");
}

Checked<> check_room(const ConsumerGroup& group, const ConsumerSettings& settings) {
  if (group.members().size() < settings.members_max) return {};
  return refuse(ErrorCode::group_max_size_reached,
                "The group has its " + std::to_string(settings.members_max) +
                    " members; group.consumer.max.size allows no more.");
}

std::unexpected<Refusal> unknown_member(const ConsumerGroup& group, const std::string& member) {
  return refuse(ErrorCode::unknown_member_id,
                "Member " + member + " is not a member of group " + group.id() + ".");
}

std::unexpected<Refusal> group_not_found(const ConsumerGroup& group) {
  return refuse(ErrorCode::group_id_not_found, "Group " + group.id() + " not found.");
}

Checked<const ConsumerMember*> static_member(const ConsumerGroup& group,
                                             const ConsumerHeartbeat& request) {
  const ConsumerMember* member = group.find_instance(*request.instance_id);
  if (member == nullptr) {
    return refuse(ErrorCode::unknown_member_id,
                  "Instance " + *request.instance_id + " is not in group " + group.id() + ".");
  }
  if (member->id != request.member_id) {
    return refuse(ErrorCode::fenced_instance_id, "Instance " + *request.instance_id +
                                                     " is member " + member->id + " now, not " +
                                                     request.member_id + ".");
  }
  return member;
}

class Heartbeat {
 public:
  Heartbeat(Draft& draft, Liveness& liveness, ClusterSeen& seen, MemberHeartbeat& ask, Turn& turn)
      : draft_(draft),
        liveness_(liveness),
        seen_(seen),
        client_(ask.client),
        request_(ask.request),
        turn_(turn) {}

  Checked<ConsumerHeartbeatAnswer> run() {
    if (request_.member_epoch < 0) return leave();
    if (auto found = find_member(); !found) return std::unexpected(std::move(found).error());
    const ConsumerMember* before = known_ ? known_ : draft_.group().find(request_.member_id);
    if (auto updated = update_member(before); !updated) {
      return std::unexpected(std::move(updated).error());
    }
    follow_cluster();
    if (bump_) bump_group_epoch(draft_, cluster());
    update_target(draft_, turn_);
    return reconcile_member(draft_.empty() ? before : draft_.group().find(request_.member_id));
  }

 private:
  const ClusterView& cluster() const { return turn_.context.cluster(); }
  bool joins() const { return request_.member_epoch == member_epoch_join; }

  Checked<ConsumerHeartbeatAnswer> leave() {
    const ConsumerGroup& group = draft_.group();
    if (group.forgotten()) return group_not_found(group);
    const ConsumerMember* member = group.find(request_.member_id);
    if (request_.instance_id) {
      auto found = static_member(group, request_);
      if (!found) return std::unexpected(std::move(found).error());
      member = *found;
    }
    if (member == nullptr) return unknown_member(group, request_.member_id);
    ConsumerHeartbeatAnswer answer{.member_id = member->id, .member_epoch = request_.member_epoch};
    if (request_.member_epoch == member_epoch_left_static) {
      leave_for_a_while(draft_, *member);
    } else {
      fence_or_downgrade(draft_, {member->id}, turn_);
    }
    return answer;
  }

  Checked<> find_member() {
    const ConsumerGroup& group = draft_.group();
    if (!joins() && group.forgotten()) return group_not_found(group);
    if (request_.member_id.empty()) request_.member_id = to_string(turn_.context.uuid());
    if (request_.instance_id) return find_static_member();
    const ConsumerMember* member = group.find(request_.member_id);
    known_ = member;
    if (member != nullptr) return check_epoch(*member, request_);
    if (!joins()) return unknown_member(group, request_.member_id);
    return check_room(group, turn_.settings.consumer);
  }

  Checked<> find_static_member() {
    const ConsumerGroup& group = draft_.group();
    if (!joins()) {
      auto found = static_member(group, request_);
      if (!found) return std::unexpected(std::move(found).error());
      return check_epoch(**found, request_);
    }
    const ConsumerMember* holder = group.find_instance(*request_.instance_id);
    if (holder == nullptr) {
      if (group.find(request_.member_id) != nullptr) return {};
      return check_room(group, turn_.settings.consumer);
    }
    const bool away = holder->current.epoch == member_epoch_left_static;
    if (holder->id == request_.member_id && !away) return {};
    // A classic instance says nothing when it goes.
    if (!away && !holder->is_classic()) {
      return refuse(ErrorCode::unreleased_instance_id, "Instance " + *request_.instance_id +
                                                           " is in use by member " + holder->id +
                                                           ", which has not left.");
    }
    replace_member(draft_, *holder, request_.member_id);
    return {};
  }

  bool changes(const ConsumerMember& member) const {
    const MemberMetadata& now = member.metadata;
    return now.classic || request_.subscribed_names || request_.subscribed_regex ||
           request_.server_assignor || request_.rack || request_.rebalance_timeout ||
           (request_.instance_id && request_.instance_id != now.instance_id) ||
           client_.id != now.client_id || client_.host != now.client_host;
  }

  MemberMetadata updated(MemberMetadata metadata) {
    if (request_.instance_id) metadata.instance_id = request_.instance_id;
    if (request_.rack) metadata.rack = request_.rack;
    if (request_.rebalance_timeout) {
      metadata.rebalance_timeout_ms = static_cast<std::int32_t>(
          std::chrono::duration_cast<std::chrono::milliseconds>(*request_.rebalance_timeout)
              .count());
    }
    if (request_.server_assignor) metadata.server_assignor = request_.server_assignor;
    if (request_.subscribed_names) {
      auto& names = metadata.subscribed_names = *request_.subscribed_names;
      std::ranges::sort(names);
      const auto [twice, end] = std::ranges::unique(names);
      names.erase(twice, end);
    }
    if (request_.subscribed_regex) metadata.subscribed_regex = *request_.subscribed_regex;
    metadata.client_id = client_.id;
    metadata.client_host = client_.host;
    metadata.classic.reset();
    return metadata;
  }

  Checked<> update_member(const ConsumerMember* member) {
    bump_ = draft_.group().epoch() == 0;
    if (member != nullptr && !changes(*member)) return {};
    const MemberMetadata before = member ? member->metadata : MemberMetadata{};
    const MemberMetadata after = updated(before);
    if (member != nullptr && after == before) return {};

    const bool regex_changed = after.subscribed_regex != before.subscribed_regex;
    if (regex_changed && !after.subscribed_regex.empty()) {
      if (const auto valid = check_regex(after.subscribed_regex); !valid) {
        return refuse(ErrorCode::invalid_regular_expression,
                      "SubscribedTopicRegex `" + after.subscribed_regex +
                          "` is not a regular expression of RE2: " + valid.error().detail + ".");
      }
    }
    const auto assignor = assignor_of(draft_.group(), turn_.settings.consumer).name();
    draft_.add(record::member_metadata(draft_.group().id(), request_.member_id, after));
    if (regex_changed) refresh_regexes(draft_, false, cluster(), turn_.wall());
    subscription_changed_ = regex_changed || after.subscribed_names != before.subscribed_names;
    bump_ = bump_ || subscription_changed_ ||
            assignor != assignor_of(draft_.group(), turn_.settings.consumer).name();
    return {};
  }

  /// Topics came, went or grew. Remembered as seen only when that was nothing to this group: what
  /// this call decides may fail, and is then decided again.
  void follow_cluster() {
    const std::int64_t version = cluster().version();
    if (!draft_.group().resolved().empty() && regexes_due(version)) {
      if (refresh_regexes(draft_, true, cluster(), turn_.wall())) {
        bump_ = true;
      } else {
        seen_.regex_version = version;
        seen_.regexes_at = turn_.now();
      }
    }
    if (bump_ || version == seen_.topics_version) return;
    const ConsumerGroup& group = draft_.group();
    if (metadata_hash(subscribed_topics(group), cluster()) == group.metadata_hash()) {
      seen_.topics_version = version;
    } else {
      bump_ = true;
    }
  }

  bool regexes_due(std::int64_t version) const {
    if (seen_.regexes_at == MonoTime::min()) return true;
    const auto age = turn_.now() - seen_.regexes_at;
    return (version != seen_.regex_version && age >= regex_refresh_interval_min) ||
           age >= turn_.settings.consumer.regex_refresh_interval;
  }

  Checked<ConsumerHeartbeatAnswer> reconcile_member(const ConsumerMember* member) {
    const std::string& id = request_.member_id;
    if (member == nullptr) {
      // Its name was too long for a record; emit() says so.
      return refuse(ErrorCode::invalid_request, "The request does not fit a record.");
    }
    const auto step = reconcile({.group = draft_.group(),
                                 .member = *member,
                                 .cluster = cluster(),
                                 .subscription_changed = subscription_changed_,
                                 .owned = request_.owned});
    const CurrentAssignment& next = step ? *step : member->current;
    if (step) {
      if (next.state == MemberState::unrevoked_partitions) {
        liveness_.set(
            id, Duty::revoke,
            turn_.now() + std::chrono::milliseconds(member->metadata.rebalance_timeout_ms));
      } else {
        liveness_.clear(id, Duty::revoke);
      }
      draft_.add_unseen(record::current(draft_.group().id(), id, next));
    }
    const auto times =
        times_of(draft_.group().time_names(), turn_.settings.consumer, turn_.context);
    liveness_.set(id, Duty::heartbeat, turn_.now() + times.session_timeout);

    ConsumerHeartbeatAnswer answer{
        .member_id = id,
        .member_epoch = next.epoch,
        .heartbeat_interval = times.heartbeat_interval,
    };
    if (joins() || is_full_request() ||
        (step && !same_partitions(member->current.assigned, next.assigned))) {
      auto& assignment = answer.assignment.emplace();
      for (const auto& [topic, partitions] : next.assigned) {
        auto& of_topic =
            assignment.emplace_back(TopicIdPartitions{.topic = topic, .partitions = {}});
        for (const auto& [partition, epoch] : partitions) of_topic.partitions.push_back(partition);
      }
    }
    return answer;
  }

  /// A client that is not sure what its coordinator knows sends everything.
  bool is_full_request() const {
    return request_.rebalance_timeout && request_.owned &&
           (request_.subscribed_names || request_.subscribed_regex);
  }

  static bool same_partitions(const Owned& a, const Owned& b) {
    return std::ranges::equal(a, b, [](const auto& x, const auto& y) {
      return x.first == y.first &&
             std::ranges::equal(
                 x.second, y.second, {}, [](const auto& p) { return p.first; },
                 [](const auto& p) { return p.first; });
    });
  }

  Draft& draft_;
  Liveness& liveness_;
  ClusterSeen& seen_;
  const ClientName& client_;
  ConsumerHeartbeat& request_;
  Turn& turn_;
  const ConsumerMember* known_ = nullptr;  // where it is not static
  bool bump_ = false;
  bool subscription_changed_ = false;
};

}  // namespace

Checked<> validate(const ConsumerHeartbeat& request, const ConsumerSettings& settings) {
  const std::int32_t epoch = request.member_epoch;
  if (epoch != member_epoch_join && blank(request.member_id)) {
    return refuse(ErrorCode::invalid_request, "MemberId must not be empty.");
  }
  if (blank(request.group)) {
    return refuse(ErrorCode::invalid_request, "GroupId must not be empty.");
  }
  if (blank_if_set(request.instance_id)) {
    return refuse(ErrorCode::invalid_request, "InstanceId must not be empty.");
  }
  if (blank_if_set(request.rack)) {
    return refuse(ErrorCode::invalid_request, "RackId must not be empty.");
  }
  if (epoch == member_epoch_join) {
    if (auto valid = validate_join(request); !valid) return valid;
  } else if (epoch == member_epoch_left_static && !request.instance_id) {
    return refuse(ErrorCode::invalid_request, "InstanceId must be set to leave for a while.");
  } else if (epoch < member_epoch_left_static) {
    return refuse(ErrorCode::invalid_request,
                  "MemberEpoch " + std::to_string(epoch) + " has no meaning.");
  }
  if (request.server_assignor &&
      std::ranges::find(settings.assignors, *request.server_assignor) == settings.assignors.end()) {
    return refuse(ErrorCode::unsupported_assignor, "ServerAssignor " + *request.server_assignor +
                                                       " is not one of " +
                                                       joined(settings.assignors) + ".");
  }
  return {};
}

Checked<ConsumerHeartbeatAnswer> heartbeat(Draft& draft, Liveness& liveness, ClusterSeen& seen,
                                           MemberHeartbeat& ask, Turn& turn) {
  return Heartbeat(draft, liveness, seen, ask, turn).run();
}

}  // namespace millrace::consumer_groups
