// Reads a whole partition as a client does, transactions and all.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "kernel/partition/payload_reader.h"
#include "tests/unit/kernel/partition/stored_partition.h"

namespace millrace::kernel::testing {

struct Written {
  std::string key;
  std::optional<std::string> value;
  std::int64_t time = 0;
  bool aborted = false;
  bool operator==(const Written&) const = default;
};
using Records = std::map<std::int64_t, Written>;  // by offset
using Values = std::map<std::string, std::string>;

inline Values values_of(const Records& records) {
  Values values;
  for (const auto& [offset, record] : records) {
    if (record.aborted) continue;
    if (record.value) {
      values[record.key] = *record.value;
    } else {
      values.erase(record.key);
    }
  }
  return values;
}

/// What a consumer makes of answers: it leaves out what belongs to aborted transactions.
class Consumer {
 public:
  explicit Consumer(StoredPartition& stored) : stored_(stored) {}

  Records read_all(Isolation isolation) {
    Records records;
    read_into(records, isolation);
    return records;
  }
  /// Up to where it has come.
  Offset read_to_end(Isolation isolation) {
    Records records;
    return read_into(records, isolation);
  }

 private:
  Offset read_into(Records& records, Isolation isolation) {
    auto next = stored_.partition().log_start().value;
    const auto end = isolation == Isolation::read_committed
                         ? stored_.partition().offsets().last_stable.value
                         : stored_.partition().offsets().high_watermark.value;
    while (next < end) {
      auto fetched = stored_.fetch_raw(next, isolation);
      EXPECT_EQ(fetched.error, ErrorCode::none);
      const auto bytes = fetched.records.flatten();
      EXPECT_TRUE(bytes);
      if (!bytes || bytes->empty()) break;  // a gap up to the end
      aborted_ = std::move(fetched.aborted).value_or(std::vector<AbortedTransaction>());
      hidden_.clear();
      for (std::size_t at = 0; at < bytes->size();) {
        const auto entry = bytes->slice(at);
        const auto head = read_entry_head(entry);
        if (!head) break;
        const auto last = take(entry.slice(0, head->total_bytes), next, isolation, records);
        EXPECT_GE(last + 1, next);
        next = std::max(next, last + 1);
        at += head->total_bytes;
      }
    }
    return {next};
  }

  std::int64_t take(const Buffer& entry, std::int64_t from, Isolation isolation, Records& records) {
    const auto add = [&](std::int64_t offset, std::optional<Bytes> key, std::optional<Bytes> value,
                         std::int64_t time) {
      if (offset < from) return;
      Written written{.key = std::string(as_text(*key)), .value = {}, .time = time};
      if (value) written.value = as_text(*value);
      EXPECT_TRUE(records.emplace(offset, written).second) << offset;
    };
    const auto view = [](const std::optional<Buffer>& of) {
      return of ? std::optional<Bytes>(*of) : std::nullopt;
    };
    if (read_entry_head(entry)->magic < 2) {
      const auto messages = open_legacy_entry(entry, loaded_codecs(), 1 << 20);
      EXPECT_TRUE(messages);
      for (const auto& one : *messages) {
        add(one.offset.value, view(one.key), view(one.value), one.timestamp.ms);
      }
      return messages->back().offset.value;
    }
    const auto header = read_batch_header(entry);
    EXPECT_TRUE(header && verify_crc(entry));
    for (const auto& row : aborted_) {
      if (row.first_offset <= header->last_offset()) hidden_.insert(row.producer_id);
    }
    std::erase_if(aborted_,
                  [&](const auto& row) { return row.first_offset <= header->last_offset(); });
    if (header->control()) {
      const auto marker = read_marker(*header, entry);
      if (marker && *marker && !(*marker)->commit) hidden_.erase(header->producer_id);
      return header->last_offset().value;
    }
    const bool hidden = isolation == Isolation::read_committed && header->transactional() &&
                        hidden_.contains(header->producer_id);
    const auto section = open_records(*header, entry, loaded_codecs(), 1 << 20);
    EXPECT_TRUE(section);
    EXPECT_TRUE(for_each_record(*header, *section, [&](const RecordView& record) {
      if (!hidden) add(record.offset.value, record.key, record.value, record.timestamp.ms);
      return true;
    }));
    return header->last_offset().value;
  }

  StoredPartition& stored_;
  std::vector<AbortedTransaction> aborted_;
  std::set<std::int64_t> hidden_;
};

}  // namespace millrace::kernel::testing
