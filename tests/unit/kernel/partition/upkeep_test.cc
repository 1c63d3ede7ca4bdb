// Recovery, retention and snapshots of a partition.
#include <string>
#include <vector>

#include "tests/unit/kernel/partition/partition_fixture.h"

namespace millrace::kernel {
namespace {

using namespace std::chrono_literals;
using ::testing::Contains;
using ::testing::IsEmpty;

class UpkeepTest : public testing::PartitionFixture {
 protected:
  PartitionProduced send(std::int32_t sequence) {
    return produce(batch({.producer_id = 9, .producer_epoch = 0, .base_sequence = sequence}));
  }
  std::map<Offset, Buffer>& snapshots() { return storage.stored.aux[AuxKind::producer_snapshot]; }
  void roll() {
    if (storage.stored.segment_bases.back() < storage.stored.end()) {
      storage.stored.segment_bases.push_back(storage.stored.end());
    }
  }
};

TEST_F(UpkeepTest, OffsetsSurviveReopening) {
  open();
  produce(batch({.values = {"a", "b"}}));
  reopen();
  EXPECT_EQ(partition->offsets().high_watermark, Offset{2});
  EXPECT_EQ(produce(batch()).base_offset, Offset{2});
}

TEST_F(UpkeepTest, ProducersSurviveACleanEnd) {
  open();
  send(0);
  send(1);
  reopen();
  EXPECT_EQ(send(1).base_offset, Offset{1});
  EXPECT_EQ(send(3).error, ErrorCode::out_of_order_sequence_number);
  EXPECT_EQ(send(2).base_offset, Offset{2});
}

TEST_F(UpkeepTest, ProducersAreReplayedFromTheLogAfterACrash) {
  for (const bool in_files : {false, true}) {
    storage.stored = testing::StoredLog();
    storage.stored.in_files = in_files;
    open();
    for (int i = 0; i < 4; ++i) send(i);
    crash_and_reopen();
    EXPECT_THAT(snapshots(), IsEmpty());
    for (int i = 0; i < 4; ++i) EXPECT_EQ(send(i).base_offset, Offset{i});
    EXPECT_EQ(send(4).base_offset, Offset{4});
    close();
  }
}

TEST_F(UpkeepTest, ReplayContinuesTheNewestSnapshot) {
  open();
  send(0);
  send(1);
  roll();
  maintain();
  ASSERT_TRUE(snapshots().contains(Offset{2}));
  send(2);
  send(3);
  // What the snapshot stands for is not read again.
  storage.stored.batches[0].bytes = Buffer::copy_of("not read");
  crash_and_reopen();
  EXPECT_EQ(send(0).error, ErrorCode::out_of_order_sequence_number);
  for (int i = 1; i < 4; ++i) EXPECT_EQ(send(i).base_offset, Offset{i});
  EXPECT_EQ(send(4).base_offset, Offset{4});
}

TEST_F(UpkeepTest, ASnapshotIsTakenOnceForEachRoll) {
  open();
  send(0);
  maintain();
  EXPECT_THAT(snapshots(), IsEmpty());
  roll();
  maintain();
  send(1);
  maintain();
  EXPECT_EQ(snapshots().size(), 1U);
}

TEST_F(UpkeepTest, NothingIsWrittenWhereNothingHasChanged) {
  open();
  reopen();
  reopen();
  EXPECT_EQ(storage.stored.aux_puts, 0U);
  send(0);
  reopen();
  const auto puts = storage.stored.aux_puts;
  EXPECT_EQ(puts, 2U);  // epochs, and producers
  reopen();
  reopen();
  EXPECT_EQ(storage.stored.aux_puts, puts);
  EXPECT_EQ(send(0).base_offset, Offset{0});
}

TEST_F(UpkeepTest, APartitionThatIsGivenUpStoresNothing) {
  open();
  send(0);
  ASSERT_TRUE(run(partition->abandon()));
  partition.reset();
  EXPECT_EQ(storage.stored.aux_puts, 0U);
}

TEST_F(UpkeepTest, ABrokenSnapshotIsPassedOver) {
  open();
  send(0);
  close();
  ASSERT_EQ(snapshots().size(), 1U);
  snapshots()[Offset{1}] = Buffer::copy_of("no snapshot");
  open();
  EXPECT_THAT(log.lines, Contains("warning: passed over a producer snapshot"));
  EXPECT_THAT(snapshots(), IsEmpty());
  EXPECT_EQ(send(0).base_offset, Offset{0});
}

// The records behind such a snapshot were lost; others with the same offsets will follow.
TEST_F(UpkeepTest, ASnapshotBeyondTheEndIsRemoved) {
  open();
  send(0);
  send(1);
  close();
  ASSERT_TRUE(snapshots().contains(Offset{2}));
  storage.stored.batches.pop_back();
  open();
  EXPECT_FALSE(snapshots().contains(Offset{2}));
  EXPECT_EQ(send(1).base_offset, Offset{1});
}

TEST_F(UpkeepTest, LeaderEpochsAreKept) {
  open({}, Epoch{1});
  produce(batch());
  produce(batch());
  reopen({}, Epoch{3});
  EXPECT_EQ(partition->epoch_end(Epoch{1}), (EpochCache::Entry{{1}, {2}}));
  EXPECT_EQ(partition->epoch_end(Epoch{2}), (EpochCache::Entry{{1}, {2}}));
  EXPECT_EQ(partition->epoch_end(Epoch{3}), (EpochCache::Entry{{3}, {2}}));
  EXPECT_EQ(partition->epoch_end(Epoch{0}), (EpochCache::Entry{{0}, {0}}));
  EXPECT_EQ(partition->epoch_end(Epoch{4}), EpochCache::Entry{});
  close();
  EXPECT_EQ(storage.stored.aux[AuxKind::leader_epochs].begin()->second.text(), "0\n2\n1 0\n3 2\n");
}

TEST_F(UpkeepTest, LostLeaderEpochsAreRebuiltFromTheBatches) {
  open({}, Epoch{1});
  produce(batch());
  reopen({}, Epoch{2});
  produce(batch());
  auto stored = storage.stored.aux[AuxKind::leader_epochs].begin()->second;
  snapshots().clear();
  close();
  snapshots().clear();
  storage.stored.aux[AuxKind::leader_epochs].begin()->second = Buffer::copy_of("0\n7\n");
  open({}, Epoch{2});
  EXPECT_THAT(log.lines, Contains("warning: rebuilding leader epochs"));
  EXPECT_EQ(partition->epoch_end(Epoch{1}), (EpochCache::Entry{{1}, {1}}));
}

TEST_F(UpkeepTest, RetentionByTimeMovesTheStart) {
  open({{"retention.ms", "60000"}});
  produce(batch({.time = environment.wall_now().ms}));
  roll();
  environment.advance(30s);
  produce(batch({.time = environment.wall_now().ms}));
  environment.advance(31s);
  storage.stored.segment_modified[Offset{0}] = Timestamp{environment.wall_now().ms - 61'000};
  maintain();
  EXPECT_EQ(partition->offsets().log_start, Offset{1});
  EXPECT_EQ(fetch(0).error, ErrorCode::offset_out_of_range);
  EXPECT_EQ(fetch(1).error, ErrorCode::none);
  EXPECT_EQ(produce(batch()).log_start, Offset{1});
}

TEST_F(UpkeepTest, AnIdleActiveSegmentExpiresToo) {
  open({{"retention.ms", "30000"}});
  for (int i = 0; i < 3; ++i) produce(batch({.time = environment.wall_now().ms}));
  environment.advance(29s);
  maintain();
  EXPECT_EQ(partition->offsets().log_start, Offset{0});
  environment.advance(2s);
  maintain();
  EXPECT_EQ(partition->offsets().log_start, Offset{3});
  EXPECT_EQ(partition->offsets().end, Offset{3});
  EXPECT_THAT(stored_values(), IsEmpty());
  EXPECT_EQ(produce(batch()).base_offset, Offset{3});
}

TEST_F(UpkeepTest, RetentionStopsBelowTheHighWatermark) {
  open({{"retention.ms", "1000"}});
  partition->hold_high_watermark(true);
  begin_produce(batch(), {.acks = 1});
  environment.run();
  environment.advance(10s);
  maintain();
  EXPECT_EQ(partition->offsets().log_start, Offset{0});
}

}  // namespace
}  // namespace millrace::kernel
