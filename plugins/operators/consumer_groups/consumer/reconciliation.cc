#include "reconciliation.h"

#include <algorithm>
#include <set>
#include <utility>

#include "subscriptions.h"

namespace millrace::consumer_groups {
namespace {

class Step {
 public:
  explicit Step(const Reconciliation& input) : in_(input), now_(input.member.current) {
    for (const auto* topic : topics_of(in_.member.metadata, in_.group.resolved(), in_.cluster)) {
      subscribed_.insert(topic->id);
    }
  }

  std::optional<CurrentAssignment> take() {
    switch (now_.state) {
      case MemberState::stable:
        if (now_.epoch != in_.group.assignment_epoch()) return towards_target();
        return in_.subscription_changed ? without_unsubscribed() : std::nullopt;
      case MemberState::unrevoked_partitions:
        if (still_owns(now_.revoking)) {
          return in_.subscription_changed ? without_unsubscribed() : std::nullopt;
        }
        return towards_target();
      case MemberState::unreleased_partitions:
      case MemberState::unknown: return towards_target();
    }
    return std::nullopt;
  }

 private:
  /// Until it tells, it has what it had.
  bool still_owns(const Owned& partitions) const {
    if (!in_.owned) return true;
    return std::ranges::any_of(*in_.owned, [&](const TopicIdPartitions& topic) {
      return std::ranges::any_of(
          topic.partitions, [&](std::int32_t p) { return contains(partitions, topic.topic, p); });
    });
  }

  /// No step when nothing but the previous epoch would differ.
  std::optional<CurrentAssignment> at(std::int32_t epoch, MemberState state, Owned assigned,
                                      Owned revoking) const {
    if (epoch == now_.epoch && state == now_.state && assigned == now_.assigned &&
        revoking == now_.revoking) {
      return std::nullopt;
    }
    return CurrentAssignment{.epoch = epoch,
                             .previous_epoch = now_.epoch,
                             .state = state,
                             .assigned = std::move(assigned),
                             .revoking = std::move(revoking)};
  }

  std::optional<CurrentAssignment> without_unsubscribed() const {
    Owned assigned = now_.assigned;
    Owned revoking = now_.revoking;
    for (const auto& [topic, partitions] : now_.assigned) {
      if (subscribed_.contains(topic)) continue;
      assigned.erase(topic);
      revoking[topic].insert(partitions.begin(), partitions.end());
    }
    if (assigned.size() == now_.assigned.size()) return std::nullopt;
    if (still_owns(revoking)) {
      return at(now_.epoch, MemberState::unrevoked_partitions, std::move(assigned),
                std::move(revoking));
    }
    return at(now_.epoch, now_.state, std::move(assigned), now_.revoking);
  }

  std::optional<CurrentAssignment> towards_target() const {
    Owned kept;
    Owned revoking = now_.assigned;
    std::vector<std::pair<Uuid, std::int32_t>> taken;
    bool waits = false;
    if (const Assignment* target = in_.group.target(in_.member.id)) {
      for (const auto& [topic, partitions] : *target) {
        if (!subscribed_.contains(topic)) continue;
        for (const std::int32_t partition : partitions) {
          if (keep(topic, partition, kept, revoking)) continue;
          const auto owner = in_.group.owner(topic, partition);
          if (owner.empty() || owner == in_.member.id) {
            taken.emplace_back(topic, partition);
          } else {
            waits = true;
          }
        }
      }
    }
    if (!revoking.empty() && still_owns(revoking)) {
      return at(now_.epoch, MemberState::unrevoked_partitions, std::move(kept),
                std::move(revoking));
    }
    const std::int32_t epoch = in_.group.assignment_epoch();
    for (const auto& [topic, partition] : taken) kept[topic][partition] = epoch;
    return at(epoch, waits ? MemberState::unreleased_partitions : MemberState::stable,
              std::move(kept), {});
  }

  /// Moves a partition that it has from `revoking` to `kept`.
  static bool keep(const Uuid& topic, std::int32_t partition, Owned& kept, Owned& revoking) {
    const auto of_topic = revoking.find(topic);
    if (of_topic == revoking.end()) return false;
    auto has = of_topic->second.extract(partition);
    if (has.empty()) return false;
    kept[topic].insert(std::move(has));
    if (of_topic->second.empty()) revoking.erase(of_topic);
    return true;
  }

  const Reconciliation& in_;
  const CurrentAssignment& now_;
  std::set<Uuid> subscribed_;
};

}  // namespace

std::optional<CurrentAssignment> reconcile(const Reconciliation& input) {
  // What every heartbeat of a settled group comes to.
  if (!input.subscription_changed &&
      input.member.current.reconciled_to(input.group.assignment_epoch())) {
    return std::nullopt;
  }
  return Step(input).take();
}

bool owns_only_assigned(const std::optional<std::vector<TopicIdPartitions>>& owned,
                        const Owned& assigned) {
  if (!owned) return false;
  return std::ranges::all_of(*owned, [&](const TopicIdPartitions& topic) {
    return std::ranges::all_of(topic.partitions,
                               [&](std::int32_t p) { return contains(assigned, topic.topic, p); });
  });
}

bool waits_for_others(const ConsumerGroup& group, const ConsumerMember& member) {
  const Assignment* target = group.target(member.id);
  if (member.current.state != MemberState::unreleased_partitions || target == nullptr) return false;
  for (const auto& [topic, partitions] : *target) {
    for (const std::int32_t partition : partitions) {
      const auto owner = group.owner(topic, partition);
      if (!owner.empty() && owner != member.id) return true;
    }
  }
  return false;
}

}  // namespace millrace::consumer_groups
