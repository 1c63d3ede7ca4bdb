// Offset records: how they are written, and what earlier versions of Kafka have written.
#include <utility>

#include "commits.h"
#include "snapshot.h"

namespace millrace::consumer_groups {
namespace {

using kafka::OffsetCommitKey;
using kafka::OffsetCommitValue;

OffsetCommitKey key_of(std::string_view group, std::string_view topic, std::int32_t partition) {
  OffsetCommitKey key;
  key.group = group;
  key.topic = topic;
  key.partition = partition;
  return key;
}

/// Views `committed`. Version 4, which adds the topic's id, cannot be read by Kafka before 4.0, to
/// which a data directory may go back.
std::pair<OffsetCommitValue, std::int16_t> value_of(const Committed& committed) {
  OffsetCommitValue value;
  value.offset = committed.offset.value;
  value.leader_epoch = committed.leader_epoch.value;
  value.metadata = committed.metadata;
  value.commit_timestamp = committed.committed.ms;
  value.expire_timestamp = committed.expires.ms;
  return {value, committed.expires.ms >= 0 ? 1 : 3};
}

}  // namespace

Result<> emit_commit(Turn& turn, std::string_view group, std::string_view topic,
                     std::int32_t partition, const Committed& committed) {
  const auto [value, version] = value_of(committed);
  return turn.emit(key_of(group, topic, partition), value, version);
}

Result<> emit_offset_tombstone(Turn& turn, std::string_view group, std::string_view topic,
                               std::int32_t partition) {
  return turn.emit_tombstone(key_of(group, topic, partition));
}

Result<OffsetRecord> read_offset_record(const RecordView& event, const EventInfo& info) {
  // Keys of both kinds have the same fields.
  MR_TRY(const auto key, decode_key<OffsetCommitKey>(*event.key));
  OffsetRecord record{
      .group = std::string(key.group), .topic = std::string(key.topic), .partition = key.partition};
  if (!event.value) return record;
  MR_TRY(const auto value, decode_value<OffsetCommitValue>(*event.value));
  record.committed = Committed{
      .offset = {value.offset},
      .leader_epoch = {value.leader_epoch},
      .metadata = std::string(value.metadata),
      .committed = {value.commit_timestamp},
      .expires = {value.expire_timestamp},
      .topic_id = value.topic_id,
      .logged = info.offset,
  };
  return record;
}

Result<> write_offsets(const Group& group, SnapshotWriter& out) {
  for (const auto& [topic, partitions] : group.offsets.topics()) {
    for (const auto& [partition, committed] : partitions) {
      MR_TRY(const auto key, encode_key(key_of(group.id, topic, partition)));
      const auto [value, version] = value_of(committed);
      MR_TRY(const auto bytes, encode_value(value, version));
      put_record(out, key, bytes, committed.logged);
    }
  }
  for (const auto& [producer, places] : group.offsets.pending()) {
    for (const auto& [place, committed] : places) {
      MR_TRY(const auto key, encode_key(key_of(group.id, place.topic, place.partition)));
      const auto [value, version] = value_of(committed);
      MR_TRY(const auto bytes, encode_value(value, version));
      put_pending_record(out, key, bytes, committed.logged, producer);
    }
  }
  return {};
}

}  // namespace millrace::consumer_groups
