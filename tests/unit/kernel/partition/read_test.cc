#include <string>
#include <vector>

#include "tests/unit/kernel/partition/partition_fixture.h"

namespace millrace::kernel {
namespace {

using ::testing::ElementsAre;

class ReadTest : public testing::PartitionFixture {
 protected:
  std::vector<std::int64_t> base_offsets(const PartitionFetched& fetched) {
    const auto bytes = fetched.records.flatten();
    EXPECT_TRUE(bytes);
    std::vector<std::int64_t> offsets;
    for (std::size_t at = 0; at < bytes->size();) {
      const auto header = read_batch_header(bytes->slice(at));
      EXPECT_TRUE(header);
      offsets.push_back(header->base_offset.value);
      at += header->total_bytes();
    }
    return offsets;
  }
  /// A partition with three batches of two records.
  void open_filled() {
    open();
    for (int i = 0; i < 3; ++i) produce(batch({.values = {"a", "b"}}));
  }
  /// Counts what it is told.
  struct Watch final : PartitionWatch {
    int changes = 0;
    bool readable = false;
    void on_change(bool more) override {
      ++changes;
      readable |= more;
    }
  };
};

TEST_F(ReadTest, AnswersWholeBatchesFromTheOneThatHoldsTheOffset) {
  open_filled();
  const auto fetched = fetch(3);
  EXPECT_EQ(fetched.error, ErrorCode::none);
  EXPECT_EQ(fetched.partition, 3);
  EXPECT_EQ(fetched.high_watermark, Offset{6});
  EXPECT_EQ(fetched.last_stable, Offset{6});
  EXPECT_EQ(fetched.log_start, Offset{0});
  EXPECT_THAT(base_offsets(fetched), ElementsAre(2, 4));
}

TEST_F(ReadTest, TheEndIsEmptyAndBeyondItIsOutOfRange) {
  open_filled();
  const auto end = fetch(6);
  EXPECT_EQ(end.error, ErrorCode::none);
  EXPECT_TRUE(end.records.empty());
  for (const auto offset : {7, 1'000'000, -3}) {
    const auto outside = fetch(offset);
    EXPECT_EQ(outside.error, ErrorCode::offset_out_of_range) << offset;
    EXPECT_EQ(outside.high_watermark, Offset{});
  }
}

TEST_F(ReadTest, NothingAboveTheHighWatermarkIsShown) {
  open();
  produce(batch());
  partition->hold_high_watermark(true);
  begin_produce(batch());
  environment.run();
  EXPECT_THAT(base_offsets(fetch(0)), ElementsAre(0));
  const auto above = fetch(1);
  EXPECT_EQ(above.error, ErrorCode::none);
  EXPECT_TRUE(above.records.empty());
  EXPECT_EQ(above.high_watermark, Offset{1});
  partition->hold_high_watermark(false);
  EXPECT_THAT(base_offsets(fetch(1)), ElementsAre(1));
}

TEST_F(ReadTest, LimitsBytesButForTheFirstBatch) {
  open_filled();
  const auto one = storage.stored.batches[0].bytes.size();
  const auto read = [this](std::uint64_t request_bytes, std::int32_t partition_bytes,
                           bool at_least_one) {
    return base_offsets(
        fetch(0, {.bytes_max = request_bytes, .at_least_one = at_least_one}, partition_bytes));
  };
  EXPECT_THAT(read(1, 1, true), ElementsAre(0));
  EXPECT_THAT(read(1, 1, false), ElementsAre());
  EXPECT_THAT(read(0, 1 << 20, true), ElementsAre(0));
  EXPECT_THAT(read(0, 1 << 20, false), ElementsAre());
  EXPECT_THAT(read(1 << 20, -1, false), ElementsAre());
  EXPECT_THAT(read(2 * one, 1 << 20, false), ElementsAre(0, 2));
  EXPECT_THAT(read(1 << 20, static_cast<std::int32_t>(2 * one), false), ElementsAre(0, 2));
  EXPECT_THAT(read(3 * one - 1, 1 << 20, false), ElementsAre(0, 2));
  EXPECT_THAT(read(3 * one, 1 << 20, false), ElementsAre(0, 2, 4));
}

TEST_F(ReadTest, ChecksTheClientsLeaderEpoch) {
  open({}, Epoch{5});
  produce(batch());
  const ReadContext context{.bytes_max = 1000, .at_least_one = true};
  const auto read_at = [&](std::int32_t epoch) {
    return fetch({.current_leader_epoch = {epoch}, .from = {0}, .bytes_max = 1000}, context).error;
  };
  EXPECT_EQ(read_at(-1), ErrorCode::none);
  EXPECT_EQ(read_at(5), ErrorCode::none);
  EXPECT_EQ(read_at(4), ErrorCode::fenced_leader_epoch);
  EXPECT_EQ(read_at(6), ErrorCode::unknown_leader_epoch);
}

TEST_F(ReadTest, AbortedTransactionsAreForReadCommittedAlone) {
  open();
  produce(batch());
  EXPECT_FALSE(fetch(0).aborted);
  const auto committed =
      fetch(0, {.isolation = Isolation::read_committed, .bytes_max = 1000, .at_least_one = true});
  ASSERT_TRUE(committed.aborted);
  EXPECT_TRUE(committed.aborted->empty());
  EXPECT_FALSE(committed.records.empty());
}

// KIP-110: an old client is told of zstd where the topic is zstd; a producer's own choice is sent.
TEST_F(ReadTest, OldClientsAreToldOfZstdTopics) {
  const ReadContext old{.zstd = false, .bytes_max = 1000, .at_least_one = true};
  open();
  produce(batch({.compression = CompressionId::zstd}));
  EXPECT_EQ(fetch(0, old).error, ErrorCode::none);
  reopen({{"compression.type", "zstd"}});
  EXPECT_EQ(fetch(0, old).error, ErrorCode::unsupported_compression_type);
  EXPECT_EQ(fetch(0).error, ErrorCode::none);
}

TEST_F(ReadTest, AFailedReadIsAStorageError) {
  open_filled();
  storage.stored.read_error = Error{Errc::io, "EIO"};
  EXPECT_EQ(fetch(0).error, ErrorCode::kafka_storage_error);
  storage.stored.read_error = Error{Errc::out_of_range, "trimmed meanwhile"};
  EXPECT_EQ(fetch(0).error, ErrorCode::offset_out_of_range);
}

TEST_F(ReadTest, AWatchIsToldWhenTheHighWatermarkPasses) {
  open();
  Watch watch;
  partition->watch(watch, {0}, Horizon::high_watermark);
  partition->hold_high_watermark(true);
  begin_produce(batch());
  environment.run();
  EXPECT_EQ(watch.changes, 0);
  partition->hold_high_watermark(false);
  EXPECT_TRUE(watch.readable);
  produce(batch());
  EXPECT_EQ(watch.changes, 1) << "told once that there is more";
}

TEST_F(ReadTest, AWatchIsToldAtOnceOfWhatIsThere) {
  open();
  produce(batch());
  Watch behind;
  partition->watch(behind, {0}, Horizon::high_watermark);
  EXPECT_TRUE(behind.readable);
  Watch at_end;
  partition->watch(at_end, {1}, Horizon::high_watermark);
  EXPECT_EQ(at_end.changes, 0);
}

TEST_F(ReadTest, AWatchHearsOfMovesShortOfWhatItWaitsFor) {
  open();
  Watch watch;
  partition->watch(watch, {1}, Horizon::high_watermark);
  produce(batch());
  EXPECT_EQ(watch.changes, 1);
  EXPECT_FALSE(watch.readable);
  produce(batch());
  EXPECT_EQ(watch.changes, 2);
  EXPECT_TRUE(watch.readable);
}

TEST_F(ReadTest, AStoppedWatchIsLeftAlone) {
  open();
  Watch first;
  Watch stopped;
  Watch last;
  for (auto* watch : {&first, &stopped, &last}) {
    partition->watch(*watch, {0}, Horizon::high_watermark);
  }
  stopped.stop();
  {
    Watch gone;
    partition->watch(gone, {0}, Horizon::high_watermark);
  }
  produce(batch());
  EXPECT_TRUE(first.readable);
  EXPECT_EQ(stopped.changes, 0);
  EXPECT_TRUE(last.readable);
}

TEST_F(ReadTest, ClosingTellsWatchesAndRefusesReads) {
  open();
  produce(batch());
  Watch watch;
  partition->watch(watch, {1}, Horizon::high_watermark);
  ASSERT_TRUE(run(partition->close()));
  EXPECT_TRUE(watch.readable);
  EXPECT_EQ(fetch(0).error, ErrorCode::not_leader_or_follower);
  EXPECT_EQ(find(-1).error, ErrorCode::not_leader_or_follower);
}

}  // namespace
}  // namespace millrace::kernel
