// A partition on the storage plugins as they are shipped, in the simulated environment.
#include "tests/unit/kernel/partition/stored_partition.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace millrace::kernel {
namespace {

using namespace std::chrono_literals;
using testing::loaded_codecs;
using testing::Sent;
using testing::small_segments;
using testing::StoredPartition;

Buffer batch_of(const std::vector<Sent>& records, CompressionId codec, std::int32_t sequence) {
  BatchBuilder builder(
      {.compression = codec, .producer_id = 1, .producer_epoch = 0, .base_sequence = sequence});
  for (const auto& record : records) {
    builder.add({record.time}, as_bytes("key"), as_bytes(record.value));
  }
  return *std::move(builder).finish(loaded_codecs());
}

class StoredPartitionTest : public ::testing::TestWithParam<std::string> {
 protected:
  /// Fills with batches of 1 to 7 records, a millisecond apart, of all codecs.
  void fill(std::size_t batches) {
    const auto start = stored.now_ms();
    for (std::size_t i = 0; i < batches; ++i) {
      std::vector<Sent> records;
      for (std::size_t n = 0; n <= i % 7; ++n) {
        const auto index = sent.size() + records.size();
        records.push_back({"value " + std::to_string(index) + std::string(100, '.'),
                           start + static_cast<std::int64_t>(index)});
      }
      const auto codec = static_cast<CompressionId>(i % 5);
      const auto produced =
          stored.produce(batch_of(records, codec, static_cast<std::int32_t>(sent.size())));
      ASSERT_EQ(produced.error, ErrorCode::none) << produced.message;
      ASSERT_EQ(produced.base_offset, Offset{static_cast<std::int64_t>(sent.size())});
      sent.insert(sent.end(), records.begin(), records.end());
    }
  }
  void expect_all_from(std::int64_t start) {
    auto next = start;
    const auto end = static_cast<std::int64_t>(sent.size());
    while (next < end) {
      const auto records = stored.fetch(next);
      ASSERT_FALSE(records.empty()) << next;
      for (const auto& [offset, record] : records) {
        if (offset < next) continue;  // the batch began before it
        ASSERT_EQ(offset, next);
        ASSERT_EQ(record.value, sent[static_cast<std::size_t>(offset)].value);
        ASSERT_EQ(record.time, sent[static_cast<std::size_t>(offset)].time);
        ++next;
      }
    }
  }

