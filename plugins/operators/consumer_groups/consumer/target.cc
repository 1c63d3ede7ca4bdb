#include "target.h"

#include <map>
#include <utility>

#include "group_records.h"
#include "subscriptions.h"

namespace millrace::consumer_groups {
namespace {

bool due(const ConsumerGroup& group, Turn& turn) {
  if (group.epoch() <= group.assignment_epoch()) return false;
  const auto since = turn.wall().ms - group.assignment_timestamp();
  const auto times = times_of(group.time_names(), turn.settings.consumer, turn.context);
  const auto interval =
      std::chrono::duration_cast<std::chrono::milliseconds>(times.assignment_interval);
  // A clock that was set back is no reason to wait.
  return since < 0 || since >= interval.count();
}

}  // namespace

const Assignor& assignor_of(const ConsumerGroup& group, const ConsumerSettings& settings) {
  std::map<std::string_view, std::size_t> votes;
  for (const auto& [id, member] : group.members()) {
    if (member->metadata.server_assignor) ++votes[*member->metadata.server_assignor];
  }
  const Assignor* chosen = nullptr;
  std::size_t most = 0;
  for (const auto& [name, count] : votes) {
    const Assignor* assignor = find_assignor(name);
    if (assignor != nullptr && count > most) {
      chosen = assignor;
      most = count;
    }
  }
  return chosen ? *chosen : *find_assignor(settings.assignors.front());
}

void update_target(Draft& draft, Turn& turn) {
  const ConsumerGroup& group = draft.group();
  if (!due(group, turn)) return;
  const ClusterView& cluster = turn.context.cluster();

  std::vector<AssignorMember> members;
  members.reserve(group.members().size());
  for (const auto& [id, member] : group.members()) {
    members.push_back({.id = id,
                       .instance_id = member->metadata.instance_id,
                       .rack = member->metadata.rack,
                       .topics = topics_of(member->metadata, group.resolved(), cluster),
                       .before = group.target(id)});
  }
  auto assignments = assignor_of(group, turn.settings.consumer).assign(members);

  // The draft changes under what `members` views.
  std::vector<std::pair<std::string, Assignment>> changed;
  for (std::size_t i = 0; i < members.size(); ++i) {
    const Assignment* before = members[i].before;
    if (before == nullptr || *before != assignments[i]) {
      changed.emplace_back(members[i].id, std::move(assignments[i]));
    }
  }
  const std::int32_t epoch = group.epoch();
  for (const auto& [member, assignment] : changed) {
    draft.add(record::target(draft.group().id(), member, assignment));
  }
  draft.add(record::target_epoch(draft.group().id(), epoch, turn.wall().ms));
}

}  // namespace millrace::consumer_groups
