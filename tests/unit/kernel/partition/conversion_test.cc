// What real brokers stored, for clients that read no newer than V0 or V1.
#include "kernel/partition/conversion.h"

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <millrace/bytes.h>

#include "kernel/partition/payload_reader.h"
#include "tests/unit/sdk/batch/loaded_codecs.h"

namespace millrace::kernel {
namespace {

namespace fs = std::filesystem;
using testing::loaded_codecs;

std::vector<fs::path> segments() {
  std::vector<fs::path> found;
  for (const auto& entry : fs::recursive_directory_iterator(MILLRACE_GOLDEN_DIR "/segments")) {
    if (entry.path().extension() == ".log") found.push_back(entry.path());
  }
  std::ranges::sort(found);
  return found;
}

Buffer read_all(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream content;
  content << file.rdbuf();
  return Buffer::copy_of(content.str());
}

std::string text_of(const std::optional<Bytes>& bytes) {
  return bytes ? "\"" + std::string(as_text(*bytes)) + "\"" : "null";
}
std::string line_of(Offset offset, Timestamp time, const std::optional<Bytes>& key,
                    const std::optional<Bytes>& value) {
  return std::to_string(offset.value) + " " + std::to_string(time.ms) + " " + text_of(key) + " " +
         text_of(value);
}

struct Contents {
  std::vector<std::string> lines;
  bool zstd = false;
};

void add_message(const LegacyMessage& message, std::int8_t magic, Contents& contents) {
  const auto view = [](const std::optional<Buffer>& buffer) {
    return buffer ? std::optional<Bytes>(buffer->bytes()) : std::nullopt;
  };
  contents.lines.push_back(line_of(message.offset, magic == 0 ? Timestamp{} : message.timestamp,
                                   view(message.key), view(message.value)));
}

// All records that a client of format `magic` can be told of.
Contents contents_of(const Buffer& log, std::int8_t magic) {
  Contents contents;
  const auto walked = for_each_batch(Payload(log), [&](const FoundBatch& found) {
    const auto bytes = log.slice(found.position, found.header.total_bytes());
    if (found.header.magic < 2) {
      const auto messages = open_legacy_entry(bytes, loaded_codecs(), opened_bytes_max);
      EXPECT_TRUE(messages) << messages.error().detail;
      for (const auto& message : *messages) add_message(message, magic, contents);
      return true;
    }
    if (found.header.control()) return true;
    contents.zstd |= found.header.compression() == CompressionId::zstd;
    const auto section = open_records(found.header, bytes, loaded_codecs(), opened_bytes_max);
    EXPECT_TRUE(section);
    EXPECT_TRUE(for_each_record(found.header, *section, [&](const RecordView& record) {
      const auto time = magic == 0 ? Timestamp{} : record.timestamp;
      contents.lines.push_back(line_of(record.offset, time, record.key, record.value));
      return true;
    }));
    return true;
  });
  EXPECT_TRUE(walked) << walked.error().detail;
  return contents;
}

class GoldenConversionTest : public ::testing::TestWithParam<std::tuple<fs::path, int>> {};

TEST_P(GoldenConversionTest, TellsEveryRecordAndNothingElse) {
  const auto log = read_all(std::get<0>(GetParam()));
  const auto magic = static_cast<std::int8_t>(std::get<1>(GetParam()));
  const auto expected = contents_of(log, magic);
  const auto converted = down_convert(log, magic, Offset{0}, loaded_codecs());
  if (expected.zstd && !converted) {
    EXPECT_EQ(converted.error().code, Errc::unsupported);
    return;
  }
  ASSERT_TRUE(converted) << converted.error().detail;
  if (expected.zstd) {  // behind a control batch, of which nothing is left
    EXPECT_TRUE(converted->records.empty());
    return;
  }
  const auto bytes = converted->records.flatten();
  ASSERT_TRUE(bytes);
  const auto found = contents_of(*bytes, magic);
  EXPECT_EQ(found.lines, expected.lines);
  EXPECT_TRUE(for_each_batch(Payload(*bytes), [&](const FoundBatch& batch) {
    EXPECT_LE(batch.header.magic, magic);
    return true;
  }));
}

INSTANTIATE_TEST_SUITE_P(Segments, GoldenConversionTest,
                         ::testing::Combine(::testing::ValuesIn(segments()),
                                            ::testing::Values(0, 1)),
                         [](const auto& info) {
                           const auto& path = std::get<0>(info.param);
                           auto name = path.parent_path().parent_path().filename().string() + "_" +
                                       path.parent_path().filename().string() + "_" +
                                       path.stem().string() + "_V" +
                                       std::to_string(std::get<1>(info.param));
                           for (auto& c : name) {
                             if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
                           }
                           return name;
                         });

Buffer batch(BatchBuilder::Settings settings, std::vector<std::string> values) {
  BatchBuilder builder(settings);
  const HeaderView header{"name", as_bytes("content")};
  for (const auto& value : values) {
    builder.add({1000}, std::nullopt, as_bytes(value), {&header, 1});
  }
  auto bytes = std::move(builder).finish(loaded_codecs());
  EXPECT_TRUE(bytes);
  return *bytes;
}

std::vector<std::string> values_of(const Payload& records) {
  const auto bytes = records.flatten();
  std::vector<std::string> values;
  EXPECT_TRUE(for_each_batch(Payload(*bytes), [&](const FoundBatch& found) {
    const auto messages =
        open_legacy_entry(bytes->slice(found.position), loaded_codecs(), opened_bytes_max);
    EXPECT_TRUE(messages);
    for (const auto& message : *messages) values.emplace_back(message.value->text());
    return true;
  }));
  return values;
}

TEST(ConversionTest, BeginsAtTheRecordThatWasAskedFor) {
  for (const auto codec : {CompressionId::none, CompressionId::lz4}) {
    const auto stored = batch({.compression = codec}, {"a", "b", "c"});
    const auto converted = down_convert(stored, 1, Offset{1}, loaded_codecs());
    ASSERT_TRUE(converted);
    EXPECT_EQ(values_of(converted->records), (std::vector<std::string>{"b", "c"}));
    EXPECT_EQ(converted->next, Offset{3});
  }
}

TEST(ConversionTest, OfControlBatchesNothingIsLeftButTheirOffsets) {
  const auto marker = batch({.control = true, .base_offset = {5}}, {"marker"});
  const auto converted = down_convert(marker, 1, Offset{5}, loaded_codecs());
  ASSERT_TRUE(converted);
  EXPECT_TRUE(converted->records.empty());
  EXPECT_EQ(converted->next, Offset{6});
}

// The whole of what it opens to would be in memory several times over.
TEST(ConversionTest, ALargeBatchIsToldInParts) {
  const std::string large(converted_bytes_max / 4, 'x');
  const std::vector<std::string> values(10, large);
  const auto stored = batch({.compression = CompressionId::lz4, .base_offset = {7}}, values);
  std::size_t found = 0;
  std::size_t parts = 0;
  for (Offset next{7}; next < Offset{17}; ++parts) {
    const auto converted = down_convert(stored, 1, next, loaded_codecs());
    ASSERT_TRUE(converted) << converted.error().detail;
    const auto told = values_of(converted->records).size();
    ASSERT_GT(told, 0U);
    EXPECT_LE(told, 5U);
    found += told;
    EXPECT_EQ(converted->next, Offset{7 + static_cast<std::int64_t>(found)});
    next = converted->next;
  }
  EXPECT_EQ(found, values.size());
  EXPECT_EQ(parts, 3U);
}

// Batches that are small where they are stored may open to much.
TEST(ConversionTest, EndsOnceThereIsEnough) {
  const std::vector<std::string> values{std::string(converted_bytes_max / 2, 'x')};
  Payload batches(batch({.base_offset = {0}}, values));
  for (const std::int64_t base : {1, 2, 3}) batches.add(batch({.base_offset = {base}}, values));
  const auto converted = down_convert(batches, 0, Offset{0}, loaded_codecs());
  ASSERT_TRUE(converted);
  EXPECT_EQ(converted->next, Offset{2});
}

TEST(ConversionTest, WhatCannotBeConvertedEndsItOrIsTheError) {
  const auto good = batch({}, {"good"});
  const auto zstd = batch({.compression = CompressionId::zstd, .base_offset = {1}}, {"new"});
  Payload both(good);
  both.add(zstd);
  const auto converted = down_convert(both, 1, Offset{0}, loaded_codecs());
  ASSERT_TRUE(converted);
  EXPECT_EQ(values_of(converted->records), std::vector<std::string>{"good"});
  EXPECT_EQ(converted->next, Offset{1});
  EXPECT_EQ(down_convert(zstd, 1, Offset{1}, loaded_codecs()).error().code, Errc::unsupported);
}

}  // namespace
}  // namespace millrace::kernel
