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
using testing::loaded_codecs;

constexpr std::size_t opened_bytes_max = 1 << 20;
constexpr std::size_t wrapper_value_at[] = {26, 34};  // behind the lengths of key and value

MessageSetBuilder filled(MessageSetBuilder::Settings settings) {
  MessageSetBuilder set(settings);
  set.add({7}, {100}, as_bytes("k"), as_bytes("first"));
  set.add({9}, {300}, std::nullopt, std::nullopt);
  set.add({10}, {200}, as_bytes(""), as_bytes("last"));
  return set;
}

Buffer built(MessageSetBuilder::Settings settings, std::int64_t distance = 0) {
  auto set = filled(settings);
  set.move_offsets(distance);
  auto bytes = std::move(set).finish(loaded_codecs());
  EXPECT_TRUE(bytes) << bytes.error().detail;
  return *bytes;
}

std::vector<LegacyMessage> read(const Buffer& set) {
  std::vector<LegacyMessage> all;
  for (std::size_t at = 0; at < set.size();) {
    const auto rest = set.slice(at);
    const auto head = read_entry_head(rest);
    auto opened = open_legacy_entry(rest, loaded_codecs(), opened_bytes_max);
    EXPECT_TRUE(head);
    EXPECT_TRUE(opened) << opened.error().detail;
    if (!head || !opened) break;
    for (auto& one : *opened) all.push_back(std::move(one));
    at += head->total_bytes;
  }
  return all;
}

std::vector<std::int64_t> offsets_of(const std::vector<LegacyMessage>& messages) {
  std::vector<std::int64_t> offsets;
  for (const auto& one : messages) offsets.push_back(one.offset.value);
  return offsets;
}

class MessageSetTest : public ::testing::TestWithParam<std::tuple<int, CompressionId>> {
 protected:
  MessageSetBuilder::Settings settings() const {
    return {.magic = static_cast<std::int8_t>(std::get<0>(GetParam())),
            .compression = std::get<1>(GetParam())};
  }
};

TEST_P(MessageSetTest, IsReadBack) {
  const auto messages = read(built(settings()));
  EXPECT_THAT(offsets_of(messages), ElementsAre(7, 9, 10));
  ASSERT_EQ(messages.size(), 3u);
  EXPECT_EQ(messages[0].key->text(), "k");
  EXPECT_EQ(messages[0].value->text(), "first");
  EXPECT_FALSE(messages[1].key);
  EXPECT_FALSE(messages[1].value);
  EXPECT_EQ(messages[2].key->text(), "");
  EXPECT_EQ(messages[1].timestamp, Timestamp{settings().magic == 1 ? 300 : -1});
}

TEST_P(MessageSetTest, OffsetsMoveTogether) {
  EXPECT_THAT(offsets_of(read(built(settings(), 1000))), ElementsAre(1007, 1009, 1010));
}

TEST_P(MessageSetTest, AWrapperHasTheLastOffsetAndTheNewestTime) {
  const auto set = built(settings());
  if (settings().compression == CompressionId::none) return;
  EXPECT_EQ(read_entry_head(set)->total_bytes, set.size());
  EXPECT_EQ(read_entry_head(set)->offset, Offset{10});
  EXPECT_EQ(legacy_compression(set), settings().compression);
  if (settings().magic == 1) EXPECT_EQ(load_be<std::int64_t>(set.data() + 18), 300);
}

INSTANTIATE_TEST_SUITE_P(
    Formats, MessageSetTest,
    ::testing::Combine(::testing::Values(0, 1),
                       ::testing::Values(CompressionId::none, CompressionId::gzip,
                                         CompressionId::snappy, CompressionId::lz4)));

TEST(MessageSetsTest, InnerOffsetsAreRelativeInV1Alone) {
  for (const std::int8_t magic : {std::int8_t{0}, std::int8_t{1}}) {
    const auto set = built({.magic = magic, .compression = CompressionId::gzip});
    const auto inner = loaded_codecs()
                           .find(CompressionId::gzip)
                           ->decompress(set.bytes().subspan(wrapper_value_at[magic]), 4096);
    ASSERT_TRUE(inner);
    EXPECT_EQ(load_be<std::int64_t>(inner->data()), magic == 0 ? 7 : 0);
  }
}

// KAFKA-3160: readers of V0 want the magic number in the checksum, those of V1 do not.
TEST(MessageSetsTest, TheChecksumOfALz4HeaderIsWrongInV0Alone) {
  for (const std::int8_t magic : {std::int8_t{0}, std::int8_t{1}}) {
    const auto set = built({.magic = magic, .compression = CompressionId::lz4});
    const auto frame = set.bytes().subspan(wrapper_value_at[magic]);
    const auto summed = magic == 0 ? frame.first(6) : frame.subspan(4, 2);
    EXPECT_EQ(static_cast<std::uint8_t>(frame[6]), xxh32_of_few(summed) >> 8 & 0xff);
  }
}

TEST(MessageSetsTest, LogAppendTimeIsToldByEveryMessage) {
  MessageSetBuilder set({.magic = 1, .log_append_time = true});
  set.add({0}, {55}, std::nullopt, as_bytes("x"));
  const auto bytes = std::move(set).finish({});
  ASSERT_TRUE(bytes);
  EXPECT_TRUE(read(*bytes).at(0).log_append_time);
}

TEST(MessageSetsTest, V0HasNoTimesAndSaysNothingOfThem) {
  for (const auto compression : {CompressionId::none, CompressionId::gzip}) {
    const auto set = built({.magic = 0, .compression = compression, .log_append_time = true});
    constexpr std::size_t attributes_at = 17;
    EXPECT_EQ(std::to_integer<int>(set.bytes()[attributes_at]), static_cast<int>(compression));
  }
}

TEST(MessageSetsTest, NothingIsNothing) {
  EXPECT_TRUE(MessageSetBuilder({.compression = CompressionId::gzip}).finish({})->empty());
}

TEST(MessageSetsTest, OldFormatsHaveNoZstd) {
  auto set = filled({.compression = CompressionId::zstd});
  EXPECT_EQ(std::move(set).finish(loaded_codecs()).error().code, Errc::unsupported);
}

}  // namespace
}  // namespace millrace
