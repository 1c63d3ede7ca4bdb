// Passes of compaction over whole logs, against a model: whatever is written, rolled, cleaned and
// opened again, in any order, the log says of each key what a map says, and no record is at another
// offset than it was.
#include "kernel/partition/compaction.h"

#include <algorithm>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/kernel/partition/consumer.h"
#include "tests/unit/kernel/partition/stored_partition.h"

namespace millrace::kernel {
namespace {

using namespace std::chrono_literals;
using testing::Consumer;
using ::testing::HasSubstr;
using testing::loaded_codecs;
using testing::Records;
using testing::StoredPartition;
using testing::values_of;
using testing::Written;

const ConfigMap compacted{{"cleanup.policy", "compact"},
                          {"segment.bytes", "2048"},
                          {"index.interval.bytes", "256"},
                          {"delete.retention.ms", "60000"},
                          {"flush.messages", "1"}};

/// Writes what chance says, and keeps what it has written.
class Writer {
 public:
  Writer(StoredPartition& stored, std::uint64_t seed, int magic)
      : stored_(stored), chance_(seed), magic_(magic) {}

  std::int64_t below(std::int64_t limit) {
    return std::uniform_int_distribution<std::int64_t>(0, limit - 1)(chance_);
  }

  void batch() {
    const bool producing = magic_ == 2 && below(3) > 0;
    const bool transactional = producing && below(2) == 0;
    const auto producer = producing ? 1 + below(3) + (transactional ? 10 : 0) : -1;
    auto& sequence = sequences_[producer];
    const auto codec = static_cast<CompressionId>(below(magic_ == 2 ? 5 : 4));
    BatchBuilder builder({.compression = codec,
                          .producer_id = producer,
                          .producer_epoch = static_cast<std::int16_t>(producing ? 0 : -1),
                          .base_sequence = producing ? sequence : -1,
                          .transactional = transactional});
    std::vector<Written> written;
    const auto count = 1 + below(6);
    for (std::int64_t at = 0; at < count; ++at) {
      Written one{.key = "key " + std::to_string(below(25)),
                  .value = "value " + std::to_string(++values_) +
                           std::string(static_cast<std::size_t>(below(60)), '.'),
                  .time = stored_.now_ms() - below(1000)};
      if (below(5) == 0) one.value.reset();
      builder.add({one.time}, as_bytes(one.key),
                  one.value ? std::optional(as_bytes(*one.value)) : std::nullopt);
      if (magic_ == 0) one.time = -1;
      written.push_back(one);
    }
    auto built = *std::move(builder).finish(loaded_codecs());
    const auto produced =
        transactional ? stored_.append_own(std::move(built)) : stored_.produce(std::move(built));
    ASSERT_EQ(produced.error, ErrorCode::none) << produced.message;
    auto offset = produced.base_offset.value;
    for (const auto& one : written) {
      if (transactional) open_[producer].push_back(offset);
      records[offset++] = one;
    }
    if (producing) sequence += static_cast<std::int32_t>(count);
  }

  void end_one() {
    if (open_.empty()) return;
    auto one = std::next(open_.begin(), below(static_cast<std::int64_t>(open_.size())));
    const bool commit = below(2) == 0;
    stored_.end_transaction(one->first, commit);
    for (const auto offset : one->second) records.at(offset).aborted = !commit;
    open_.erase(one);
  }
  void end_all() {
    while (!open_.empty()) end_one();
  }

  /// The next sequence of each producer is the one that is taken, whatever compaction has removed.
  void expect_sequences() {
    for (const auto& [producer, sequence] : sequences_) {
      if (producer < 0 || producer > 10 || sequence == 0) continue;
      BatchBuilder ahead(
          {.producer_id = producer, .producer_epoch = 0, .base_sequence = sequence + 1});
      ahead.add({stored_.now_ms()}, as_bytes("key"), as_bytes("ahead"));
      EXPECT_EQ(stored_.produce(*std::move(ahead).finish()).error,
                ErrorCode::out_of_order_sequence_number);
    }
  }

  Records records;

 private:
  StoredPartition& stored_;
  std::mt19937_64 chance_;
  const int magic_;
  std::map<std::int64_t, std::int32_t> sequences_;
  std::map<std::int64_t, std::vector<std::int64_t>> open_;  // transactions, by producer
  std::int64_t values_ = 0;
};

using Parameters = std::tuple<std::string, int>;

class CompactionTest : public ::testing::TestWithParam<Parameters> {
 protected:
  static std::string plugin() { return std::get<0>(GetParam()); }
  static int magic() { return std::get<1>(GetParam()); }
  static ConfigMap config() {
    auto config = compacted;
    if (magic() < 2) config["message.format.version"] = magic() == 0 ? "0.9.0" : "0.10.0";
    return config;
  }

