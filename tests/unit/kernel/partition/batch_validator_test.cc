// What real brokers answer to each of these is in the captured session raw-error-cases.
#include "kernel/partition/batch_validator.h"

#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <millrace/bytes.h>

#include "kernel/host/levelled_codec.h"
#include "tests/unit/kernel/partition/test_storage.h"

namespace millrace::kernel {
namespace {

using ::testing::HasSubstr;

constexpr Timestamp now{1'700'000'000'000};

class BatchValidatorTest : public ::testing::Test {
 protected:
  BatchValidatorTest() { codecs.add(gzip); }

  struct Spec {
    std::vector<std::optional<std::string>> keys{"a", "b", "c"};
    std::vector<std::int64_t> times{now.ms, now.ms, now.ms};
    std::vector<std::int32_t> deltas{0, 1, 2};
    CompressionId compression = CompressionId::none;
  };
  Buffer batch(const Spec& spec) const {
    BatchBuilder builder({.compression = spec.compression});
    for (std::size_t at = 0; at < spec.keys.size(); ++at) {
      const auto& key = spec.keys[at];
      builder.add_at(spec.deltas[at], {spec.times[at]},
                     key ? std::optional<Bytes>(as_bytes(*key)) : std::nullopt, as_bytes("v"));
    }
    return *std::move(builder).finish(codecs);
  }
  Buffer batch() const { return batch(Spec{}); }

  /// The batch with its header changed; `total` keeps the bytes, the crc is made right again.
  static Buffer with(const Buffer& from, const std::function<void(BatchHeader&)>& change) {
    auto header = *read_batch_header(from);
    change(header);
    MutableBuffer bytes(from.size());
    bytes.append(from);
    write_batch_header(header, {bytes.data(), batch_header_bytes});
    header.crc = crc32c(bytes.bytes().subspan(21));
    write_batch_header(header, {bytes.data(), batch_header_bytes});
    return std::move(bytes).freeze();
  }

  Checked<std::vector<ReadyBatch>> validate(const std::optional<Buffer>& records) const {
    const auto intake = check_intake(records, config, features, codecs);
    if (!intake) return std::unexpected(intake.error());
    return prepare(*intake, config, codecs, now);
  }
  Refusal refusal(const std::optional<Buffer>& records) const {
    const auto valid = validate(records);
    EXPECT_FALSE(valid);
    return valid ? Refusal{} : valid.error();
  }
  ErrorCode error(const std::optional<Buffer>& records) const {
    const auto valid = validate(records);
    return valid ? ErrorCode::none : valid.error().error;
  }
  bool needs_worker(const Buffer& records) const {
    return check_intake(records, config, features, codecs)->needs_worker;
  }

