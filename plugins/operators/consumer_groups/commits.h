// Offsets: committed, asked for, deleted. What a request may say of them, and what is answered.
#pragma once

#include <millrace/groups.h>

#include "group.h"
#include "topics_in_use.h"
#include "turn.h"

namespace millrace::consumer_groups {

// `group` is nullptr where there is none.
OffsetCommitAnswer commit_offsets(Group* group, const OffsetCommitRequest& request,
                                  TopicsInUse& topics, Turn& turn);
OffsetsDeleted delete_offsets(const Group* group, const OffsetDeletion& request, Turn& turn);
GroupOffsets fetch_offsets(const Group* group, const FetchOffsets& ask, const ClusterView& cluster);

/// An offset record, in any version that Kafka has written.
struct OffsetRecord {
  std::string group;
  std::string topic;
  std::int32_t partition = 0;
  std::optional<Committed> committed;  ///< none: a tombstone
};
Result<OffsetRecord> read_offset_record(const RecordView& event, const EventInfo& info);
Result<> emit_commit(Turn& turn, std::string_view group, std::string_view topic,
                     std::int32_t partition, const Committed& committed);
Result<> emit_offset_tombstone(Turn& turn, std::string_view group, std::string_view topic,
                               std::int32_t partition);
/// What a snapshot keeps of a group's offsets.
Result<> write_offsets(const Group& group, SnapshotWriter& out);

}  // namespace millrace::consumer_groups