  static void expect_as(const Records& written, StoredPartition& stored) {
    const auto seen = Consumer(stored).read_all(Isolation::read_uncommitted);
    for (const auto& [offset, record] : seen) {
      const auto found = written.find(offset);
      ASSERT_NE(found, written.end()) << offset;
      ASSERT_EQ(record.key, found->second.key) << offset;
      ASSERT_EQ(record.value, found->second.value) << offset;
      ASSERT_EQ(record.time, found->second.time) << offset;
    }
    Records stable;
    const auto limit = stored.partition().offsets().last_stable.value;
    for (const auto& [offset, record] : written) {
      if (offset < limit) stable.emplace(offset, record);
    }
    ASSERT_EQ(values_of(Consumer(stored).read_all(Isolation::read_committed)), values_of(stable));
  }
  static void expect_each_key_once(StoredPartition& stored, Offset below) {
    std::map<std::string, std::int64_t> at;
    for (const auto& [offset, one] : Consumer(stored).read_all(Isolation::read_uncommitted)) {
      if (offset >= below.value) break;
      const auto [found, added] = at.emplace(one.key, offset);
      ASSERT_TRUE(added) << one.key << " at " << found->second << " and " << offset;
    }
  }
};

TEST_P(CompactionTest, WhateverIsDoneTheLogSaysWhatAMapSays) {
  constexpr std::uint64_t seeds = 6;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    StoredPartition stored(plugin(), seed);
    stored.open(config());
    Writer writer(stored, seed, magic());
    for (int step = 0; step < 160; ++step) {
      SCOPED_TRACE("step " + std::to_string(step));
      const auto what = writer.below(20);
      if (what < 13) {
        writer.batch();
      } else if (what < 16) {
        writer.end_one();
      } else if (what == 16) {
        stored.world().run_for(std::chrono::seconds(writer.below(50)));
      } else if (what == 17 && plugin() == "filelog") {
        writer.end_all();
        writer.below(2) == 0 ? stored.crash() : stored.close();
        stored.open(config());
        writer.expect_sequences();
      } else {
        const auto bytes = writer.below(3) == 0 ? 24 * (12 + writer.below(20)) : 1 << 16;
        const auto before = Consumer(stored).read_all(Isolation::read_uncommitted).size();
        const auto done = stored.compact(static_cast<std::uint64_t>(bytes));
        ASSERT_TRUE(done) << to_string(done.error());
        expect_as(writer.records, stored);
        expect_each_key_once(stored, done->cleaned_to);
        const auto after = Consumer(stored).read_all(Isolation::read_uncommitted).size();
        ASSERT_EQ(done->records_removed >= 0, after <= before);
      }
      if (HasFatalFailure()) return;
    }
  }
}

TEST_P(CompactionTest, ASecondPassFindsNothingToDo) {
  StoredPartition stored(plugin(), 3);
  stored.open(config());
  Writer writer(stored, 3, magic());
  for (int at = 0; at < 100; ++at) writer.batch();
  writer.end_all();
  for (int at = 0; at < 20; ++at) writer.batch();  // the active segment is another one
  writer.end_all();
  const auto first = stored.compact();
  ASSERT_TRUE(first) << to_string(first.error());
  EXPECT_GT(first->records_removed, 100);
  EXPECT_LT(first->bytes_after, first->bytes_before / 2);
  const auto kept = Consumer(stored).read_all(Isolation::read_uncommitted);
  const auto second = stored.compact();
  ASSERT_TRUE(second);
  EXPECT_EQ(second->bytes_read, 0);
  EXPECT_EQ(second->cleaned_to, first->cleaned_to);
  EXPECT_EQ(Consumer(stored).read_all(Isolation::read_uncommitted), kept);
  // Small segments have become one.
  EXPECT_LE(stored.partition().compaction().clean_bytes, first->bytes_after);
}

TEST_P(CompactionTest, K11_AFullMapCleansPartAndTheNextPassTheRest) {
  StoredPartition stored(plugin(), 4);
  stored.open(config());
  Writer writer(stored, 4, magic());
  for (int at = 0; at < 120; ++at) writer.batch();
  writer.end_all();
  for (int at = 0; at < 20; ++at) writer.batch();
  writer.end_all();
  constexpr std::uint64_t few_keys = OffsetMap::slot_bytes * 14;  // 12 of 25
  const auto limit = stored.compact(few_keys);
  ASSERT_TRUE(limit) << to_string(limit.error());
  EXPECT_TRUE(limit->map_was_full);
  auto last = *limit;
  for (int passes = 0; last.map_was_full; ++passes) {
    ASSERT_LT(passes, 1000);
    const auto next = stored.compact(few_keys);
    ASSERT_TRUE(next) << to_string(next.error());
    ASSERT_GT(next->cleaned_to, last.cleaned_to);
    last = *next;
    expect_as(writer.records, stored);
  }
  expect_each_key_once(stored, limit->cleaned_to);
  const auto too_small = stored.compact(0);
  EXPECT_TRUE(too_small);  // nothing is dirty
}

// As a leader's retention moves a follower's start, or DeleteRecords anybody's. Else a long pass
// would begin anew each time, and never end.
TEST_P(CompactionTest, AStartThatMovesUnderAPassIsNothingToIt) {
  int moved = 0;
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    auto both = config();
    both["cleanup.policy"] = "compact,delete";  // else nobody may trim it
    StoredPartition stored(plugin(), seed);
    stored.open(both);
    Writer writer(stored, seed, magic());
    for (int at = 0; at < 150; ++at) {
      writer.batch();
      if (at % 5 == 0) writer.end_one();
    }
    writer.end_all();
    const auto most = stored.partition().log_end().value * 3 / 4;
    const auto done = stored.compact(1 << 20, [&] {
      const auto start = stored.partition().log_start().value;
      if (writer.below(5) > 0 || start >= most) return;
      stored.begin_trim({start + 1 + writer.below(80)});
      ++moved;
    });
    ASSERT_TRUE(done) << to_string(done.error());
    const auto start = stored.partition().log_start();
    EXPECT_GT(done->cleaned_to, start);
    expect_each_key_once(stored, done->cleaned_to);
    std::erase_if(writer.records, [&](const auto& one) { return one.first < start.value; });
    expect_as(writer.records, stored);
    if (plugin() == "filelog") {
      stored.trim(start);  // so that it is noted
      stored.close();
      stored.open(both);
      expect_as(writer.records, stored);
      writer.expect_sequences();
    }
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(moved, 36);
}

INSTANTIATE_TEST_SUITE_P(Formats, CompactionTest,
                         ::testing::Combine(::testing::Values("filelog", "memory"),
                                            ::testing::Values(0, 1, 2)),
                         [](const auto& info) {
                           return std::get<0>(info.param) + "V" +
                                  std::to_string(std::get<1>(info.param));
                         });

// Else a pass that takes longer than from one look of retention to the next would never end.
TEST(CompactionRetentionTest, WaitsForThePassAndFollowsIt) {
  auto config = compacted;
  config["cleanup.policy"] = "compact,delete";
  config["retention.bytes"] = "1";
  StoredPartition stored("filelog", 12);
  stored.open(config);
  Writer writer(stored, 12, 2);
  for (int at = 0; at < 120; ++at) writer.batch();
  writer.end_all();
  int looks = 0;
  const auto done = stored.compact(1 << 20, [&] {
    ++looks;
    stored.begin_maintenance();
    EXPECT_EQ(stored.partition().log_start(), Offset{0});
  });
  ASSERT_TRUE(done) << to_string(done.error());
  EXPECT_GT(looks, 5);
  EXPECT_GT(done->cleaned_to, Offset{100});
  EXPECT_GT(stored.partition().log_start(), Offset{0});
}

// Aborted data goes first, then the row that hid it, then, when readers had their time, the marker;
// and at no time is anything hidden that was committed.
TEST(CompactionOfTransactionsTest, NothingOfAnAbortedOneStaysAndItsProducerGoesOn) {
  StoredPartition stored("filelog", 1);
  stored.open(compacted);
  std::int32_t sequence = 0;
  const auto send = [&](const std::string& key, bool transactional) {
    BatchBuilder builder({.producer_id = transactional ? 7 : -1,
                          .producer_epoch = static_cast<std::int16_t>(transactional ? 0 : -1),
                          .base_sequence = transactional ? sequence++ : -1,
                          .transactional = transactional});
    builder.add({stored.now_ms()}, as_bytes(key), as_bytes(std::string(300, 'x')));
    auto built = *std::move(builder).finish();
    const auto produced =
        transactional ? stored.append_own(std::move(built)) : stored.produce(std::move(built));
    EXPECT_EQ(produced.error, ErrorCode::none);
  };
  const auto fill = [&] {
    for (int at = 0; at < 12; ++at) send("filler", false);
  };
  send("a", true);
  const auto marker = stored.end_transaction(7, false);
  send("b", true);
  stored.end_transaction(7, true);
  fill();
  const auto committed = [&] {
    std::set<std::string> keys;
    for (const auto& [offset, one] : Consumer(stored).read_all(Isolation::read_committed)) {
      keys.insert(one.key);
    }
    return keys;
  };
  const auto marker_is_there = [&] {
    const auto fetched = stored.fetch_raw(0, Isolation::read_uncommitted);
    bool found = false;
    EXPECT_TRUE(for_each_batch(fetched.records, [&](const FoundBatch& batch) {
      found = found || batch.header.base_offset == marker;
      return true;
    }));
    return found;
  };
  const auto rows = [&] { return stored.fetch_raw(0, Isolation::read_committed).aborted->size(); };
  const std::set<std::string> expected{"b", "filler"};
  EXPECT_EQ(rows(), 1);
  for (int pass = 1; pass <= 4; ++pass) {
    SCOPED_TRACE(pass);
    const auto done = stored.compact();
    ASSERT_TRUE(done) << to_string(done.error());
    EXPECT_EQ(committed(), expected);
    EXPECT_EQ(rows(), pass == 1 ? 1 : 0);
    EXPECT_EQ(marker_is_there(), pass < 3);
    stored.close();
    stored.open(compacted);
    EXPECT_EQ(committed(), expected);
    fill();
    if (pass >= 2) stored.world().run_for(61s);
  }
}

TEST(CompactionFailureTest, ABatchThatIsCorruptIsNamedAndNothingChanges) {
  auto config = compacted;
  StoredPartition stored("filelog", 1);
  stored.open(config);
  Writer writer(stored, 1, 2);
  for (int at = 0; at < 60; ++at) writer.batch();
  writer.end_all();
  for (int at = 0; at < 20; ++at) writer.batch();
  writer.end_all();
  const auto path = stored.first_segment();
  stored.flip_byte(path, 100);
  const auto done = stored.compact();
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, Errc::corrupt);
  EXPECT_THAT(done.error().detail, HasSubstr("offset 0"));
  EXPECT_TRUE(stored.partition().compaction().failed);
  stored.flip_byte(path, 100);
  ASSERT_TRUE(stored.compact());
  EXPECT_FALSE(stored.partition().compaction().failed);
}

