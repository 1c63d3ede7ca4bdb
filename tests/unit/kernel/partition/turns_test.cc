// A large batch is written in turns with others of its shard, on filelog, and nobody can tell.
#include <optional>
#include <string>

#include <gtest/gtest.h>

#include "tests/unit/kernel/partition/stored_partition.h"

namespace millrace::kernel {
namespace {

using testing::loaded_codecs;
using testing::StoredPartition;

const ConfigMap large_messages{{"max.message.bytes", "16777216"}};
constexpr std::size_t large_bytes = (3UL << 20) + 1000;

Buffer batch_of(char letter, std::size_t bytes, std::int32_t sequence = -1) {
  BatchBuilder builder({.producer_id = sequence < 0 ? -1 : 1,
                        .producer_epoch = static_cast<std::int16_t>(sequence < 0 ? -1 : 0),
                        .base_sequence = sequence});
  builder.add({1'700'000'000'000}, std::nullopt, as_bytes(std::string(bytes, letter)));
  return *std::move(builder).finish(loaded_codecs());
}

class TurnsTest : public ::testing::Test {
 protected:
  void SetUp() override { stored.open(large_messages); }

  std::string letters() {
    std::string found;
    const auto end = stored.partition().offsets().high_watermark.value;
    for (std::int64_t at = 0; at < end; ++at) {
      const auto records = stored.fetch(at);
      EXPECT_TRUE(records.contains(at)) << at;
      if (!records.contains(at)) break;
      found += records.at(at).value.front();
    }
    return found;
  }

  // What the shard still has of it when a test ends comes to nothing, but reads these.
  void append_between() {
    stored.between_pieces([this] {
      if (large.is_ready()) return;
      ASSERT_TRUE(stored.partition().append_own(batch_of('b', 10)).has_value());
      ++appended;
      append_between();
    });
  }

