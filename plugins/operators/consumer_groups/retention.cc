#include "retention.h"

#include <algorithm>
#include <chrono>

#include "commits.h"

namespace millrace::consumer_groups {
namespace {

bool has_expired(const Group& group, const Committed& committed, const Turn& turn) {
  const auto now = turn.wall();
  if (committed.expires.ms >= 0) return now >= committed.expires;
  const auto from =
      group.members ? group.members->retention_from(committed.committed) : committed.committed;
  if (!from) return false;
  using std::chrono::milliseconds;
  const auto retention =
      std::chrono::duration_cast<milliseconds>(turn.settings.offsets_retention).count();
  return now.ms - std::max<std::int64_t>(from->ms, 0) >= retention;
}

}  // namespace

bool expire_offsets_of(const Group& group, Turn& turn) {
  bool all = group.offsets.pending().empty();
  for (const auto& [topic, partitions] : group.offsets.topics()) {
    if (group.members && group.members->subscribed_to(topic)) {
      all = false;
      continue;
    }
    for (const auto& [partition, committed] : partitions) {
      const bool ends = has_room(turn) && has_expired(group, committed, turn) &&
                        !group.offsets.is_pending(topic, partition) &&
                        emit_offset_tombstone(turn, group.id, topic, partition).has_value();
      all = all && ends;
    }
  }
  return all;
}

void drop_topics(const Group& group, const DeletedTopics& deleted, Turn& turn) {
  for (const auto& [topic, until] : deleted) {
    const auto of_topic = group.offsets.topics().find(topic);
    if (of_topic == group.offsets.topics().end()) continue;
    for (const auto& [partition, committed] : of_topic->second) {
      if (!has_room(turn)) return;
      if (committed.logged > until) continue;
      (void)emit_offset_tombstone(turn, group.id, topic, partition);
    }
  }
}

Result<> remove_group(Group& group, Turn& turn) {
  for (const auto& [topic, partitions] : group.offsets.topics()) {
    for (const auto& [partition, committed] : partitions) {
      MR_CHECK(emit_offset_tombstone(turn, group.id, topic, partition));
    }
  }
  for (const auto& [producer, places] : group.offsets.pending()) {
    for (const auto& [place, committed] : places) {
      MR_CHECK(emit_offset_tombstone(turn, group.id, place.topic, place.partition));
    }
  }
  if (group.members) MR_CHECK(group.members->emit_removal(turn));
  return {};
}

}  // namespace millrace::consumer_groups