  StoredPartition stored{GetParam(), 1};
  std::vector<Sent> sent;
};

TEST_P(StoredPartitionTest, EveryRecordIsReadFromEveryOffset) {
  stored.open();
  fill(60);
  for (std::size_t from = 0; from < sent.size(); from += 3) {
    expect_all_from(static_cast<std::int64_t>(from));
    if (HasFatalFailure()) return;
  }
}

TEST_P(StoredPartitionTest, EveryRecordIsFoundByItsTime) {
  stored.open();
  fill(60);
  for (std::size_t at = 0; at < sent.size(); ++at) {
    const auto found = stored.find(sent[at].time);
    ASSERT_EQ(found.offset, Offset{static_cast<std::int64_t>(at)});
    ASSERT_EQ(found.timestamp, Timestamp{sent[at].time});
  }
  EXPECT_EQ(stored.find(sent.back().time + 1).offset, Offset{});
  EXPECT_EQ(stored.find(-3).offset, Offset{static_cast<std::int64_t>(sent.size()) - 1});
}

TEST_P(StoredPartitionTest, OldSegmentsGoAndTheRestIsRead) {
  auto config = small_segments;
  config["retention.bytes"] = "8192";
  stored.open(config);
  fill(60);
  stored.maintain();
  const auto start = stored.partition().offsets().log_start;
  EXPECT_GT(start, Offset{0});
  expect_all_from(start.value);
  EXPECT_EQ(stored.find(sent.front().time).offset, start);
  EXPECT_EQ(stored.find(-2).offset, start);
}

TEST_P(StoredPartitionTest, AnIdlePartitionIsEmptiedInTheEnd) {
  auto config = small_segments;
  config["retention.ms"] = "60000";
  stored.open(config);
  fill(20);
  stored.world().run_for(2min);
  stored.maintain();
  const Offset end{static_cast<std::int64_t>(sent.size())};
  EXPECT_EQ(stored.partition().offsets().log_start, end);
  EXPECT_EQ(stored.partition().offsets().end, end);
  EXPECT_EQ(stored.find(sent.front().time).offset, Offset{});
  fill(1);
  expect_all_from(end.value);
}

INSTANTIATE_TEST_SUITE_P(Plugins, StoredPartitionTest, ::testing::Values("filelog", "memory"),
                         [](const auto& info) { return info.param; });

class FilelogPartitionTest : public StoredPartitionTest {};

TEST_P(FilelogPartitionTest, RecordsAndProducersSurviveACleanEnd) {
  stored.open();
  fill(40);
  stored.close();
  stored.open(small_segments, 1);
  expect_all_from(0);
  const auto last = std::vector{sent.back()};
  const auto sequence = static_cast<std::int32_t>(sent.size());
  EXPECT_EQ(stored.produce(batch_of(last, CompressionId::none, sequence + 1)).error,
            ErrorCode::out_of_order_sequence_number);
  EXPECT_EQ(stored.produce(batch_of(last, CompressionId::none, sequence)).base_offset.value,
            sequence);
  EXPECT_EQ(stored.find(sent.front().time).leader_epoch, Epoch{0});
  EXPECT_EQ(stored.partition().epoch_end(Epoch{0}).start.value, sequence);
}

// The newest timestamps are in segments of which nothing has been read since the start.
TEST_P(FilelogPartitionTest, TheNewestTimeIsKnownAfterARestart) {
  stored.open();
  fill(60);
  stored.close();
  stored.open();
  EXPECT_EQ(stored.find(-3).offset, Offset{static_cast<std::int64_t>(sent.size()) - 1});
}

// With flush.messages=1 what was acknowledged is there after the power went, and is recognised when
// it is sent again.
TEST_P(FilelogPartitionTest, WhatWasFlushedSurvivesACrash) {
  auto config = small_segments;
  config["flush.messages"] = "1";
  stored.open(config);
  for (int round = 0; round < 5; ++round) {
    fill(9);
    if (round % 2 == 0) stored.maintain();  // with and without a snapshot
    const auto last = std::vector{sent.back()};
    const auto sequence = static_cast<std::int32_t>(sent.size());
    stored.crash();
    stored.open(config, round);
    expect_all_from(0);
    EXPECT_EQ(stored.partition().offsets().end.value, sequence);
    const auto repeated = stored.produce(batch_of(last, CompressionId::gzip, sequence));
    EXPECT_EQ(repeated.base_offset.value, sequence);
    EXPECT_EQ(stored.produce(batch_of(last, CompressionId::gzip, sequence)).base_offset.value,
              sequence);
    sent.push_back(last.front());
  }
}

// R05: what stands beside the log may be torn or missing when the power goes while segments are
// removed; where each epoch began is known all the same.
TEST_P(FilelogPartitionTest, R05_EpochsAreKnownAfterPowerCutsDuringTrims) {
  auto config = small_segments;
  config["flush.messages"] = "1";
  config["retention.bytes"] = "8192";
  std::vector<Offset> begins;
  for (int round = 0; round < 12; ++round) {
    SCOPED_TRACE(round);
    stored.open(config, round);
    if (HasFatalFailure()) return;
    begins.push_back(stored.partition().offsets().end);
    fill(9);
    const auto start = stored.partition().offsets().log_start;
    for (std::size_t epoch = 0; epoch + 1 < begins.size(); ++epoch) {
      if (begins[epoch + 1] <= start) continue;
      const auto found = stored.partition().epoch_end(Epoch{static_cast<std::int32_t>(epoch)});
      EXPECT_EQ(found.epoch.value, static_cast<std::int32_t>(epoch));
      EXPECT_EQ(found.start, begins[epoch + 1]);
    }
    expect_all_from(start.value);
    stored.crash_in_maintenance(static_cast<std::uint64_t>(round) * 2);
  }
}

// R13: what was deleted does not come back, and what follows has the offsets behind it.
TEST_P(FilelogPartitionTest, R13_DeletedRecordsStayAwayWhenThePowerGoes) {
  for (int round = 0; round < 5; ++round) {
    SCOPED_TRACE(round);
    stored.open();
    fill(static_cast<std::size_t>(7 + round));
    const Offset end{static_cast<std::int64_t>(sent.size())};
    stored.trim(end);
    stored.crash();
    stored.open();
    EXPECT_EQ(stored.partition().offsets().log_start, end);
    EXPECT_EQ(stored.partition().offsets().end, end);
    sent.push_back({"next", stored.now_ms()});
    const auto sequence = static_cast<std::int32_t>(end.value);
    const auto next = stored.produce(batch_of({sent.back()}, CompressionId::none, sequence));
    ASSERT_EQ(next.base_offset, end) << next.message;
    expect_all_from(end.value);
    stored.close();
  }
}

INSTANTIATE_TEST_SUITE_P(Plugins, FilelogPartitionTest, ::testing::Values("filelog"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace millrace::kernel
