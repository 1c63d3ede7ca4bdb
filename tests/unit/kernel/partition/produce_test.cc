#include <string>
#include <vector>

#include <millrace/bytes.h>

#include "tests/unit/kernel/partition/partition_fixture.h"

namespace millrace::kernel {
namespace {

using namespace std::chrono_literals;
using testing::BatchSpec;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

using ProduceTest = testing::PartitionFixture;

TEST_F(ProduceTest, GivesOffsetsInOrder) {
  open();
  const auto first = produce(batch({.values = {"a", "b", "c"}}));
  EXPECT_EQ(first.error, ErrorCode::none) << first.message;
  EXPECT_EQ(first.partition, 3);
  EXPECT_EQ(first.base_offset, Offset{0});
  EXPECT_EQ(first.log_append_time, Timestamp{});
  EXPECT_EQ(first.log_start, Offset{0});
  EXPECT_EQ(produce(batch({.values = {"d"}})).base_offset, Offset{3});
  EXPECT_EQ(partition->offsets().end, Offset{4});
  EXPECT_EQ(partition->offsets().high_watermark, Offset{4});
  EXPECT_EQ(partition->offsets().last_stable, Offset{4});
  EXPECT_THAT(stored_values(), ElementsAre("a", "b", "c", "d"));
}

TEST_F(ProduceTest, StoresTheBodyAsItCameUnderAFreshHeader) {
  open({}, Epoch{7});
  const auto sent = batch({.values = {"a", "b"}});
  produce(batch());
  produce(sent);
  const auto& stored = storage.stored.batches[1];
  EXPECT_EQ(stored.header.base_offset, Offset{1});
  EXPECT_EQ(stored.header.partition_leader_epoch, Epoch{7});
  EXPECT_EQ(stored.header.crc, read_batch_header(sent)->crc);
  EXPECT_EQ(stored.bytes.slice(16).text(), sent.slice(16).text());
  EXPECT_TRUE(verify_crc(stored.bytes));
}

TEST_F(ProduceTest, LogAppendTimeIsTheBrokersClock) {
  open({{"message.timestamp.type", "LogAppendTime"}});
  const auto now = environment.wall_now();
  const auto produced = produce(batch({.values = {"a", "b"}, .time = 5}));
  EXPECT_EQ(produced.log_append_time, now);
  const auto& stored = storage.stored.batches[0];
  EXPECT_TRUE(stored.header.log_append_time());
  EXPECT_EQ(stored.header.max_timestamp, now);
  EXPECT_TRUE(verify_crc(stored.bytes));
}

TEST_F(ProduceTest, AcksAllWaitsForTheHighWatermark) {
  open();
  partition->hold_high_watermark(true);
  const auto all = begin_produce(batch(), {.acks = -1, .timeout = 5s});
  const auto leader = begin_produce(batch(), {.acks = 1, .timeout = 5s});
  const auto none = begin_produce(batch(), {.acks = 0, .timeout = 5s});
  environment.run();
  EXPECT_FALSE(all.arrived());
  EXPECT_EQ(leader.value().base_offset, Offset{1});
  EXPECT_EQ(none.value().base_offset, Offset{2});
  EXPECT_EQ(partition->offsets().high_watermark, Offset{0});
  EXPECT_EQ(partition->offsets().end, Offset{3});

  partition->hold_high_watermark(false);
  environment.run();
  EXPECT_EQ(all.value().base_offset, Offset{0});
  EXPECT_EQ(all.value().error, ErrorCode::none);
}

TEST_F(ProduceTest, AcksAllTimesOut) {
  open();
  partition->hold_high_watermark(true);
  const auto all = begin_produce(batch(), {.acks = -1, .timeout = 5s});
  environment.advance(4999ms);
  EXPECT_FALSE(all.arrived());
  environment.advance(1ms);
  EXPECT_EQ(all.value().error, ErrorCode::request_timed_out);
  EXPECT_EQ(all.value().base_offset, Offset{});
}

TEST_F(ProduceTest, NothingIsAcknowledgedOrShownBeforeItIsWritten) {
  open();
  storage.stored.hold_written = true;
  const auto leader = begin_produce(batch(), {.acks = 1, .timeout = 5s});
  environment.run();
  EXPECT_FALSE(leader.arrived());
  EXPECT_EQ(partition->offsets().high_watermark, Offset{0});
  EXPECT_TRUE(fetch(0).records.empty());

  storage.stored.hold_written = false;
  storage.stored.released.notify_all();
  environment.run();
  EXPECT_EQ(leader.value().error, ErrorCode::none);
  EXPECT_FALSE(fetch(0).records.empty());
}

TEST_F(ProduceTest, ARefusedWriteLeavesThePartitionAsItWas) {
  open();
  const BatchSpec spec{.producer_id = 1, .producer_epoch = 0, .base_sequence = 0};
  storage.stored.append_error = Error{Errc::io, "disk full"};
  EXPECT_EQ(produce(batch(spec)).error, ErrorCode::kafka_storage_error);
  EXPECT_TRUE(partition->failing());
  storage.stored.append_error.reset();
  const auto retried = produce(batch(spec));
  EXPECT_EQ(retried.error, ErrorCode::none) << retried.message;
  EXPECT_EQ(retried.base_offset, Offset{0});
  EXPECT_FALSE(partition->failing());
}

// As of a producer with several requests in flight: it sends all that was refused again, in order.
TEST_F(ProduceTest, WhatWasSentBehindARefusedWriteIsRefusedLikeIt) {
  open();
  const auto sent = [this](std::int32_t sequence) {
    return produce(batch({.producer_id = 1, .producer_epoch = 0, .base_sequence = sequence})).error;
  };
  EXPECT_EQ(sent(0), ErrorCode::none);
  storage.stored.append_error = Error{Errc::io, "disk full"};
  EXPECT_EQ(sent(1), ErrorCode::kafka_storage_error);
  EXPECT_EQ(sent(2), ErrorCode::kafka_storage_error);
  storage.stored.append_error.reset();
  EXPECT_EQ(sent(3), ErrorCode::kafka_storage_error) << "there is room again, but 1 and 2 are not";
  for (const auto sequence : {1, 2, 3}) EXPECT_EQ(sent(sequence), ErrorCode::none);
  EXPECT_EQ(sent(5), ErrorCode::out_of_order_sequence_number);
}

TEST_F(ProduceTest, AfterALostWriteTheLogTakesNoMore) {
  open();
  storage.stored.written_error = Error{Errc::io, "disk gone"};
  EXPECT_EQ(produce(batch()).error, ErrorCode::kafka_storage_error);
  storage.stored.written_error.reset();
  EXPECT_EQ(produce(batch()).error, ErrorCode::kafka_storage_error);
  EXPECT_TRUE(partition->failing());
  EXPECT_EQ(partition->offsets().high_watermark, Offset{0});
}

TEST_F(ProduceTest, ClosingAnswersWhoWaits) {
  open();
  partition->hold_high_watermark(true);
  const auto waiting = begin_produce(batch(), {.acks = -1, .timeout = 5s});
  environment.run();
  EXPECT_FALSE(waiting.arrived());
  ASSERT_TRUE(run(partition->close()));
  EXPECT_EQ(waiting.value().error, ErrorCode::not_leader_or_follower);
  EXPECT_EQ(produce(batch()).error, ErrorCode::not_leader_or_follower);
}

TEST_F(ProduceTest, RefusesUnknownAcksAndTooFewReplicas) {
  open({{"min.insync.replicas", "2"}});
  EXPECT_EQ(produce(batch(), {.acks = 5}).error, ErrorCode::invalid_required_acks);
  EXPECT_EQ(produce(batch(), {.acks = -1}).error, ErrorCode::not_enough_replicas);
  EXPECT_EQ(produce(batch(), {.acks = 1}).error, ErrorCode::none);
}

// ---- conversions, which workers make ----

TEST_F(ProduceTest, StoresBatchesInTheTopicsCodec) {
  open({{"compression.type", "lz4"}});
  for (const auto codec : {CompressionId::none, CompressionId::gzip, CompressionId::lz4}) {
    const auto produced = produce(batch({.values = {"a", "b"}, .compression = codec}));
    EXPECT_EQ(produced.error, ErrorCode::none) << produced.message;
    EXPECT_EQ(storage.stored.batches.back().header.compression(), CompressionId::lz4);
  }
  EXPECT_THAT(stored_values(), ElementsAre("a", "b", "a", "b", "a", "b"));
}

TEST_F(ProduceTest, StoresBatchesUncompressedWhereTheTopicSaysSo) {
  open({{"compression.type", "uncompressed"}});
  produce(batch({.values = {"a"}, .compression = CompressionId::gzip}));
  EXPECT_EQ(storage.stored.batches.back().header.compression(), CompressionId::none);
  EXPECT_THAT(stored_values(), ElementsAre("a"));
}

// Preparation ends in any order; appends keep that of the requests, also of those that need none.
TEST_F(ProduceTest, RecompressionKeepsTheOrderOfRequests) {
  open({{"compression.type", "lz4"}});
  environment.run_newest_work_first();
  std::vector<testing::Arriving<PartitionProduced>> producing;
  std::vector<std::string> expected;
  for (int i = 0; i < 6; ++i) {
    const auto codec = i % 2 == 0 ? CompressionId::gzip : CompressionId::lz4;
    expected.push_back("value " + std::to_string(i));
    producing.push_back(begin_produce(batch({.values = {expected.back()}, .compression = codec})));
  }
  environment.run();
  EXPECT_EQ(stored_values(), expected);
  for (std::size_t i = 0; i < producing.size(); ++i) {
    EXPECT_EQ(producing[i].value().base_offset, Offset{static_cast<std::int64_t>(i)});
  }
  EXPECT_EQ(produce(batch({.compression = CompressionId::lz4})).base_offset, Offset{6});
}

TEST_F(ProduceTest, ALargeBatchIsCheckedByAWorkerAndKeepsItsPlace) {
  open({{"max.message.bytes", std::to_string(8 << 20)}});
  const std::string large(2 * checked_on_shard_bytes_max, 'v');
  const auto first = begin_produce(batch({.values = {large}}));
  const auto second = begin_produce(batch({.values = {"behind"}}));
  while (environment.shard().step()) {
  }
  EXPECT_TRUE(stored_values().empty()) << "no worker has run";
  environment.run();
  EXPECT_THAT(stored_values(), ElementsAre(large, "behind"));
  EXPECT_EQ(first.value().base_offset, Offset{0});
  EXPECT_EQ(second.value().base_offset, Offset{1});
}

TEST_F(ProduceTest, WhatIsKeptOfOpenedBatchesIsBounded) {
  open({{"compression.type", "uncompressed"}, {"max.message.bytes", std::to_string(8 << 20)}});
  std::vector<testing::Arriving<PartitionProduced>> sent;
  for (int n = 0; n < 20; ++n) {
    const std::string value = "v" + std::to_string(n);
    sent.push_back(begin_produce(batch({.values = {value}, .compression = CompressionId::gzip})));
  }
  EXPECT_EQ(batch_opening.kept().bytes_used(), 32UL << 20);
  EXPECT_EQ(batch_opening.kept().waiting(), 16u);
  environment.run();
  for (int n = 0; n < 20; ++n) EXPECT_EQ(sent[n].value().base_offset, Offset{n});
  EXPECT_EQ(batch_opening.kept().bytes_used(), 0u);
}

TEST_F(ProduceTest, RecordsThatHaveToBeOpenedAreReleasedWhenTheLogHasThem) {
  open();
  partition->hold_high_watermark(true);
  const PartitionRecords plain{.partition = 3, .records = batch()};
  EXPECT_FALSE(partition->produce(plain, {.acks = 1}).released);
  const PartitionRecords packed{.partition = 3,
                                .records = batch({.compression = CompressionId::gzip})};
  auto call = partition->produce(packed, {.acks = -1, .timeout = 5s});
  ASSERT_TRUE(call.released);
  EXPECT_FALSE(call.released->is_ready());
  environment.run();
  EXPECT_TRUE(call.released->is_ready());
  EXPECT_FALSE(call.done.is_ready()) << "not acknowledged yet";
  partition->hold_high_watermark(false);
  environment.run();
  EXPECT_TRUE(call.done.is_ready());
}

TEST_F(ProduceTest, ABatchThatOpensToTooMuchIsToldApart) {
  open({{"max.decompressed.message.bytes", "64"}});
  const auto bomb =
      produce(batch({.values = {std::string(100, 'x')}, .compression = CompressionId::gzip}));
  EXPECT_EQ(bomb.error, ErrorCode::message_too_large);
  EXPECT_TRUE(bomb.opens_too_large);
  EXPECT_FALSE(produce(batch({.compression = CompressionId::gzip})).opens_too_large);
}

TEST_F(ProduceTest, ABatchThatCannotBeOpenedDoesNotHoldUpTheNext) {
  open({{"compression.type", "lz4"}});
  auto broken = batch({.compression = CompressionId::gzip});
  MutableBuffer bytes(broken.size());
  bytes.append(broken);
  bytes.data()[batch_header_bytes] = std::byte{0};
  store_be(bytes.data() + 17, crc32c(bytes.bytes().subspan(21)));
  const auto bad = begin_produce(std::move(bytes).freeze());
  const auto good = begin_produce(batch());
  environment.run();
  EXPECT_EQ(bad.value().error, ErrorCode::unknown_server_error);
  EXPECT_EQ(good.value().base_offset, Offset{0});
}

TEST_F(ProduceTest, ConvertsOldMessageSets) {
  open();
  std::string message;
  const auto be = [&message](auto number) {
    std::byte bytes[sizeof number];
    store_be(bytes, number);
    message += as_text(bytes);
  };
  be(std::int8_t{0});    // magic
  be(std::int8_t{0});    // attributes
  be(std::int32_t{-1});  // key
  be(std::int32_t{3});
  message += "old";
  const auto body = std::exchange(message, {});
  be(std::int64_t{0});
  be(static_cast<std::int32_t>(body.size() + 4));
  be(crc32(as_bytes(body)));
  message += body;

  const auto set = Buffer::copy_of(message + message);
  EXPECT_EQ(produce(set).error, ErrorCode::invalid_record);
  const auto produced = produce(set, {.acks = 1, .features = {.legacy_formats = true}});
  EXPECT_EQ(produced.error, ErrorCode::none) << produced.message;
  EXPECT_THAT(stored_values(), ElementsAre("old", "old"));
  EXPECT_EQ(storage.stored.batches[0].header.magic, 2);
  EXPECT_EQ(storage.stored.appends, 1U);

  message[message.size() - 1] ^= 1;
  EXPECT_EQ(
      produce(Buffer::copy_of(message), {.acks = 1, .features = {.legacy_formats = true}}).error,
      ErrorCode::corrupt_message);
}

// ---- flushing ----

TEST_F(ProduceTest, FlushMessagesPutsTheAcknowledgedOnStableStorage) {
  open({{"flush.messages", "3"}});
  produce(batch({.values = {"a", "b"}}), {.acks = 1});
  EXPECT_EQ(storage.stored.flushes, 0U);
  produce(batch({.values = {"c"}}), {.acks = 1});
  EXPECT_EQ(storage.stored.flushes, 1U);
  EXPECT_EQ(storage.stored.recovery_point, Offset{3});
}

TEST_F(ProduceTest, AFailedFlushIsAFailedWrite) {
  open({{"flush.messages", "1"}});
  storage.stored.flush_error = Error{Errc::io, "EIO"};
  EXPECT_EQ(produce(batch(), {.acks = 1}).error, ErrorCode::kafka_storage_error);
  EXPECT_EQ(partition->offsets().high_watermark, Offset{0});
}

TEST_F(ProduceTest, FlushMsFlushesOnceTheTimeIsUp) {
  open({{"flush.ms", "500"}});
  produce(batch());
  produce(batch());
  environment.advance(499ms);
  EXPECT_EQ(storage.stored.flushes, 0U);
  environment.advance(1ms);
  EXPECT_EQ(storage.stored.flushes, 1U);
  EXPECT_EQ(storage.stored.recovery_point, Offset{2});
  environment.advance(10s);
  EXPECT_EQ(storage.stored.flushes, 1U);
  produce(batch());
  environment.advance(500ms);
  EXPECT_EQ(storage.stored.flushes, 2U);
}

// ---- idempotent producers ----

class IdempotentTest : public ProduceTest {
 protected:
  PartitionProduced send(std::int32_t sequence, std::size_t records = 1, std::int16_t epoch = 0) {
    return produce(batch({.values = std::vector<std::string>(records, "value"),
                          .producer_id = 9,
                          .producer_epoch = epoch,
                          .base_sequence = sequence}));
  }
};

TEST_F(IdempotentTest, ARepeatedBatchIsAnsweredWithItsFirstOffset) {
  open();
  EXPECT_EQ(send(0, 2).base_offset, Offset{0});
  EXPECT_EQ(send(2, 1).base_offset, Offset{2});
  EXPECT_EQ(send(0, 2).base_offset, Offset{0});
  EXPECT_EQ(send(2, 1).base_offset, Offset{2});
  EXPECT_EQ(partition->offsets().end, Offset{3});
}

// Five batches under way, all answers lost: each is recognised; the sixth oldest is never appended.
TEST_F(IdempotentTest, RemembersFiveBatches) {
  open();
  for (int i = 0; i < 6; ++i) send(i);
  for (int i = 1; i < 6; ++i) EXPECT_EQ(send(i).base_offset, Offset{i}) << i;
  EXPECT_EQ(send(1).base_offset, Offset{1});
  EXPECT_EQ(send(0).error, ErrorCode::out_of_order_sequence_number);
  EXPECT_EQ(partition->offsets().end, Offset{6});
}

TEST_F(IdempotentTest, ARepeatedBatchWaitsForTheHighWatermarkToo) {
  open();
  partition->hold_high_watermark(true);
  const auto spec = BatchSpec{.producer_id = 9, .producer_epoch = 0, .base_sequence = 0};
  const auto first = begin_produce(batch(spec));
  const auto again = begin_produce(batch(spec));
  environment.run();
  EXPECT_FALSE(first.arrived());
  EXPECT_FALSE(again.arrived());
  partition->hold_high_watermark(false);
  environment.run();
  EXPECT_EQ(first.value().base_offset, again.value().base_offset);
  EXPECT_EQ(partition->offsets().end, Offset{1});
}

TEST_F(IdempotentTest, SequencesWrapToZero) {
  open();
  constexpr std::int32_t last = 2147483647;
  EXPECT_EQ(send(last - 2, 2).error, ErrorCode::none);
  EXPECT_EQ(send(last, 3).error, ErrorCode::none);  // straddles: last, 0, 1
  EXPECT_EQ(send(2, 1).error, ErrorCode::none);
  EXPECT_EQ(send(last, 3).base_offset, Offset{2});
  EXPECT_EQ(send(4, 1).error, ErrorCode::out_of_order_sequence_number);
}

TEST_F(IdempotentTest, GapsAreRefused) {
  open();
  send(0);
  const auto gap = send(2);
  EXPECT_EQ(gap.error, ErrorCode::out_of_order_sequence_number);
  EXPECT_THAT(gap.message, HasSubstr("sequence 2, expected 1"));
  EXPECT_EQ(send(1).error, ErrorCode::none);
}

TEST_F(IdempotentTest, AnUnknownProducerGoesOnFromWhereItIs) {
  open();
  EXPECT_EQ(send(7).error, ErrorCode::none);
  EXPECT_EQ(send(8).error, ErrorCode::none);
}

// KIP-360: the client raises its epoch and starts over.
TEST_F(IdempotentTest, ANewEpochBeginsAtZeroAndFencesTheOld) {
  open();
  send(0);
  EXPECT_EQ(send(4, 1, 1).error, ErrorCode::out_of_order_sequence_number);
  EXPECT_EQ(send(0, 1, 1).error, ErrorCode::none);
  EXPECT_EQ(send(1, 1, 0).error, ErrorCode::invalid_producer_epoch);
  EXPECT_EQ(send(1, 1, 1).error, ErrorCode::none);
}

TEST_F(IdempotentTest, AnIdleProducerIsForgottenInTheEnd) {
  open();
  send(0);
  environment.advance(24h - 1ms);
  maintain();
  EXPECT_EQ(send(5).error, ErrorCode::out_of_order_sequence_number);
  environment.advance(1ms);
  maintain();
  EXPECT_EQ(send(5).error, ErrorCode::none);
}

}  // namespace
}  // namespace millrace::kernel
