#include <string>
#include <vector>

#include "tests/unit/kernel/partition/partition_fixture.h"

namespace millrace::kernel {
namespace {

// The base of the times of these tests; records of a batch are a second apart.
constexpr std::int64_t t0 = 1'600'000'000'000;

class FindOffsetTest : public testing::PartitionFixture {
 protected:
  void expect_found(const PartitionOffsetFound& found, std::int64_t offset,
                    std::int64_t timestamp) {
    EXPECT_EQ(found.error, ErrorCode::none);
    EXPECT_EQ(found.offset, Offset{offset});
    EXPECT_EQ(found.timestamp, Timestamp{timestamp});
  }
  void expect_none(const PartitionOffsetFound& found) {
    expect_found(found, -1, -1);
    EXPECT_EQ(found.leader_epoch, Epoch{});
  }
};

TEST_F(FindOffsetTest, EndsOfAnEmptyPartition) {
  open();
  expect_found(find(-1), 0, -1);
  expect_found(find(-2), 0, -1);
  expect_none(find(-3));
  expect_found(find(-4), 0, -1);
  expect_none(find(-5));
  expect_none(find(0));
}

TEST_F(FindOffsetTest, EndsOfAPartition) {
  open({}, Epoch{2});
  produce(batch({.values = {"a", "b", "c"}, .time = t0}));
  expect_found(find(-1), 3, -1);
  EXPECT_EQ(find(-1).leader_epoch, Epoch{2});
  expect_found(find(-2), 0, -1);
  EXPECT_EQ(find(-2).leader_epoch, Epoch{2});
  expect_found(find(-3), 2, t0 + 2000);
}

TEST_F(FindOffsetTest, LatestIsTheHighWatermark) {
  open();
  produce(batch());
  partition->hold_high_watermark(true);
  begin_produce(batch());
  environment.run();
  expect_found(find(-1), 1, -1);
}

TEST_F(FindOffsetTest, FindsTheRecordInsideItsBatch) {
  for (const auto codec : {CompressionId::none, CompressionId::lz4}) {
    for (const bool in_files : {false, true}) {
      storage.stored = testing::StoredLog();
      storage.stored.in_files = in_files;
      open();
      produce(batch({.values = {"a", "b", "c"}, .time = t0, .compression = codec}));
      produce(batch({.values = {"d", "e"}, .time = t0 + 10'000, .compression = codec}));
      expect_found(find(0), 0, t0);
      expect_found(find(t0), 0, t0);
      expect_found(find(t0 + 500), 1, t0 + 1000);
      expect_found(find(t0 + 1000), 1, t0 + 1000);
      expect_found(find(t0 + 1001), 2, t0 + 2000);
      expect_found(find(t0 + 2001), 3, t0 + 10'000);
      expect_found(find(t0 + 11'000), 4, t0 + 11'000);
      expect_none(find(t0 + 11'001));
      close();
    }
  }
}

TEST_F(FindOffsetTest, EveryRecordIsFoundHoweverItWasBatched) {
  open();
  std::int64_t sent = 0;
  for (const std::int64_t size : {1, 7, 30, 2, 60}) {
    produce(batch({.values = std::vector<std::string>(static_cast<std::size_t>(size), "x"),
                   .time = t0 + sent * 1000}));
    sent += size;
  }
  for (std::int64_t i = 0; i < sent; ++i) expect_found(find(t0 + i * 1000), i, t0 + i * 1000);
}

TEST_F(FindOffsetTest, NeverAnswersBelowTheStart) {
  open({{"retention.bytes", "0"}});
  for (int i = 0; i < 10; ++i) produce(batch({.time = t0 + i * 1000}));
  // The start moves within the segment: the batches before it are still in the file.
  storage.stored.start = Offset{5};
  expect_found(find(t0 + 1000), 5, t0 + 5000);
  expect_found(find(t0 + 7000), 7, t0 + 7000);
  expect_found(find(-2), 5, -1);
}

TEST_F(FindOffsetTest, ExpiredTimesLeadToNothing) {
  open();
  produce(batch({.time = t0}));
  storage.stored.start = Offset{1};
  expect_none(find(t0));
}

TEST_F(FindOffsetTest, NothingAboveTheHighWatermarkIsFound) {
  open();
  produce(batch({.time = t0}));
  partition->hold_high_watermark(true);
  begin_produce(batch({.time = t0 + 5000}));
  environment.run();
  expect_found(find(t0), 0, t0);
  expect_none(find(t0 + 1));
}

TEST_F(FindOffsetTest, LogAppendTimeIsEveryRecordsTime) {
  open({{"message.timestamp.type", "LogAppendTime"}});
  const auto now = environment.wall_now().ms;
  produce(batch({.values = {"a", "b"}, .time = 5}));
  expect_found(find(6), 0, now);
  expect_none(find(now + 1));
}

TEST_F(FindOffsetTest, TheNewestTimestampNeedNotBeTheLast) {
  open();
  produce(batch({.time = t0}));
  produce(batch({.values = {"a", "b"}, .time = t0 + 50'000}));
  produce(batch({.time = t0 + 1000}));
  expect_found(find(-3), 2, t0 + 51'000);
}

TEST_F(FindOffsetTest, ChecksTheClientsLeaderEpoch) {
  open({}, Epoch{5});
  EXPECT_EQ(find(-1, Epoch{5}).error, ErrorCode::none);
  EXPECT_EQ(find(-1, Epoch{4}).error, ErrorCode::fenced_leader_epoch);
  EXPECT_EQ(find(-1, Epoch{99}).error, ErrorCode::unknown_leader_epoch);
}

TEST_F(FindOffsetTest, OtherNegativeTimesAreNotKnown) {
  open();
  EXPECT_EQ(find(-77).error, ErrorCode::unsupported_version);
}

TEST_F(FindOffsetTest, AnswersTheEpochOfTheRecord) {
  open({}, Epoch{1});
  produce(batch({.time = t0}));
  reopen({}, Epoch{4});
  produce(batch({.time = t0 + 1000}));
  EXPECT_EQ(find(t0).leader_epoch, Epoch{1});
  EXPECT_EQ(find(t0 + 1000).leader_epoch, Epoch{4});
  EXPECT_EQ(find(-1).leader_epoch, Epoch{4});
}

}  // namespace
}  // namespace millrace::kernel
