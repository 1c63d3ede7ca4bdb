// Compares a storage backend with another one, normally with storage/memory: the same random
// operations, and what can be seen of them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <millrace/testing/storage_subject.h>

namespace millrace::testing {

/// The batches of `payload`, one by one.
inline std::vector<Buffer> batches_of(const Payload& payload) {
  const auto bytes = payload.flatten();
  EXPECT_TRUE(bytes) << to_string(bytes.error());
  std::vector<Buffer> batches;
  for (std::size_t at = 0; at < bytes->size();) {
    const auto header = read_batch_header(bytes->bytes().subspan(at));
    EXPECT_TRUE(header) << to_string(header.error());
    batches.push_back(bytes->slice(at, header->total_bytes()));
    at += header->total_bytes();
  }
  return batches;
}

/// Applies the same random operations to a log of each and compares what can be seen of them.
inline void match_random_operations(StorageSubject& subject, StorageSubject& oracle,
                                    std::uint64_t seed, int operations) {
  const LogOptions options{.segment_bytes = 1500, .index_interval_bytes = 200};
  std::unique_ptr<PartitionLog> logs[2];
  StorageSubject* const subjects[2] = {&subject, &oracle};
  const auto open = [&] {
    for (int at = 0; at < 2; ++at) {
      auto opened = subjects[at]->run(subjects[at]->storage().open(orders, options));
      ASSERT_TRUE(opened) << to_string(opened.error());
      logs[at] = std::move(opened->log);
    }
  };
  ASSERT_NO_FATAL_FAILURE(open());
  std::mt19937_64 random(seed);
  const auto below = [&](std::int64_t bound) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(bound));
  };
  // Some segments, of those that begin where the other log has one too, without some batches.
  const auto rewrite = [&](Offset from, Offset to) {
    const auto first = std::max(from, logs[1]->bounds().start);
    const auto found = oracle.run(
        logs[1]->read({.from = first, .limit = to, .bytes_max = UINT64_MAX, .at_least_one = true}));
    ASSERT_TRUE(found) << to_string(found.error());
    std::vector<BatchParts> kept;
    for (const auto& batch : batches_of(*found)) {
      const auto parts = parts_of(batch);
      if (below(3) > 0 && parts.base_offset >= from) kept.push_back(parts);
    }
    for (int at = 0; at < 2; ++at) {
      auto anew = logs[at]->rewrite(from, to);
      ASSERT_TRUE(anew) << to_string(anew.error());
      const auto appended = (*anew)->append(kept);
      ASSERT_TRUE(appended) << to_string(appended.error());
      const auto committed = subjects[at]->run((*anew)->commit());
      ASSERT_TRUE(committed) << to_string(committed.error());
    }
  };
  const auto rewrite_some = [&] {
    std::vector<Offset> bases[2];
    for (int at = 0; at < 2; ++at) {
      for (const auto& segment : logs[at]->segments()) bases[at].push_back(segment.base);
    }
    std::vector<Offset> both;
    std::ranges::set_intersection(bases[0], bases[1], std::back_inserter(both));
    if (both.size() < 2) return;
    const auto from = below(static_cast<std::int64_t>(both.size()) - 1);
    const auto count = 1 + below(static_cast<std::int64_t>(both.size()) - from - 1);
    rewrite(both[static_cast<std::size_t>(from)], both[static_cast<std::size_t>(from + count)]);
  };
  for (int operation = 0; operation < operations; ++operation) {
    SCOPED_TRACE("seed " + std::to_string(seed) + ", operation " + std::to_string(operation));
    const auto bounds = logs[1]->bounds();
    const auto size = bounds.end - bounds.start;
    const auto anywhere = bounds.start + below(size + 1);
    const auto what = below(21);
    if (what == 20) {
      ASSERT_NO_FATAL_FAILURE(rewrite_some());
    } else if (what < 9) {
      std::vector<Buffer> batches;
      std::vector<BatchParts> parts;
      auto next = below(8) == 0 ? bounds.end + below(10) : bounds.end;
      for (auto count = 1 + below(3); count > 0; --count) {
        const auto records = static_cast<std::int32_t>(1 + below(4));
        batches.push_back(
            make_batch(next, records, {below(5000)}, static_cast<std::size_t>(below(200))));
        parts.push_back(parts_of(batches.back()));
        next = parts.back().last_offset + 1;
      }
      for (auto& log : logs) ASSERT_TRUE(log->append(parts));
    } else if (what < 14) {
      const ReadRequest request{.from = anywhere + (below(3) - 1),
                                .limit = anywhere + below(40),
                                .bytes_max = static_cast<std::uint64_t>(below(4000)),
                                .at_least_one = below(2) == 0};
      const auto found = subject.run(logs[0]->read(request));
      const auto expected = oracle.run(logs[1]->read(request));
      ASSERT_EQ(found.has_value(), expected.has_value());
      if (found) ASSERT_EQ(found->flatten()->text(), expected->flatten()->text());
    } else if (what == 14) {
      for (int at = 0; at < 2; ++at) ASSERT_TRUE(subjects[at]->run(logs[at]->flush(anywhere)));
    } else if (what == 15) {
      const auto cut = [&](PartitionLog& log) { return log.truncate_from(anywhere).has_value(); };
      ASSERT_EQ(cut(*logs[0]), cut(*logs[1]));
    } else if (what == 16) {
      const auto first_kept = bounds.start + below(size / 4 + 1);
      for (auto& log : logs) ASSERT_TRUE(log->trim_before(first_kept));
    } else if (what == 17) {
      for (auto& log : logs) ASSERT_TRUE(log->roll());
    } else if (what == 18) {
      const Timestamp time{below(5500)};
      ASSERT_EQ(required(subject.run(logs[0]->batch_at(time))).base_offset,
                required(oracle.run(logs[1]->batch_at(time))).base_offset);
    } else if (below(3) == 0) {
      for (int at = 0; at < 2; ++at) {
        ASSERT_TRUE(subjects[at]->run(logs[at]->close()));
        logs[at].reset();
        const std::vector<PartitionOffset> starts{{orders, bounds.start}};
        ASSERT_TRUE(subjects[at]->run(
            subjects[at]->storage().checkpoint(CheckpointKind::log_start, starts)));
      }
      ASSERT_NO_FATAL_FAILURE(open());
    }
    ASSERT_EQ(logs[0]->bounds().start, logs[1]->bounds().start);
    ASSERT_EQ(logs[0]->bounds().end, logs[1]->bounds().end);
  }
  for (int at = 0; at < 2; ++at) ASSERT_TRUE(subjects[at]->run(logs[at]->close()));
}

}  // namespace millrace::testing
