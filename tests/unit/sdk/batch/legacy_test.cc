#include <limits>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <millrace/batch.h>
#include <millrace/bytes.h>

#include "tests/unit/sdk/batch/loaded_codecs.h"

namespace millrace {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::loaded_codecs;

constexpr std::size_t opened_bytes_max = 1 << 20;

struct Spec {
  std::int64_t offset = 0;
  std::int8_t magic = 1;
  std::uint8_t attributes = 0;
  std::int64_t timestamp = 1000;
  std::optional<std::string> key;
  std::optional<std::string> value = "value";
};

// Written out from the format's table, apart from the code under test.
std::string message(const Spec& spec) {
  const auto be = [](auto number) {
    std::string text(sizeof number, '\0');
    store_be(reinterpret_cast<std::byte*>(text.data()), number);
    return text;
  };
  const auto nullable = [&be](const std::optional<std::string>& text) {
    return text ? be(static_cast<std::int32_t>(text->size())) + *text : be(std::int32_t{-1});
  };
  std::string body = be(spec.magic) + be(spec.attributes);
  if (spec.magic == 1) body += be(spec.timestamp);
  body += nullable(spec.key) + nullable(spec.value);
  body = be(crc32(as_bytes(body))) + body;
  return be(spec.offset) + be(static_cast<std::int32_t>(body.size())) + body;
}

std::string gzipped(const std::string& set) {
  return std::string(loaded_codecs().find(CompressionId::gzip)->compress(as_bytes(set))->text());
}

struct Opened {
  std::int64_t offset;
  std::int64_t timestamp;
  friend bool operator==(const Opened&, const Opened&) = default;
};
std::vector<Opened> opened(const std::string& set) {
  const auto messages = open_legacy_entry(Buffer::copy_of(set), loaded_codecs(), opened_bytes_max);
  EXPECT_TRUE(messages) << messages.error().detail;
  std::vector<Opened> list;
  if (!messages) return list;
  for (const auto& one : *messages) list.push_back({one.offset.value, one.timestamp.ms});
  return list;
}

Error refusal_of(const std::string& set) {
  const auto messages = open_legacy_entry(Buffer::copy_of(set), loaded_codecs(), opened_bytes_max);
  EXPECT_FALSE(messages);
  return messages ? Error{} : messages.error();
}

TEST(LegacyTest, RelativeOffsetsEndAtTheWrappersOwn) {
  const auto inner =
      message({.offset = 0, .timestamp = 5}) + message({.offset = 2, .timestamp = 6});
  const auto wrapper =
      message({.offset = 100, .attributes = 1, .timestamp = 6, .value = gzipped(inner)});
  EXPECT_THAT(opened(wrapper), ElementsAre(Opened{98, 5}, Opened{100, 6}));
}

TEST(LegacyTest, ProducersMayLeaveTheWrappersOffsetAtZero) {
  const auto inner = message({.offset = 0}) + message({.offset = 1});
  const auto wrapper = message({.offset = 0, .attributes = 1, .value = gzipped(inner)});
  EXPECT_THAT(opened(wrapper), ElementsAre(Opened{0, 1000}, Opened{1, 1000}));
}

TEST(LegacyTest, LogAppendTimeOfAWrapperIsEveryonesTime) {
  const auto inner =
      message({.offset = 0, .timestamp = 5}) + message({.offset = 1, .timestamp = 6});
  const auto wrapper =
      message({.offset = 1, .attributes = 1 | 8, .timestamp = 77, .value = gzipped(inner)});
  EXPECT_THAT(opened(wrapper), ElementsAre(Opened{0, 77}, Opened{1, 77}));
}

TEST(LegacyTest, RefusesWhatAWrapperMustNotHold) {
  const auto inner = message({});
  const auto nested = message({.attributes = 1, .value = gzipped(inner)});
  EXPECT_THAT(refusal_of(message({.attributes = 1, .value = gzipped(nested)})).detail,
              HasSubstr("compressed message in another"));
  EXPECT_THAT(
      refusal_of(message({.attributes = 1, .value = gzipped(message({.magic = 0}))})).detail,
      HasSubstr("format V0 in a compressed one of V1"));
  EXPECT_THAT(refusal_of(message({.attributes = 1, .value = gzipped("")})).detail,
              HasSubstr("nothing in it"));
  EXPECT_THAT(refusal_of(message({.attributes = 1, .value = std::nullopt})).detail,
              HasSubstr("without a value"));
  EXPECT_THAT(refusal_of(message({.attributes = 1, .value = gzipped(inner.substr(0, 20))})).detail,
              HasSubstr("in a compressed message"));
  EXPECT_EQ(refusal_of(message({.attributes = 4, .value = "zstd"})).code, Errc::unsupported);
  EXPECT_EQ(refusal_of(message({.attributes = 6, .value = "?"})).code, Errc::unsupported);
}

TEST(LegacyTest, RefusesOffsetsThatDoNotFit) {
  constexpr auto lowest = std::numeric_limits<std::int64_t>::min();
  constexpr auto highest = std::numeric_limits<std::int64_t>::max();
  const auto last = gzipped(message({.offset = 17}));
  EXPECT_THAT(refusal_of(message({.offset = lowest, .attributes = 1, .value = last})).detail,
              HasSubstr("do not fit"));
  const auto falling = gzipped(message({.offset = highest}) + message({.offset = 1}));
  EXPECT_THAT(refusal_of(message({.offset = 100, .attributes = 1, .value = falling})).detail,
              HasSubstr("do not fit"));
}

TEST(LegacyTest, NoticesAChangedByteByItsCrc) {
  const auto good = message({.key = "key"});
  for (std::size_t at = 12; at < good.size(); ++at) {
    auto bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 0x10);
    EXPECT_EQ(refusal_of(bad).code, Errc::corrupt) << at;
  }
}

