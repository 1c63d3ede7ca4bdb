// Faults that other brokers had with compaction, by the numbers of the list of scenarios.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/unit/kernel/partition/consumer.h"
#include "tests/unit/kernel/partition/stored_partition.h"

namespace millrace::kernel {
namespace {

using namespace std::chrono_literals;
using testing::Consumer;
using testing::StoredPartition;

constexpr auto retention = 60s;

ConfigMap compacted(const std::string& delete_retention_ms = "60000") {
  return {{"cleanup.policy", "compact"},
          {"segment.bytes", "2048"},
          {"index.interval.bytes", "256"},
          {"delete.retention.ms", delete_retention_ms},
          {"flush.messages", "1"}};
}

class CompactionScenariosTest : public ::testing::Test {
 protected:
  void send(const std::string& key, std::optional<std::string> value) {
    BatchBuilder builder({});
    builder.add({stored_.now_ms()}, as_bytes(key),
                value ? std::optional(as_bytes(*value)) : std::nullopt);
    ASSERT_EQ(stored_.produce(*std::move(builder).finish()).error, ErrorCode::none);
  }
  void send_in_transaction(const std::string& key) {
    BatchBuilder builder({.producer_id = 7,
                          .producer_epoch = 0,
                          .base_sequence = sequence_++,
                          .transactional = true});
    builder.add({stored_.now_ms()}, as_bytes(key), as_bytes(large_));
    stored_.append_own(*std::move(builder).finish());
  }
  /// What was written before is in segments that a pass may clean.
  void fill() {
    for (int at = 0; at < 12; ++at) send("filler", large_);
  }
  std::size_t segments() {
    std::size_t files = 0;
    for (const auto& file : *stored_.disk().list("/data/orders-0")) {
      if (file.name.ends_with(".log")) ++files;
    }
    return files;
  }
  std::set<std::string> keys(Isolation isolation) {
    std::set<std::string> keys;
    for (const auto& [offset, one] : Consumer(stored_).read_all(isolation)) keys.insert(one.key);
    return keys;
  }
  bool tombstone_is_there(const std::string& key) {
    const auto read = Consumer(stored_).read_all(Isolation::read_uncommitted);
    return std::ranges::any_of(
        read, [&](const auto& one) { return one.second.key == key && !one.second.value; });
  }

  int passes_until_none_is_wanted() {
    int passes = 0;
    for (; passes < 10 && stored_.compaction_wanted(); ++passes) {
      const auto done = stored_.compact();
      EXPECT_TRUE(done) << to_string(done.error());
    }
    return passes;
  }

  const std::string large_ = std::string(300, 'x');
  StoredPartition stored_{"filelog", 1};

