// What a snapshot of a coordinator holds: the records that would make its state, each with what is
// known of it beside its bytes.
#pragma once

#include <millrace/aggregate.h>

namespace millrace::consumer_groups {

/// A record that counts; where it is in the log matters for offsets alone.
void put_record(SnapshotWriter& out, Bytes key, Bytes value, Offset logged = {});
/// One of a transaction that has not ended.
void put_pending_record(SnapshotWriter& out, Bytes key, Bytes value, Offset logged,
                        std::int64_t producer_id);

struct SnapshotRecord {
  RecordView event;  ///< views of the entry
  EventInfo info;
};
Result<SnapshotRecord> read_snapshot_entry(const SnapshotReader::Entry& entry);

}  // namespace millrace::consumer_groups
