#include <limits>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <millrace/batch.h>
#include <millrace/bytes.h>

namespace millrace {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::size_t crc_at = 17;
constexpr std::size_t record_count_at = 57;

Buffer batch_of(std::vector<std::string> values) {
  BatchBuilder builder({});
  std::int64_t time = 1000;
  for (const auto& value : values) builder.add({time++}, as_bytes("key"), as_bytes(value));
  return *std::move(builder).finish();
}

// A copy with `bytes` at `at`, and the crc that this gives.
Buffer patched(const Buffer& batch, std::size_t at, Bytes bytes) {
  MutableBuffer copy(batch.size());
  copy.append(batch);
  std::ranges::copy(bytes, copy.data() + at);
  store_be(copy.data() + crc_at, crc32c(copy.bytes().subspan(21)));
  return std::move(copy).freeze();
}
template <class T>
Buffer with_field(const Buffer& batch, std::size_t at, T value) {
  std::byte bytes[sizeof(T)];
  store_be(bytes, value);
  return patched(batch, at, bytes);
}

Result<std::vector<std::string>> values_of(const Buffer& batch) {
  MR_TRY(const auto header, read_batch_header(batch));
  MR_TRY(const auto section, open_records(header, batch, {}, 1 << 20));
  std::vector<std::string> values;
  MR_CHECK(for_each_record(header, section, [&values](const RecordView& record) {
    values.emplace_back(record.value ? as_text(*record.value) : "null");
    return true;
  }));
  return values;
}

TEST(BatchTest, BuildsWhatItReads) {
  BatchBuilder builder({.producer_id = 7,
                        .producer_epoch = 2,
                        .base_sequence = 40,
                        .transactional = true,
                        .base_offset = {100}});
  const HeaderView headers[] = {{"trace", as_bytes("1")}, {"", std::nullopt}};
  builder.add({2000}, as_bytes("k"), as_bytes("v"), headers);
  builder.add({1000}, std::nullopt, std::nullopt);
  builder.add_at(5, {3000}, as_bytes(""), as_bytes(""));
  const auto batch = std::move(builder).finish();
  ASSERT_TRUE(batch);
  EXPECT_TRUE(verify_crc(*batch));

  const auto header = read_batch_header(*batch);
  ASSERT_TRUE(header);
  EXPECT_EQ(header->base_offset, Offset{100});
  EXPECT_EQ(header->last_offset(), Offset{105});
  EXPECT_EQ(header->record_count, 3);
  EXPECT_EQ(header->base_timestamp, Timestamp{2000});
  EXPECT_EQ(header->max_timestamp, Timestamp{3000});
  EXPECT_EQ(header->producer_id, 7);
  EXPECT_EQ(header->producer_epoch, 2);
  EXPECT_EQ(header->base_sequence, 40);
  EXPECT_TRUE(header->transactional());
  EXPECT_FALSE(header->control());

  std::vector<std::int64_t> offsets;
  std::vector<std::int64_t> times;
  const auto section = open_records(*header, *batch, {}, 1 << 20);
  ASSERT_TRUE(section);
  ASSERT_TRUE(for_each_record(*header, *section, [&](const RecordView& record) {
    offsets.push_back(record.offset.value);
    times.push_back(record.timestamp.ms);
    if (record.offset == Offset{100}) {
      EXPECT_EQ(record.headers.size(), 2U);
      EXPECT_EQ(record.headers[0].key, "trace");
      EXPECT_FALSE(record.headers[1].value);
    }
    if (record.offset == Offset{101}) {
      EXPECT_FALSE(record.key);
      EXPECT_FALSE(record.value);
      EXPECT_TRUE(record.headers.empty());
    }
    return true;
  }));
  EXPECT_THAT(offsets, ElementsAre(100, 101, 105));
  EXPECT_THAT(times, ElementsAre(2000, 1000, 3000));
}

TEST(BatchTest, KeepsTimestampsWhoseDistanceDoesNotFit) {
  constexpr auto highest = std::numeric_limits<std::int64_t>::max();
  BatchBuilder builder({});
  builder.add({-1}, std::nullopt, as_bytes("a"));
  builder.add({highest}, std::nullopt, as_bytes("b"));
  const auto batch = std::move(builder).finish();
  ASSERT_TRUE(batch);
  const auto header = read_batch_header(*batch);
  const auto section = open_records(*header, *batch, {}, 1 << 20);
  std::vector<std::int64_t> times;
  ASSERT_TRUE(for_each_record(*header, *section, [&times](const RecordView& record) {
    times.push_back(record.timestamp.ms);
    return true;
  }));
  EXPECT_THAT(times, ElementsAre(-1, highest));
}

TEST(BatchTest, RefusesEveryProperPrefix) {
  const auto batch = batch_of({"one", "two", "three"});
  for (std::size_t size = 0; size < batch.size(); ++size) {
    const auto header = read_batch_header(batch.slice(0, size));
    ASSERT_FALSE(header) << size;
    EXPECT_EQ(header.error().code, Errc::out_of_range) << size;
    EXPECT_FALSE(verify_crc(batch.bytes().first(size))) << size;
  }
}

TEST(BatchTest, RefusesARecordSectionCutAnywhere) {
  const auto batch = batch_of({"one", "two", "three"});
  const auto header = read_batch_header(batch);
  const auto section = batch.slice(batch_header_bytes);
  const auto ignore = [](const RecordView&) { return true; };
  ASSERT_TRUE(for_each_record(*header, section, ignore));
  for (std::size_t size = 0; size < section.size(); ++size) {
    const auto walked = for_each_record(*header, section.slice(0, size), ignore);
    ASSERT_FALSE(walked) << size;
    EXPECT_EQ(walked.error().code, Errc::corrupt);
  }
}

// Whatever the bytes of the section are: an answer, and no step outside (ASan would say so).
TEST(BatchTest, SurvivesEveryFlippedByte) {
  const auto batch = batch_of({"one", "two"});
  for (std::size_t at = batch_header_bytes; at < batch.size(); ++at) {
    for (int value = 0; value < 256; ++value) {
      const std::byte byte{static_cast<unsigned char>(value)};
      const auto read = values_of(patched(batch, at, {&byte, 1}));
      if (!read) {
        EXPECT_EQ(read.error().code, Errc::corrupt);
      }
    }
  }
}

TEST(BatchTest, RefusesCountsThatTheBytesDoNotBack) {
  const auto batch = batch_of({"one"});
  for (const auto count : {2, 1000, std::numeric_limits<std::int32_t>::max()}) {
    const auto read = values_of(with_field(batch, record_count_at, count));
    ASSERT_FALSE(read) << count;
    EXPECT_EQ(read.error().code, Errc::corrupt);
  }
  const auto fewer = values_of(with_field(batch, record_count_at, 0));
  ASSERT_FALSE(fewer);
  EXPECT_THAT(fewer.error().detail, HasSubstr("behind the last of 0 records"));
  EXPECT_FALSE(read_batch_header(with_field(batch, record_count_at, -1)));
}

TEST(BatchTest, RefusesHeadersThatCannotBe) {
  const auto batch = batch_of({"one"});
  EXPECT_FALSE(read_batch_header(with_field(batch, 0, std::int64_t{-1})));
  EXPECT_FALSE(read_batch_header(with_field(batch, 0, std::numeric_limits<std::int64_t>::max())));
  EXPECT_FALSE(read_batch_header(with_field(batch, 8, std::int32_t{-1})));
  EXPECT_FALSE(read_batch_header(with_field(batch, 8, std::int32_t{48})));
  EXPECT_FALSE(read_batch_header(with_field(batch, 8, std::numeric_limits<std::int32_t>::max())));
  EXPECT_FALSE(read_batch_header(with_field(batch, 16, std::int8_t{3})));
  EXPECT_FALSE(read_batch_header(with_field(batch, 16, std::int8_t{-1})));
  EXPECT_FALSE(read_batch_header(with_field(batch, 23, std::int32_t{-1})));
}

TEST(BatchTest, NoticesAChangedByteByItsCrc) {
  const auto batch = batch_of({"one", "two"});
  for (std::size_t at = 0; at < batch.size(); ++at) {
    MutableBuffer changed(batch.size());
    changed.append(batch);
    changed.data()[at] ^= std::byte{0x10};
    // Offsets, length, epoch and magic stand in front of what the crc covers.
    EXPECT_EQ(verify_crc(changed.bytes()), at < crc_at) << at;
  }
}

TEST(BatchTest, NamesTheCodecThatIsMissing) {
  const auto batch = with_field(batch_of({"one"}), 21, std::int16_t{4});
  const auto opened = open_records(*read_batch_header(batch), batch, {}, 1 << 20);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, Errc::unsupported);
  EXPECT_THAT(opened.error().detail, HasSubstr("zstd"));
}

TEST(BatchTest, StopsWhenAskedTo) {
  const auto batch = batch_of({"one", "two", "three"});
  const auto header = read_batch_header(batch);
  int seen = 0;
  EXPECT_TRUE(for_each_record(*header, batch.slice(batch_header_bytes),
                              [&seen](const RecordView&) { return ++seen < 2; }));
  EXPECT_EQ(seen, 2);
}

}  // namespace
}  // namespace millrace
