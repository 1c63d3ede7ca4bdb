#include "kernel/partition/compaction_filter.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <millrace/bytes.h>

#include "kernel/partition/compaction_records.h"
#include "kernel/partition/payload_reader.h"

namespace millrace::kernel {

namespace {

constexpr std::int16_t codec_bits = 0x07;
constexpr std::int16_t delete_horizon_bit = 0x40;

std::optional<Bytes> view_of(const std::optional<Buffer>& buffer) {
  return buffer ? std::optional<Bytes>(buffer->bytes()) : std::nullopt;
}

Error wrong_crc() { return {Errc::corrupt, "its crc is not that of its bytes"}; }

Error at_batch(Offset offset, const Error& error) {
  return {error.code, "batch at offset " + std::to_string(offset.value) + ": " + error.detail};
}

bool is_newest(std::optional<Bytes> key, Offset offset, const OffsetMap& map) {
  // Kafka drops records without a key too: they were there before the topic was compacted.
  return key && offset >= map.find(*key);
}

// ---- format V2 ----

CompactedBatch as_it_is(const Buffer& batch, const BatchHeader& header) {
  return {.parts = BatchParts{.header = batch.slice(0, batch_header_bytes),
                              .body = batch.slice(batch_header_bytes),
                              .base_offset = header.base_offset,
                              .last_offset = header.last_offset(),
                              .max_timestamp = header.max_timestamp}};
}

// With a delete horizon, which is when its tombstones or its marker may go.
CompactedBatch waiting(const Buffer& batch, const BatchHeader& header) {
  auto left = as_it_is(batch, header);
  left.horizon = header.base_timestamp;
  return left;
}

BatchParts with_body(BatchHeader header, Buffer body) {
  header.batch_length =
      static_cast<std::int32_t>(batch_header_bytes - batch_prefix_bytes + body.size());
  MutableBuffer bytes(batch_header_bytes);
  write_batch_header(header, bytes.space());
  header.crc = batch_crc(bytes.space().first(batch_header_bytes), body);
  write_batch_header(header, bytes.space());
  bytes.filled(batch_header_bytes);
  return {.header = std::move(bytes).freeze(),
          .body = std::move(body),
          .base_offset = header.base_offset,
          .last_offset = header.last_offset(),
          .max_timestamp = header.max_timestamp};
}

// The producer's last batch, which says what its next sequence is; or the marker that has begun
// its epoch, where it has sent nothing since.
bool is_end_of_producer(const BatchHeader& header, const ProducerEnds& producers) {
  if (header.producer_id < 0) return false;
  const auto found = producers.find(header.producer_id);
  if (found == producers.end()) return false;
  const auto& end = found->second;
  if (end.last_offset != Offset{}) return end.last_offset == header.last_offset();
  return header.control() && end.epoch == header.producer_epoch;
}

bool must_stay(const BatchHeader& header, const CompactionRules& rules) {
  return is_end_of_producer(header, rules.producers) || header.last_offset() + 1 == rules.end;
}

CompactedBatch without_records(const BatchHeader& header, const CompactionRules& rules) {
  CompactedBatch left{.changed = true, .removed = header.record_count};
  if (!must_stay(header, rules)) return left;
  auto empty = header;
  empty.attributes &= static_cast<std::int16_t>(~(codec_bits | delete_horizon_bit));
  empty.base_timestamp = {};
  empty.record_count = 0;
  left.parts = with_body(empty, {});
  return left;
}

// The records that stay, as they stood or, where the batch gets its delete horizon now, counted
// from that.
Result<BatchParts> rebuilt(BatchHeader header, const std::vector<RawRecord>& kept,
                           std::optional<Timestamp> horizon, const Codecs& codecs) {
  RecordSection section;
  Timestamp newest;
  for (const auto& record : kept) {
    const auto time = record.timestamp(header.base_timestamp);
    newest = std::max(newest, time);
    if (horizon) {
      section.add(record, time, *horizon);
    } else {
      section.add(record);
    }
  }
  if (horizon) {
    header.base_timestamp = *horizon;
    header.attributes |= delete_horizon_bit;
  }
  // With LogAppendTime the header has everybody's.
  if (!header.log_append_time()) header.max_timestamp = newest;
  header.record_count = static_cast<std::int32_t>(kept.size());
  auto body = std::move(section).finish();
  if (header.compression() != CompressionId::none) {
    const auto* codec = codecs.find(header.compression());
    MR_ASSERT(codec);  // it has opened the batch
    MR_TRY(body, codec->compress(body));
  }
  return with_body(header, std::move(body));
}

Result<CompactedBatch> compact_marker(const Buffer& batch, const BatchHeader& header,
                                      const CompactionRules& rules, TransactionWalk& transactions) {
  std::optional<TransactionMarker> marker;
  if (header.record_count > 0) {
    MR_TRY(marker, read_marker(header, batch));
  }
  const auto ends = transactions.ends(header, marker);
  if (header.record_count == 0) {
    return must_stay(header, rules) ? as_it_is(batch, header) : without_records(header, rules);
  }
  if (header.base_offset >= rules.mapped) return as_it_is(batch, header);
  if (!ends.alone) {
    auto left = as_it_is(batch, header);
    if (ends.waits) left.horizon = rules.now;
    return left;
  }
  if (!header.has_delete_horizon()) {
    const auto section = batch.slice(batch_header_bytes);
    MR_TRY(const auto records, raw_records(header, section));
    const auto horizon = delete_horizon(rules.now, rules.delete_retention_ms);
    MR_TRY(auto parts, rebuilt(header, records, horizon, {}));
    return CompactedBatch{.parts = std::move(parts), .changed = true, .horizon = horizon};
  }
  // A row that says what the marker ends goes first: without the marker it would hide what its
  // producer has written since.
  if (ends.indexed || header.base_timestamp > rules.now) return waiting(batch, header);
  return without_records(header, rules);
}

Result<CompactedBatch> compact_records(const Buffer& batch, const BatchHeader& header,
                                       const CompactionRules& rules, const BatchOpening& opening,
                                       const OffsetMap& map) {
  if (header.base_offset >= rules.mapped) return as_it_is(batch, header);
  if (header.record_count == 0) {
    return must_stay(header, rules) ? as_it_is(batch, header) : without_records(header, rules);
  }
  const bool tombstones_stay = !header.has_delete_horizon() || rules.now < header.base_timestamp;
  MR_TRY(const auto section, open_records(header, batch, opening.codecs, opening.opened_max));
  MR_TRY(auto records, raw_records(header, section));
  bool tombstones = false;
  std::erase_if(records, [&](const RawRecord& record) {
    const auto offset = record.offset(header.base_offset);
    if (offset >= rules.mapped) return false;  // a later pass counts its horizon
    if (!is_newest(record.key, offset, map)) return true;
    if (!record.has_value && !tombstones_stay) return true;
    tombstones = tombstones || !record.has_value;
    return false;
  });
  if (records.empty()) return without_records(header, rules);
  std::optional<Timestamp> begins;
  if (tombstones && !header.has_delete_horizon()) {
    begins = delete_horizon(rules.now, rules.delete_retention_ms);
  }
  const auto removed = header.record_count - static_cast<std::int64_t>(records.size());
  if (removed == 0 && !begins) {
    return tombstones ? waiting(batch, header) : as_it_is(batch, header);
  }
  MR_TRY(auto parts, rebuilt(header, records, begins, opening.codecs));
  CompactedBatch left{.parts = std::move(parts), .changed = true, .removed = removed};
  if (tombstones) left.horizon = begins.value_or(header.base_timestamp);
  return left;
}

Result<CompactedBatch> compact_v2(const Buffer& batch, const CompactionRules& rules,
                                  const BatchOpening& opening, TransactionWalk& transactions,
                                  const OffsetMap& map) {
  MR_TRY(const auto header, read_batch_header(batch));
  auto compacted = [&]() -> Result<CompactedBatch> {
    if (!verify_crc(batch)) return wrong_crc();
    if (header.control()) return compact_marker(batch, header, rules, transactions);
    const bool stays = must_stay(header, rules);
    if (transactions.aborted(header, stays)) {
      if (header.record_count > 0 || !stays) {
        return without_records(header, rules);
      }
      return as_it_is(batch, header);
    }
    return compact_records(batch, header, rules, opening, map);
  }();
  if (!compacted) return at_batch(header.base_offset, compacted.error());
  return compacted;
}

// ---- formats V0 and V1 ----

Result<CompactedBatch> compact_set(const Buffer& set, const CompactionRules& rules,
                                   const BatchOpening& opening, const OffsetMap& map) {
  MR_TRY(const auto head, read_entry_head(set));
  auto messages = open_legacy_entry(set, opening.codecs, opening.set_opened_max);
  if (!messages) return at_batch(head.offset, messages.error());
  const auto stays = [&](const LegacyMessage& message) {
    if (message.offset >= rules.mapped) return true;
    if (message.offset + 1 == rules.end) return true;  // it cannot be empty
    return is_newest(view_of(message.key), message.offset, map) &&
           (message.value || rules.old_tombstones);
  };
  CompactedBatch left;
  BatchParts parts{.base_offset = {}, .last_offset = head.offset};
  MessageSetBuilder builder({.magic = head.magic,
                             .compression = legacy_compression(set),
                             .log_append_time = messages->front().log_append_time});
  for (const auto& message : *messages) {
    if (!stays(message)) {
      ++left.removed;
      continue;
    }
    if (parts.base_offset == Offset{}) parts.base_offset = message.offset;
    parts.last_offset = message.offset;
    parts.max_timestamp = std::max(parts.max_timestamp, message.timestamp);
    builder.add(message.offset, message.timestamp, view_of(message.key), view_of(message.value));
  }
  left.changed = left.removed > 0;
  if (parts.base_offset == Offset{}) return left;
  parts.body = set;
  if (left.changed) {
    auto built = std::move(builder).finish(opening.codecs);
    if (!built) return at_batch(head.offset, built.error());
    parts.body = *std::move(built);
  }
  left.parts = std::move(parts);
  return left;
}

// ---- the map ----

// False: the map is full.
Result<bool> map_v2(const Buffer& batch, const BatchHeader& header, Offset from,
                    const BatchOpening& opening, OffsetMap& map) {
  MR_TRY(const auto section, open_records(header, batch, opening.codecs, opening.opened_max));
  MR_TRY(const auto records, raw_records(header, section));
  return std::ranges::all_of(records, [&](const RawRecord& record) {
    const auto offset = record.offset(header.base_offset);
    return offset < from || !record.key || map.put(*record.key, offset);
  });
}

Result<bool> map_set(const Buffer& set, Offset from, const BatchOpening& opening, OffsetMap& map) {
  MR_TRY(const auto messages, open_legacy_entry(set, opening.codecs, opening.set_opened_max));
  return std::ranges::all_of(messages, [&](const LegacyMessage& message) {
    return message.offset < from || !message.key || map.put(*message.key, message.offset);
  });
}

Result<bool> map_batch(const Buffer& batch, const BatchHeader& header, Offset from,
                       const BatchOpening& opening, TransactionWalk& transactions, OffsetMap& map) {
  if (header.magic < 2) return map_set(batch, from, opening, map);
  if (!verify_crc(batch)) return wrong_crc();
  if (header.control()) {
    std::optional<TransactionMarker> marker;
    if (header.record_count > 0) {
      MR_TRY(marker, read_marker(header, batch));
    }
    transactions.ends(header, marker);
    return true;
  }
  if (transactions.aborted(header) || header.record_count == 0) return true;
  return map_v2(batch, header, from, opening, map);
}

}  // namespace

Timestamp delete_horizon(Timestamp now, std::int64_t delete_retention_ms) {
  std::int64_t horizon = 0;
  if (__builtin_add_overflow(now.ms, delete_retention_ms, &horizon)) {
    horizon = std::numeric_limits<std::int64_t>::max();
  }
  return {horizon};
}

Result<MappedBatches> map_batches(const Payload& batches, Offset from, const BatchOpening& opening,
                                  TransactionWalk& transactions, OffsetMap& map) {
  MappedBatches mapped;
  Result<> failed;
  MR_CHECK(for_each_batch(batches, [&](const FoundBatch& found) {
    const auto& header = found.header;
    const auto bytes = copy_range(batches, found.position, header.total_bytes());
    auto taken = bytes ? map_batch(*bytes, header, from, opening, transactions, map)
                       : Result<bool>(bytes.error());
    if (!taken) {
      failed = at_batch(header.base_offset, taken.error());
      return false;
    }
    mapped.full = !*taken;
    if (*taken) mapped.next = header.last_offset() + 1;
    return *taken;
  }));
  MR_CHECK(failed);
  return mapped;
}

Result<CompactedBatch> compact_batch(const Buffer& batch, const CompactionRules& rules,
                                     const BatchOpening& opening, TransactionWalk& transactions,
                                     const OffsetMap& map) {
  MR_TRY(const auto head, read_entry_head(batch));
  return head.magic < 2 ? compact_set(batch, rules, opening, map)
                        : compact_v2(batch, rules, opening, transactions, map);
}

}  // namespace millrace::kernel
