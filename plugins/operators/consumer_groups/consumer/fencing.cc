#include "fencing.h"

#include <utility>

#include "group_records.h"
#include "subscriptions.h"

namespace millrace::consumer_groups {
namespace {

void remove(Draft& draft, std::string_view member) {
  const std::string group = draft.group().id();
  draft.add(record::current_end(group, member));
  draft.add(record::target_end(group, member));
  draft.add(record::member_metadata_end(group, member));
}

/// Commits of its successor count, whatever the epoch in which it comes back.
void forget_epochs(Owned& owned) {
  for (auto& [topic, partitions] : owned) {
    for (auto& [partition, epoch] : partitions) epoch = 0;
  }
}

}  // namespace

void fence(Draft& draft, const std::set<std::string, std::less<>>& members,
           const ClusterView& cluster) {
  if (members.empty()) return;
  for (const auto& member : members) remove(draft, member);
  std::vector<std::string> unwanted;
  for (const auto& [regex, resolved] : draft.group().resolved()) {
    if (draft.group().members_with_regex(regex) == 0) unwanted.push_back(regex);
  }
  for (const auto& regex : unwanted) draft.add(record::regex_end(draft.group().id(), regex));
  bump_group_epoch(draft, cluster);
  if (draft.group().members().empty()) {
    // Nothing to compute, and whoever comes next need not wait.
    draft.add(record::target_epoch(draft.group().id(), draft.group().epoch(), 0));
  }
}

void leave_for_a_while(Draft& draft, const ConsumerMember& member) {
  CurrentAssignment away = member.current;
  away.epoch = member_epoch_left_static;
  away.revoking.clear();
  forget_epochs(away.assigned);
  draft.add(record::current(draft.group().id(), member.id, away));
}

const ConsumerMember& replace_member(Draft& draft, const ConsumerMember& gone,
                                     std::string_view successor) {
  const std::string group = draft.group().id();
  const MemberMetadata metadata = gone.metadata;
  CurrentAssignment current = gone.current;
  current.epoch = member_epoch_join;
  current.previous_epoch = 0;
  const Assignment* target = draft.group().target(gone.id);
  const Assignment assignment = target ? *target : Assignment{};
  remove(draft, std::string(gone.id));
  draft.add(record::member_metadata(group, successor, metadata));
  draft.add(record::target(group, successor, assignment));
  draft.add(record::current(group, successor, current));
  const ConsumerMember* member = draft.group().find(successor);
  // Only a draft that has failed lacks it, and that one is never emitted.
  static const ConsumerMember none;
  return member ? *member : none;
}

void end_group(Draft& draft) {
  const std::string group = draft.group().id();
  const ConsumerGroup before = draft.group();
  for (const auto& [id, member] : before.members())
    draft.add_unseen(record::current_end(group, id));
  for (const auto& [id, member] : before.members()) draft.add_unseen(record::target_end(group, id));
  draft.add_unseen(record::target_epoch_end(group));
  for (const auto& [id, member] : before.members()) {
    draft.add_unseen(record::member_metadata_end(group, id));
  }
  for (const auto& [regex, resolved] : before.resolved()) {
    draft.add_unseen(record::regex_end(group, regex));
  }
  if (before.has_partition_metadata()) draft.add_unseen(record::partition_metadata_end(group));
  draft.add_unseen(record::group_epoch_end(group));
}

}  // namespace millrace::consumer_groups