// A new replica of a compacted log has its leader's gaps.
TEST(CompactionReplicationTest, AFollowerTakesOverALogWithGaps) {
  StoredPartition leader("filelog", 5);
  leader.open(compacted);
  Writer writer(leader, 5, 2);
  for (int at = 0; at < 120; ++at) writer.batch();
  writer.end_all();
  for (int at = 0; at < 20; ++at) writer.batch();
  writer.end_all();
  ASSERT_TRUE(leader.compact());
  StoredPartition follower("filelog", 6);
  follower.open(compacted);
  follower.follow({1});
  auto next = follower.partition().log_end();
  const auto end = leader.partition().log_end();
  for (int steps = 0; next < end; ++steps) {
    ASSERT_LT(steps, 1000);
    auto fetched = leader.fetch_raw(next.value, Isolation::read_uncommitted);
    const auto bytes = fetched.records.flatten();
    ASSERT_TRUE(bytes);
    fetched.records = Payload(*bytes);
    next = follower.take_over({1}, std::move(fetched));
  }
  EXPECT_EQ(follower.partition().high_watermark(), leader.partition().high_watermark());
  const auto read = [](StoredPartition& stored) {
    return Consumer(stored).read_all(Isolation::read_committed);
  };
  const auto of_leader = read(leader);
  EXPECT_EQ(leader.partition().epoch_end(Epoch{0}).start, end);
  EXPECT_EQ(follower.partition().epoch_end(Epoch{0}).start, end);
  EXPECT_EQ(follower.partition().producers().size(), leader.partition().producers().size());
  follower.lead({2});
  EXPECT_EQ(read(follower), of_leader);
}