  Pending<PartitionProduced> large;
  int appended = 0;
  bool came_between = false;
  StoredPartition stored{"filelog", 1};
};

TEST_F(TurnsTest, ReadersSeeAllOfItOrNothing) {
  stored.produce(batch_of('a', 10));
  auto producing = stored.begin_produce(batch_of('b', large_bytes));
  std::optional<PartitionOffsets> between;
  stored.between_pieces([&] { between = stored.partition().offsets(); });
  EXPECT_EQ(stored.end(producing).base_offset, Offset{1});
  ASSERT_TRUE(between.has_value());
  EXPECT_EQ(between->end, Offset{1});
  EXPECT_EQ(between->high_watermark, Offset{1});
  EXPECT_EQ(letters(), "ab");
}

TEST_F(TurnsTest, RequestsBehindItStayBehindIt) {
  auto first = stored.begin_produce(batch_of('a', large_bytes, 0));
  auto second = stored.begin_produce(batch_of('b', 10, 1));
  std::optional<Pending<PartitionProduced>> third;
  stored.between_pieces([&] { third = stored.begin_produce(batch_of('c', 10, 2)); });
  EXPECT_EQ(stored.end(first).base_offset, Offset{0});
  EXPECT_EQ(stored.end(second).base_offset, Offset{1});
  ASSERT_TRUE(third.has_value());
  EXPECT_EQ(stored.end(*third).base_offset, Offset{2});
  EXPECT_EQ(letters(), "abc");
}

TEST_F(TurnsTest, WhatTheBrokerAppendsMayComeInBetween) {
  auto large = stored.begin_produce(batch_of('a', large_bytes));
  stored.between_pieces(
      [&] { came_between = stored.partition().append_own(batch_of('b', 10)).has_value(); });
  EXPECT_EQ(stored.end(large).base_offset, Offset{1});
  EXPECT_TRUE(came_between);
  EXPECT_EQ(letters(), "ba");
}

// However often.
TEST_F(TurnsTest, ItIsAppendedThoughTheBrokerAppendsAllTheTime) {
  large = stored.begin_produce(batch_of('a', large_bytes));
  append_between();
  const auto base = stored.end(large).base_offset;
  EXPECT_GE(appended, 3);
  EXPECT_EQ(base, Offset{appended});
  EXPECT_EQ(letters(), std::string(static_cast<std::size_t>(appended), 'b') + 'a');
}

TEST_F(TurnsTest, WhatItHasSentBeforeIsNotWrittenAgain) {
  const auto batch = batch_of('a', large_bytes, 0);
  stored.produce(batch);
  const auto bytes = stored.file_bytes();
  auto again = stored.begin_produce(batch);
  stored.between_pieces([&] { came_between = true; });
  EXPECT_EQ(stored.end(again).base_offset, Offset{0});
  EXPECT_FALSE(came_between);
  EXPECT_EQ(stored.file_bytes(), bytes);
  stored.produce(batch_of('b', large_bytes, 1));
}

TEST_F(TurnsTest, ALeaderThatCeasesToLeadInBetweenAppendsNothing) {
  auto large = stored.begin_produce(batch_of('a', large_bytes));
  stored.between_pieces([&] {
    came_between = true;
    spawn(stored.own_shard(), stored.partition().follow({1}), "follow");
  });
  EXPECT_EQ(stored.end(large).error, ErrorCode::not_leader_or_follower);
  EXPECT_TRUE(came_between);
  EXPECT_EQ(stored.partition().offsets().end, Offset{0});
  stored.lead({2});
  stored.produce(batch_of('b', 10));
  EXPECT_EQ(letters(), "b");
  EXPECT_EQ(stored.file_bytes(), stored.partition().bytes());
}

TEST_F(TurnsTest, AFullDiskInBetweenIsAnsweredAndNothingStays) {
  stored.produce(batch_of('a', 10));
  auto large = stored.begin_produce(batch_of('b', large_bytes));
  stored.between_pieces([&] {
    came_between = true;
    const auto space = stored.disk().space("/data");
    stored.disk().limit_bytes(space->bytes_total - space->bytes_free + 1000);
  });
  EXPECT_EQ(stored.end(large).error, ErrorCode::kafka_storage_error);
  EXPECT_TRUE(came_between);
  EXPECT_TRUE(stored.partition().failing());
  EXPECT_EQ(stored.file_bytes(), stored.partition().bytes());
  stored.disk().limit_bytes({});
  EXPECT_EQ(stored.produce(batch_of('c', large_bytes)).base_offset, Offset{1});
  EXPECT_FALSE(stored.partition().failing());
  EXPECT_EQ(letters(), "ac");
}

TEST_F(TurnsTest, APartitionThatClosesInBetweenEndsIt) {
  stored.produce(batch_of('a', 10));
  const auto bytes = stored.file_bytes();
  auto large = stored.begin_produce(batch_of('b', large_bytes));
  bool in_time = false;
  stored.between_pieces([&] { in_time = true; });
  ASSERT_TRUE(stored.world().run_until([&] { return in_time; }, std::chrono::minutes(1)));
  stored.close();
  EXPECT_TRUE(large.is_ready());
  const auto answer = large.await_resume();
  stored.open(large_messages, 1);
  // It was appended before the close or not at all.
  const bool taken = answer && answer->error == ErrorCode::none;
  EXPECT_EQ(letters(), taken ? "ab" : "a");
  if (!taken) {
    EXPECT_EQ(stored.file_bytes(), bytes);
  }
  EXPECT_EQ(stored.partition().recovery().bytes_cut, 0u);
}

TEST_F(TurnsTest, AFollowerTakesALargeAnswerOverInTurns) {
  stored.produce(batch_of('a', large_bytes));
  stored.produce(batch_of('b', 10));
  const auto file = stored.disk().open(stored.first_segment(), OpenMode::read);
  ASSERT_TRUE(file);
  std::vector<std::byte> copy(stored.file_bytes());
  ASSERT_TRUE((*file)->read_at(0, copy));
  StoredPartition follower("filelog", 2);
  follower.open(large_messages);
  follower.follow({0});
  follower.follow({1});
  Payload records;
  records.add(Buffer::copy_of(copy));
  std::optional<Offset> between;
  follower.between_pieces([&] { between = follower.partition().log_end(); });
  const auto next = follower.take_over(
      {1}, {.high_watermark = {2}, .log_start = {0}, .records = std::move(records)});
  EXPECT_EQ(next, Offset{2});
  EXPECT_EQ(between, Offset{0});
  EXPECT_EQ(follower.file_bytes(), copy.size());
}

}  // namespace
}  // namespace millrace::kernel
