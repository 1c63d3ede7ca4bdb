#include "assignor.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "range_assignor.h"
#include "uniform_assignor.h"

namespace millrace::consumer_groups {

const Assignor* find_assignor(std::string_view name) noexcept {
  static const UniformAssignor uniform;
  static const RangeAssignor range;
  if (name == uniform.name()) return &uniform;
  if (name == range.name()) return &range;
  return nullptr;
}

std::vector<std::size_t> serving_order(std::span<const AssignorMember> members) {
  std::vector<std::size_t> order(members.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  const auto rank = [&](std::size_t i) {
    const auto& member = members[i];
    return std::tuple(!member.instance_id, member.instance_id.value_or(member.id), member.id);
  };
  std::ranges::sort(order, {}, rank);
  return order;
}

std::vector<SubscribedTopic> subscribed_topics(std::span<const AssignorMember> members,
                                               std::span<const std::size_t> order) {
  std::map<Uuid, SubscribedTopic> by_id;
  for (const std::size_t i : order) {
    for (const ClusterTopic* topic : members[i].topics) {
      auto& subscribed = by_id[topic->id];
      subscribed.topic = topic;
      subscribed.subscribers.push_back(i);
    }
  }
  std::vector<SubscribedTopic> topics;
  topics.reserve(by_id.size());
  for (auto& [id, subscribed] : by_id) topics.push_back(std::move(subscribed));
  return topics;
}

bool in_rack(const AssignorMember& member, const ClusterTopic& topic, std::int32_t partition) {
  if (!member.rack) return false;
  const auto& racks = topic.racks[static_cast<std::size_t>(partition)];
  return std::ranges::find(racks, *member.rack) != racks.end();
}

}  // namespace millrace::consumer_groups