// The power goes in the middle of a pass, at each of its changes of the disk.
TEST(CompactionCrashTest, APowerCutAtAnyPointLosesNothing) {
  constexpr std::uint64_t changes_max = 400;
  bool ended = false;
  for (std::uint64_t changes = 1; changes < changes_max && !ended; changes += 3) {
    SCOPED_TRACE("after " + std::to_string(changes) + " changes");
    StoredPartition stored("filelog", changes);
    stored.open(compacted);
    Writer writer(stored, 11, 2);
    for (int at = 0; at < 50; ++at) writer.batch();
    writer.end_all();
    stored.crash_after(changes);
    ended = stored.compact().has_value();
    stored.crash();
    stored.open(compacted);
    const auto seen = Consumer(stored).read_all(Isolation::read_uncommitted);
    for (const auto& [offset, record] : seen) {
      const auto found = writer.records.find(offset);
      ASSERT_NE(found, writer.records.end());
      ASSERT_EQ(record.value, found->second.value);
    }
    ASSERT_EQ(values_of(Consumer(stored).read_all(Isolation::read_committed)),
              values_of(writer.records));
    writer.expect_sequences();
    ASSERT_TRUE(stored.compact());
    ASSERT_EQ(values_of(Consumer(stored).read_all(Isolation::read_committed)),
              values_of(writer.records));
  }
  EXPECT_TRUE(ended) << "a pass has more changes than were tried";
}

}  // namespace
}  // namespace millrace::kernel
