#include "describe.h"

#include <algorithm>

#include "assignor.h"
#include "target.h"

namespace millrace::consumer_groups {
namespace {

constexpr std::int8_t type_classic = 0;
constexpr std::int8_t type_consumer = 1;

void add(ConsumerAssignment& out, const ClusterView& cluster, const Uuid& id,
         Partitions partitions) {
  const ClusterTopic* topic = cluster.find(id);
  if (topic == nullptr || partitions.empty()) return;
  out.topics.push_back({.id = id, .name = topic->name, .partitions = std::move(partitions)});
}

}  // namespace

std::string_view state_of(const ConsumerGroup& group) {
  if (group.members().empty()) return "Empty";
  if (group.epoch() > group.assignment_epoch()) return "Assigning";
  const bool settled = std::ranges::all_of(group.members(), [&](const auto& entry) {
    return entry.second->current.reconciled_to(group.assignment_epoch());
  });
  return settled ? "Stable" : "Reconciling";
}

void describe(const ConsumerGroup& group, const ClusterView& cluster,
              const ConsumerSettings& settings, ConsumerGroupDescribed& out) {
  out.state = state_of(group);
  out.group_epoch = group.epoch();
  out.assignment_epoch = group.assignment_epoch();
  out.assignor = assignor_of(group, settings).name();
  for (const auto& [id, member] : group.members()) {
    auto& shown = out.members.emplace_back();
    shown.member_id = id;
    shown.instance_id = member->metadata.instance_id;
    shown.rack = member->metadata.rack;
    shown.member_epoch = member->current.epoch;
    shown.client_id = member->metadata.client_id;
    shown.client_host = member->metadata.client_host;
    shown.subscribed_names = member->metadata.subscribed_names;
    if (!member->metadata.subscribed_regex.empty()) {
      shown.subscribed_regex = member->metadata.subscribed_regex;
    }
    shown.type = member->is_classic() ? type_classic : type_consumer;
    for (const auto& [topic, partitions] : member->current.assigned) {
      Partitions assigned;
      for (const auto& [partition, epoch] : partitions) assigned.push_back(partition);
      add(shown.assignment, cluster, topic, std::move(assigned));
    }
    if (const Assignment* target = group.target(id)) {
      for (const auto& [topic, partitions] : *target) add(shown.target, cluster, topic, partitions);
    }
  }
}

}  // namespace millrace::consumer_groups