TEST(LegacyTest, RefusesEveryProperPrefix) {
  for (const std::int8_t magic : {0, 1}) {
    const auto whole = message({.magic = magic, .key = "key"});
    for (std::size_t size = 0; size < whole.size(); ++size) {
      EXPECT_EQ(refusal_of(whole.substr(0, size)).code, Errc::out_of_range) << size;
    }
  }
}

TEST(LegacyTest, FieldsMustFillTheMessage) {
  // A value length that ends one byte early or late, under a crc that is right.
  for (const int by : {-1, 1}) {
    auto bad = message({.magic = 0, .value = "0123456789"});
    store_be(reinterpret_cast<std::byte*>(bad.data()) + 22, std::int32_t{10 + by});
    store_be(reinterpret_cast<std::byte*>(bad.data()) + 12,
             crc32(as_bytes(std::string_view(bad).substr(16))));
    EXPECT_EQ(refusal_of(bad).code, Errc::corrupt) << by;
  }
}

// Broken producers number the messages of a wrapper as they like; the log numbers them anew.
TEST(LegacyTest, UpConversionRenumbers) {
  for (const std::int8_t magic : {0, 1}) {
    for (const auto& offsets : {std::vector{0, 0, 0}, std::vector{5, 9, 7}}) {
      std::string inner;
      for (const auto offset : offsets) inner += message({.offset = offset, .magic = magic});
      const auto wrapper =
          message({.offset = 9, .magic = magic, .attributes = 1, .value = gzipped(inner)});
      const auto batches = up_convert(Buffer::copy_of(wrapper), loaded_codecs(), opened_bytes_max);
      ASSERT_TRUE(batches) << batches.error().detail;
      ASSERT_EQ(batches->size(), 1U);
      const auto header = read_batch_header(batches->front());
      ASSERT_TRUE(header);
      EXPECT_EQ(header->compression(), CompressionId::gzip);
      EXPECT_EQ(header->record_count, 3);
      EXPECT_EQ(header->base_offset, Offset{0});
      EXPECT_EQ(header->last_offset_delta, 2);
      EXPECT_EQ(header->max_timestamp, Timestamp{magic == 0 ? -1 : 1000});
    }
  }
}

TEST(LegacyTest, UpConversionJoinsPlainMessagesAndKeepsWrappersApart) {
  const auto plain = message({.value = "a"}) + message({.value = "b"});
  const auto wrapper =
      message({.offset = 0, .attributes = 1, .value = gzipped(message({.value = "c"}))});
  const auto batches =
      up_convert(Buffer::copy_of(plain + wrapper + plain), loaded_codecs(), opened_bytes_max);
  ASSERT_TRUE(batches);
  std::vector<std::pair<std::int64_t, std::int32_t>> shape;
  for (const auto& batch : *batches) {
    const auto header = read_batch_header(batch);
    ASSERT_TRUE(header);
    shape.emplace_back(header->base_offset.value, header->record_count);
  }
  EXPECT_THAT(shape, ElementsAre(std::pair(0, 2), std::pair(2, 1), std::pair(3, 2)));
}

TEST(LegacyTest, UpConversionBoundsTheBatchesItJoins) {
  const std::string value(100'000, 'x');
  std::string set;
  for (int i = 0; i < 10; ++i) set += message({.value = value});
  const auto batches = up_convert(Buffer::copy_of(set), loaded_codecs(), opened_bytes_max);
  ASSERT_TRUE(batches);
  EXPECT_EQ(batches->size(), 5U);
  for (const auto& batch : *batches) EXPECT_LT(batch.size(), 300'000U);
}

}  // namespace
}  // namespace millrace