 private:
  std::int32_t sequence_ = 0;
};

TEST_F(CompactionScenariosTest, K01_AbortedDataOverManySegmentsIsNeverSeen) {
  stored_.open(compacted("0"));
  const std::string prefix = "aborted ";
  for (int at = 0; at < 40; ++at) send_in_transaction(prefix + std::to_string(at));
  EXPECT_GT(segments(), 5);
  stored_.end_transaction(7, false);
  send_in_transaction("committed");
  stored_.end_transaction(7, true);
  const std::set<std::string> expected{"committed", "filler"};
  for (int pass = 1; pass <= 5; ++pass) {
    SCOPED_TRACE(pass);
    fill();
    EXPECT_EQ(keys(Isolation::read_committed), expected);
    const auto done = stored_.compact();
    ASSERT_TRUE(done) << to_string(done.error());
    EXPECT_EQ(keys(Isolation::read_committed), expected);
    stored_.close();
    stored_.open(compacted("0"));
    EXPECT_EQ(keys(Isolation::read_committed), expected);
  }
  EXPECT_EQ(keys(Isolation::read_uncommitted), expected);
}

// The marker is all that a segment has, and goes; who waits for its offset must get past it.
TEST_F(CompactionScenariosTest, K03_AReaderComesToTheEndThoughTheLastMarkerHasGone) {
  stored_.open(compacted("0"));
  fill();
  send_in_transaction("key");
  stored_.end_transaction(7, true);
  const auto end = stored_.partition().log_end();
  stored_.close();
  stored_.open(compacted("0"));
  for (int pass = 1; pass <= 4; ++pass) {
    SCOPED_TRACE(pass);
    const auto done = stored_.compact();
    ASSERT_TRUE(done) << to_string(done.error());
    for (const auto isolation : {Isolation::read_uncommitted, Isolation::read_committed}) {
      EXPECT_EQ(Consumer(stored_).read_to_end(isolation), end);
    }
    EXPECT_EQ(stored_.partition().offsets().high_watermark, end);
    EXPECT_EQ(stored_.partition().offsets().last_stable, end);
    stored_.close();
    stored_.open(compacted("0"));
    EXPECT_EQ(stored_.partition().log_end(), end);
  }
}

// The same where it is a tombstone, and the active segment was rolled so that it can be compacted.
TEST_F(CompactionScenariosTest, K03_AReaderComesToTheEndThoughTheLastRecordHasGone) {
  auto config = compacted("0");
  config["max.compaction.lag.ms"] = "1000";
  stored_.open(config);
  fill();
  send("deleted", std::nullopt);
  const auto end = stored_.partition().log_end();
  for (int pass = 1; pass <= 4; ++pass) {
    SCOPED_TRACE(pass);
    stored_.world().run_for(2s);
    EXPECT_EQ(stored_.compaction_wanted(), pass <= 3);
    ASSERT_TRUE(stored_.compact());
    EXPECT_EQ(Consumer(stored_).read_to_end(Isolation::read_uncommitted), end);
  }
  EXPECT_FALSE(tombstone_is_there("deleted"));
  send("more", "value");
  fill();
  ASSERT_TRUE(stored_.compact());
  EXPECT_EQ(keys(Isolation::read_uncommitted), (std::set<std::string>{"filler", "more"}));
}

// Nothing is written after it, so that nothing makes the log dirty.
TEST_F(CompactionScenariosTest, K07_ATombstoneGoesInTimeThoughNothingIsWrittenAnyMore) {
  stored_.open(compacted());
  send("deleted", "value");
  send("deleted", std::nullopt);
  send("kept", "value");
  fill();
  stored_.world().run_for(10 * retention);  // the time since it was written does not count
  ASSERT_TRUE(stored_.compaction_wanted());
  ASSERT_TRUE(stored_.compact());
  EXPECT_FALSE(stored_.compaction_wanted());
  stored_.world().run_for(retention - 1s);
  EXPECT_FALSE(stored_.compaction_wanted());
  EXPECT_TRUE(tombstone_is_there("deleted"));
  stored_.world().run_for(2s);
  EXPECT_TRUE(stored_.compaction_wanted());
  ASSERT_TRUE(stored_.compact());
  EXPECT_FALSE(tombstone_is_there("deleted"));
  stored_.world().run_for(10 * retention);
  EXPECT_FALSE(stored_.compaction_wanted()) << "there is nothing left that waits";
  EXPECT_EQ(keys(Isolation::read_uncommitted), (std::set<std::string>{"kept", "filler"}));
}

// What waits is not noted on the disk: it is looked for, once, when it must be over.
TEST_F(CompactionScenariosTest, K07_ATombstoneGoesInTimeAfterARestart) {
  stored_.open(compacted());
  send("deleted", std::nullopt);
  fill();
  const auto done = stored_.compact();
  ASSERT_TRUE(done);
  for (int starts = 0; starts < 2; ++starts) {
    SCOPED_TRACE(starts);
    stored_.close();
    stored_.open(compacted());
    EXPECT_FALSE(stored_.compaction_wanted(done->cleaned_to));
    stored_.world().run_for(retention + 1s);
    EXPECT_TRUE(stored_.compaction_wanted());
    ASSERT_TRUE(stored_.compact());
    EXPECT_FALSE(tombstone_is_there("deleted"));
    stored_.world().run_for(10 * retention);
    EXPECT_FALSE(stored_.compaction_wanted());
  }
}

TEST_F(CompactionScenariosTest, K07_ATombstoneGoesThoughNoStartLastsThatLong) {
  stored_.open(compacted());
  send("deleted", std::nullopt);
  fill();
  const auto done = stored_.compact();
  ASSERT_TRUE(done);
  int starts = 0;
  for (; starts < 20 && tombstone_is_there("deleted"); ++starts) {
    stored_.close();
    stored_.open(compacted());
    EXPECT_FALSE(stored_.compaction_wanted(done->cleaned_to)) << "not of all logs at once";
    stored_.world().run_for(retention / 2);
    if (stored_.compaction_wanted()) ASSERT_TRUE(stored_.compact());
  }
  EXPECT_LT(starts, 20);
}

TEST_F(CompactionScenariosTest, K07_AMarkerGoesInTimeToo) {
  stored_.open(compacted());
  send_in_transaction("key");
  stored_.end_transaction(7, false);
  send_in_transaction("key");
  stored_.end_transaction(7, true);
  fill();
  int passes = 0;
  for (; passes < 10 && stored_.compaction_wanted(); ++passes) {
    ASSERT_TRUE(stored_.compact());
    stored_.world().run_for(retention + 1s);
  }
  EXPECT_LT(passes, 6);
  EXPECT_EQ(stored_.fetch_raw(0, Isolation::read_committed).aborted->size(), 0);
  const auto fetched = stored_.fetch_raw(0, Isolation::read_uncommitted);
  EXPECT_TRUE(for_each_batch(fetched.records, [&](const FoundBatch& batch) {
    EXPECT_NE(batch.header.base_offset, Offset{1});
    return true;
  }));
}

// Its producer's last batch is kept, without a record, as long as the producer is known, and with
// it the marker: that is nothing to wait for.
TEST_F(CompactionScenariosTest, NothingWaitsForWhatStaysOfAnAbortedTransaction) {
  stored_.open(compacted("0"));
  send_in_transaction("key");
  stored_.end_transaction(7, false);
  fill();
  EXPECT_LT(passes_until_none_is_wanted(), 5);
}

// Only what is clean: else each pass would give new tombstones their horizon, and so ask for the
// next one, however clean the log is.
TEST_F(CompactionScenariosTest, APassForTombstonesLeavesWhatIsDirty) {
  stored_.open(compacted());
  for (int at = 0; at < 400; ++at) send("key " + std::to_string(at), large_);
  send("deleted", std::nullopt);
  fill();
  ASSERT_TRUE(stored_.compact());
  int passes = 0;
  for (int round = 0; round < 20; ++round) {
    send("deleted since " + std::to_string(round), std::nullopt);
    for (int at = 0; at < 6; ++at) send("filler", large_);
    stored_.world().run_for(retention + 1s);
    if (!stored_.compaction_wanted()) continue;
    ASSERT_TRUE(stored_.compact());
    ++passes;
  }
  EXPECT_EQ(passes, 1);
  EXPECT_FALSE(tombstone_is_there("deleted"));
  EXPECT_TRUE(tombstone_is_there("deleted since 0"));
}

// The start is within a batch, and what is behind it is not clean yet.
TEST_F(CompactionScenariosTest, NothingWaitsForTombstonesThatAreNotCleanYet) {
  auto config = compacted("0");
  config["cleanup.policy"] = "compact,delete";
  stored_.open(config);
  send("deleted", std::nullopt);
  fill();
  ASSERT_TRUE(stored_.compact());
  BatchBuilder builder({});
  for (const std::string key : {"a", "b", "c", "d"}) {
    builder.add({stored_.now_ms()}, as_bytes(key), std::nullopt);
  }
  const auto produced = stored_.produce(*std::move(builder).finish());
  fill();
  config["min.compaction.lag.ms"] = "3600000";
  stored_.partition().set_config(*TopicConfig::parse({}, config));
  stored_.trim(produced.base_offset + 2);
  EXPECT_LT(passes_until_none_is_wanted(), 5);
  EXPECT_TRUE(tombstone_is_there("c"));
}

TEST_F(CompactionScenariosTest, WhatIsNotCompactedAnyMoreIsLeftByThePassThatRuns) {
  auto config = compacted();
  stored_.open(config);
  for (int at = 0; at < 100; ++at) send("key", large_);
  fill();
  config["cleanup.policy"] = "delete";
  const auto change = [this, parsed = *TopicConfig::parse({}, config)] {
    stored_.partition().set_config(parsed);
  };
  EXPECT_EQ(stored_.compact(1 << 20, change).error().code, Errc::cancelled);
  EXPECT_EQ(stored_.compact().error().code, Errc::cancelled) << "one that was about to begin";
  EXPECT_EQ(Consumer(stored_).read_all(Isolation::read_uncommitted).size(), 112);
}

TEST_F(CompactionScenariosTest, APassTellsHowFarItIs) {
  stored_.open(compacted());
  for (int at = 0; at < 100; ++at) send("key", large_);
  fill();
  std::vector<std::int32_t> told;
  const auto ask = [&] { told.push_back(stored_.partition().compaction().percent()); };
  ASSERT_TRUE(stored_.compact(1 << 20, ask));
  EXPECT_TRUE(std::ranges::is_sorted(told));
  EXPECT_EQ(told.front(), 0);
  EXPECT_GT(std::set(told.begin(), told.end()).size(), 10);
  EXPECT_GT(told.back(), 50);
  EXPECT_LE(told.back(), 100);
  EXPECT_EQ(stored_.partition().compaction().percent(), -1);
}

// A full map cleans as far as it goes, and each round begins where the last one ended.
TEST_F(CompactionScenariosTest, K11_TheDirtyPartBecomesSmallerWithEachRoundOfAFullMap) {
  stored_.open(compacted());
  for (int at = 0; at < 200; ++at) send("key " + std::to_string(at), "value");
  fill();
  constexpr std::uint64_t few_keys = OffsetMap::slot_bytes * 50;
  ASSERT_TRUE(stored_.compaction_wanted());
  auto dirty = stored_.partition().compaction().cleanable_bytes;
  int rounds = 0;
  while (dirty > 0) {
    ASSERT_LT(++rounds, 20);
    const auto done = stored_.compact(few_keys);
    ASSERT_TRUE(done) << to_string(done.error());
    const auto left = stored_.partition().compaction().cleanable_bytes;
    ASSERT_LT(left, dirty);
    dirty = left;
  }
  EXPECT_GT(rounds, 3);
  EXPECT_EQ(keys(Isolation::read_uncommitted).size(), 201);
}

}  // namespace
}  // namespace millrace::kernel
