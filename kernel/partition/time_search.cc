#include "kernel/partition/time_search.h"

#include <algorithm>

#include <millrace/batch.h>

#include "kernel/partition/payload_reader.h"

namespace millrace::kernel {

namespace {

using Found = Result<std::optional<FoundRecord>>;

Found search_legacy(const Buffer& entry, Timestamp time, Offset from, const Codecs& codecs,
                    std::size_t opened_max) {
  MR_TRY(const auto messages, open_legacy_entry(entry, codecs, opened_max));
  for (const auto& message : messages) {
    if (message.offset >= from && message.timestamp >= time) {
      return FoundRecord{message.offset, message.timestamp};
    }
  }
  return std::nullopt;
}

Found search_records(const BatchHeader& header, const Buffer& batch, Timestamp time, Offset from,
                     const Codecs& codecs, std::size_t opened_max) {
  MR_TRY(const auto section, open_records(header, batch, codecs, opened_max));
  std::optional<FoundRecord> found;
  MR_CHECK(for_each_record(header, section, [&](const RecordView& record) {
    if (record.offset < from || record.timestamp < time) return true;
    found = FoundRecord{record.offset, record.timestamp};
    return false;
  }));
  return found;
}

Found search_batch(const Payload& batches, const FoundBatch& at, Timestamp time, Offset from,
                   const Codecs& codecs, std::size_t opened_max) {
  const auto& header = at.header;
  if (header.magic == 2 && (header.max_timestamp < time || header.last_offset() < from)) {
    return std::nullopt;
  }
  if (header.magic == 2 && header.log_append_time()) {
    return FoundRecord{std::max(header.base_offset, from), header.max_timestamp};
  }
  MR_TRY(const auto bytes, copy_range(batches, at.position, header.total_bytes()));
  return header.magic == 2 ? search_records(header, bytes, time, from, codecs, opened_max)
                           : search_legacy(bytes, time, from, codecs, opened_max);
}

}  // namespace

Result<TimeSearch> search_by_time(const Payload& batches, Timestamp time, Offset from,
                                  const Codecs& codecs, std::size_t opened_max) {
  TimeSearch search;
  Result<> failed;
  MR_CHECK(for_each_batch(batches, [&](const FoundBatch& batch) {
    search.next = batch.header.last_offset() + 1;
    auto found = search_batch(batches, batch, time, from, codecs, opened_max);
    if (!found) {
      failed = found.error();
      return false;
    }
    search.record = *found;
    return !search.record.has_value();
  }));
  MR_CHECK(failed);
  return search;
}

}  // namespace millrace::kernel
