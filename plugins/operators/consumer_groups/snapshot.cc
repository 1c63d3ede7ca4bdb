#include "snapshot.h"

#include <string>

#include <millrace/bytes.h>

namespace millrace::consumer_groups {
namespace {

// In front of the record's value: whether it is of a transaction, where it is, and whose. A later
// version that has other fields says so by another number than these two.
constexpr std::uint8_t decided = 0;
constexpr std::uint8_t of_transaction = 1;
constexpr std::size_t head_bytes = 1 + 8 + 8;

void put(SnapshotWriter& out, Bytes key, Bytes value, Offset logged, bool pending,
         std::int64_t producer_id) {
  MutableBuffer entry(head_bytes + value.size());
  auto* head = entry.space().data();
  store_be<std::uint8_t>(head, pending ? of_transaction : decided);
  store_be(head + 1, logged.value);
  store_be(head + 9, producer_id);
  entry.filled(head_bytes);
  entry.append(value);
  out.put(key, entry.bytes());
}

}  // namespace

void put_record(SnapshotWriter& out, Bytes key, Bytes value, Offset logged) {
  put(out, key, value, logged, false, -1);
}

void put_pending_record(SnapshotWriter& out, Bytes key, Bytes value, Offset logged,
                        std::int64_t producer_id) {
  put(out, key, value, logged, true, producer_id);
}

Result<SnapshotRecord> read_snapshot_entry(const SnapshotReader::Entry& entry) {
  if (entry.value.size() < head_bytes) {
    return Error{Errc::corrupt, "a snapshot's entry of " + std::to_string(entry.value.size()) +
                                    " bytes, expected at least " + std::to_string(head_bytes)};
  }
  const auto* head = entry.value.data();
  const auto kind = load_be<std::uint8_t>(head);
  if (kind > of_transaction) {
    return Error{Errc::incompatible, "a snapshot's entry of kind " + std::to_string(kind) +
                                         ", which this version does not know"};
  }
  SnapshotRecord record;
  record.info = {.offset = {load_be<std::int64_t>(head + 1)},
                 .replay = true,
                 .producer_id = load_be<std::int64_t>(head + 9),
                 .transactional = kind == of_transaction};
  record.event = {
      .offset = record.info.offset, .key = entry.key, .value = entry.value.subspan(head_bytes)};
  return record;
}

}  // namespace millrace::consumer_groups