  testing::MarkCodec gzip{CompressionId::gzip};
  Codecs codecs;
  TopicConfig config;
  ProduceFeatures features;
};

TEST_F(BatchValidatorTest, AcceptsAGoodBatch) {
  const auto sent = batch();
  const auto valid = validate(sent);
  ASSERT_TRUE(valid) << valid.error().message;
  ASSERT_EQ(valid->size(), 1U);
  EXPECT_EQ(valid->front().header.crc, read_batch_header(sent)->crc);
  EXPECT_EQ(valid->front().body.data(), sent.data() + batch_header_bytes);  // not copied
  EXPECT_FALSE(needs_worker(sent));
}

TEST_F(BatchValidatorTest, NeedsExactlyOneWholeBatch) {
  const auto one = batch();
  EXPECT_EQ(error(std::nullopt), ErrorCode::invalid_record);
  EXPECT_EQ(error(Buffer()), ErrorCode::invalid_record);
  for (std::size_t size = 1; size < one.size(); ++size) {
    ASSERT_EQ(error(one.slice(0, size)), ErrorCode::invalid_record) << size;
  }
  const std::string text(one.text());
  EXPECT_EQ(error(Buffer::copy_of(text + text)), ErrorCode::invalid_record);
  EXPECT_EQ(error(Buffer::copy_of(text + "x")), ErrorCode::invalid_record);
}

TEST_F(BatchValidatorTest, EveryChangedByteIsNoticed) {
  const auto good = batch();
  for (std::size_t at = 0; at < good.size(); ++at) {
    if (at >= 12 && at < 16) continue;  // the leader epoch is ours to set
    MutableBuffer bytes(good.size());
    bytes.append(good);
    bytes.data()[at] ^= std::byte{0x40};
    EXPECT_NE(error(std::move(bytes).freeze()), ErrorCode::none) << at;
  }
}

TEST_F(BatchValidatorTest, BadCrcAndMagicAreCorrupt) {
  MutableBuffer bytes(batch().size());
  bytes.append(batch());
  bytes.data()[bytes.size() - 1] ^= std::byte{1};
  EXPECT_EQ(error(std::move(bytes).freeze()), ErrorCode::corrupt_message);
  const auto magic3 = with(batch(), [](BatchHeader& header) { header.magic = 3; });
  EXPECT_EQ(error(magic3), ErrorCode::corrupt_message);
}

TEST_F(BatchValidatorTest, HeadersThatProducersMustNotWrite) {
  const auto code = [this](std::function<void(BatchHeader&)> change) {
    return error(with(batch(), change));
  };
  EXPECT_EQ(code([](auto& h) { h.attributes |= 0x20; }), ErrorCode::invalid_record);  // control
  EXPECT_EQ(code([](auto& h) { h.attributes |= 0x40; }), ErrorCode::invalid_record);  // horizon
  EXPECT_EQ(code([](auto& h) { h.attributes |= 0x08; }), ErrorCode::invalid_timestamp);
  EXPECT_EQ(code([](auto& h) { h.base_offset = {5}; }), ErrorCode::invalid_record);
  EXPECT_EQ(code([](auto& h) { h.last_offset_delta = 7; }), ErrorCode::invalid_record);
  EXPECT_EQ(code([](auto& h) {
              h.record_count = 4;
              h.last_offset_delta = 3;
            }),
            ErrorCode::invalid_record);
  EXPECT_EQ(code([](auto& h) {
              h.record_count = 2;
              h.last_offset_delta = 1;
            }),
            ErrorCode::invalid_record);
  EXPECT_EQ(code([](auto& h) { h.producer_id = 4; }), ErrorCode::invalid_record);
  EXPECT_EQ(code([](auto& h) {
              h.attributes |= 0x10;
              h.producer_id = 4;
              h.producer_epoch = 0;
              h.base_sequence = 0;
            }),
            ErrorCode::invalid_producer_epoch);
}

TEST_F(BatchValidatorTest, ABatchWithoutRecordsIsRefused) {
  auto empty = *BatchBuilder({}).finish();
  EXPECT_EQ(error(empty), ErrorCode::invalid_record);
}

TEST_F(BatchValidatorTest, BoundsTheSizeOfABatch) {
  const auto sent = batch();
  config.max_message_bytes = static_cast<std::int64_t>(sent.size());
  EXPECT_EQ(error(sent), ErrorCode::none);
  --config.max_message_bytes;
  EXPECT_EQ(error(sent), ErrorCode::message_too_large);
}

TEST_F(BatchValidatorTest, CodecsThatAreNotThere) {
  EXPECT_EQ(error(batch({.compression = CompressionId::gzip})), ErrorCode::none);
  for (const std::int16_t codec : {2, 3, 4}) {
    const auto other = with(batch(), [codec](BatchHeader& header) { header.attributes = codec; });
    EXPECT_EQ(error(other), ErrorCode::unsupported_compression_type) << codec;
  }
  config.compression_type = CompressionId::lz4;
  EXPECT_EQ(error(batch()), ErrorCode::unsupported_compression_type);
}

// Compresses to nothing but the level that it was asked for.
class LevelsOnly final : public CodecLevels {
 public:
  Result<Buffer> compress(CompressionId, Bytes, int level) const override {
    return Buffer::copy_of(std::to_string(level));
  }
};

TEST_F(BatchValidatorTest, WhatIsCompressedAnewIsSoAtTheTopicsLevel) {
  const LevelsOnly levels;
  LevelledCodec lz4(std::make_unique<testing::MarkCodec>(CompressionId::lz4));
  codecs.add(lz4);
  config.compression_type = CompressionId::lz4;
  const auto own = validate(batch());
  ASSERT_TRUE(own);
  config.compression_level = 12;
  const auto without = validate(batch());
  ASSERT_TRUE(without);
  EXPECT_EQ(without->front().body.text(), own->front().body.text()) << "it has no levels";
  lz4.use(&levels);
  const auto levelled = validate(batch());
  ASSERT_TRUE(levelled);
  EXPECT_EQ(levelled->front().body.text(), "12");
  config.compression_level.reset();
  EXPECT_EQ(validate(batch())->front().body.text(), own->front().body.text());
}

TEST_F(BatchValidatorTest, ZstdNeedsANewEnoughRequest) {
  const testing::MarkCodec zstd(CompressionId::zstd);
  codecs.add(zstd);
  const auto sent = batch({.compression = CompressionId::zstd});
  EXPECT_EQ(error(sent), ErrorCode::none);
  features.zstd = false;
  EXPECT_EQ(error(sent), ErrorCode::unsupported_compression_type);
}

TEST_F(BatchValidatorTest, RecordsAreNumberedFromZero) {
  for (const auto codec : {CompressionId::none, CompressionId::gzip}) {
    config.cleanup_compact = true;  // so that compressed batches are opened
    const auto gap = with(batch({.deltas = {0, 2, 3}, .compression = codec}),
                          [](BatchHeader& header) { header.last_offset_delta = 2; });
    EXPECT_EQ(error(gap), ErrorCode::invalid_record);
    const auto late = with(batch({.deltas = {1, 2, 3}, .compression = codec}),
                           [](BatchHeader& header) { header.last_offset_delta = 2; });
    EXPECT_EQ(error(late), ErrorCode::invalid_record);
  }
}

TEST_F(BatchValidatorTest, CompactedTopicsNeedKeys) {
  const Spec spec{.keys = {"a", std::nullopt, std::nullopt}};
  EXPECT_EQ(error(batch(spec)), ErrorCode::none);
  config.cleanup_compact = true;
  for (const auto codec : {CompressionId::none, CompressionId::gzip}) {
    auto compressed = spec;
    compressed.compression = codec;
    const auto refused = refusal(batch(compressed));
    EXPECT_EQ(refused.error, ErrorCode::invalid_record);
    ASSERT_EQ(refused.record_errors.size(), 2U);
    EXPECT_EQ(refused.record_errors[0].record_at, 1);
    EXPECT_EQ(refused.record_errors[1].record_at, 2);
    EXPECT_THAT(refused.record_errors[0].message, HasSubstr("without key"));
  }
}

TEST_F(BatchValidatorTest, TimestampsTooFarAheadAreNamed) {
  config.message_timestamp_after_max_ms = 1000;
  for (const auto codec : {CompressionId::none, CompressionId::gzip}) {
    Spec spec{.times = {now.ms, now.ms + 1000, now.ms + 500}, .compression = codec};
    EXPECT_EQ(error(batch(spec)), ErrorCode::none);
    spec.times[1] += 1;
    const auto refused = refusal(batch(spec));
    EXPECT_EQ(refused.error, ErrorCode::invalid_timestamp);
    ASSERT_EQ(refused.record_errors.size(), 1U);
    EXPECT_EQ(refused.record_errors[0].record_at, 1);
    EXPECT_THAT(refused.record_errors[0].message, HasSubstr(std::to_string(now.ms + 1001)));
  }
}

TEST_F(BatchValidatorTest, TimestampsTooFarBehindAreNamed) {
  config.message_timestamp_before_max_ms = 1000;
  for (const auto codec : {CompressionId::none, CompressionId::gzip}) {
    Spec spec{.times = {now.ms, now.ms - 1000, -1}, .compression = codec};
    EXPECT_EQ(error(batch(spec)), ErrorCode::none);
    spec.times[1] -= 1;
    EXPECT_EQ(error(batch(spec)), ErrorCode::invalid_timestamp);
  }
}

TEST_F(BatchValidatorTest, TimesDoNotMatterWhereTheBrokerSetsThem) {
  config.message_timestamp_type = TimestampType::log_append_time;
  const auto valid = validate(batch({.times = {0, now.ms * 2, -1}}));
  ASSERT_TRUE(valid) << valid.error().message;
  EXPECT_EQ(valid->front().header.max_timestamp, now);
}

TEST_F(BatchValidatorTest, AWrongMaxTimestampIsPutRight) {
  const auto sent = with(batch({.times = {now.ms, now.ms + 7, now.ms}}),
                         [](BatchHeader& header) { header.max_timestamp = {5}; });
  const auto valid = validate(sent);
  ASSERT_TRUE(valid);
  const auto& ready = valid->front();
  EXPECT_EQ(ready.header.max_timestamp, Timestamp{now.ms + 7});
  std::byte header[batch_header_bytes];
  write_batch_header(ready.header, header);
  EXPECT_EQ(ready.header.crc, batch_crc(header, ready.body));
}

TEST_F(BatchValidatorTest, AnswersNameABoundedNumberOfRecords) {
  config.cleanup_compact = true;
  BatchBuilder builder({});
  for (int i = 0; i < 1000; ++i) builder.add(now, std::nullopt, as_bytes("v"));
  EXPECT_EQ(refusal(*std::move(builder).finish()).record_errors.size(), 100U);
}

TEST_F(BatchValidatorTest, CompressedBatchesAreOpenedOnAWorkerAndStoredAsTheyCame) {
  const auto sent = batch({.compression = CompressionId::gzip});
  EXPECT_TRUE(needs_worker(sent));
  EXPECT_FALSE(needs_worker(batch()));
  const auto valid = validate(sent);
  ASSERT_TRUE(valid) << valid.error().message;
  EXPECT_EQ(valid->front().body.data(), sent.data() + batch_header_bytes);
}

TEST_F(BatchValidatorTest, LargeBatchesAreCheckedOnAWorkerWithTheirCrc) {
  config.max_message_bytes = 8 << 20;
  const std::string value(1000, 'v');
  const std::size_t records = 2 * checked_on_shard_bytes_max / value.size();
  BatchBuilder builder({});
  for (std::size_t n = 0; n < records; ++n) builder.add(now, std::nullopt, as_bytes(value));
  const auto sent = *std::move(builder).finish();
  EXPECT_TRUE(needs_worker(sent));
  const auto valid = validate(sent);
  ASSERT_TRUE(valid) << valid.error().message;
  EXPECT_EQ(valid->front().body.data(), sent.data() + batch_header_bytes);  // not copied

  std::string spoilt(sent.text());
  spoilt.back() ^= 1;
  EXPECT_TRUE(needs_worker(Buffer::copy_of(spoilt)));
  EXPECT_EQ(error(Buffer::copy_of(spoilt)), ErrorCode::corrupt_message);
}

TEST_F(BatchValidatorTest, ABodyThatItsCodecCannotReadIsRefused) {
  for (const std::int16_t codec : {1, 5, 7}) {
    const auto other = with(batch(), [codec](BatchHeader& header) { header.attributes = codec; });
    EXPECT_EQ(error(other), ErrorCode::unknown_server_error) << codec;
  }
}

TEST_F(BatchValidatorTest, WhatABatchDecompressesToIsBounded) {
  const auto sent = batch({.compression = CompressionId::gzip});
  config.max_decompressed_message_bytes = 10;
  EXPECT_EQ(error(sent), ErrorCode::message_too_large);
}

}  // namespace
}  // namespace millrace::kernel
