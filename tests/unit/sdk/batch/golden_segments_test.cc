// Every segment that real brokers wrote, read by us, against what Kafka's own reader says.
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include <boost/json.hpp>
#include <gtest/gtest.h>

#include <millrace/batch.h>
#include <millrace/bytes.h>

#include "tests/unit/sdk/batch/loaded_codecs.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;

constexpr std::size_t opened_bytes_max = 64UL << 20;

std::vector<fs::path> segments() {
  std::vector<fs::path> found;
  for (const auto& entry : fs::recursive_directory_iterator(MILLRACE_GOLDEN_DIR "/segments")) {
    auto expected = entry.path();
    expected.replace_extension(".records.jsonl");
    if (entry.path().extension() == ".log" && fs::exists(expected)) found.push_back(entry.path());
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

// One line of the expectation, as text: what differs is then readable.
std::string base64(std::optional<Bytes> bytes) {
  if (!bytes) return "null";
  static constexpr std::string_view digits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text = "\"";
  for (std::size_t at = 0; at < bytes->size(); at += 3) {
    std::uint32_t three = 0;
    const auto taken = std::min<std::size_t>(3, bytes->size() - at);
    for (std::size_t i = 0; i < 3; ++i) {
      three = three << 8 | (i < taken ? static_cast<std::uint32_t>((*bytes)[at + i]) : 0U);
    }
    for (std::size_t i = 0; i < 4; ++i) {
      text += i <= taken ? digits[three >> (18 - 6 * i) & 63] : '=';
    }
  }
  return text + "\"";
}

std::string line_of(std::int64_t offset, std::int64_t timestamp, std::optional<Bytes> key,
                    std::optional<Bytes> value, std::span<const HeaderView> headers) {
  std::string line = std::to_string(offset) + " " + std::to_string(timestamp) + " " + base64(key) +
                     " " + base64(value);
  for (const auto& header : headers) {
    line += " " + std::string(header.key) + "=" + base64(header.value);
  }
  return line;
}

std::string text_or_null(const json::value& value) {
  return value.is_null() ? "null" : "\"" + std::string(value.as_string()) + "\"";
}

std::string line_of(const json::object& record) {
  std::string line = std::to_string(record.at("offset").as_int64()) + " " +
                     std::to_string(record.at("timestamp").as_int64()) + " " +
                     text_or_null(record.at("key")) + " " + text_or_null(record.at("value"));
  if (const auto* headers = record.if_contains("headers")) {
    for (const auto& header : headers->as_array()) {
      line += " " + std::string(header.at(0).as_string()) + "=" + text_or_null(header.at(1));
    }
  }
  return line;
}

std::string batch_line(std::size_t position, std::size_t size, int magic, std::int64_t base,
                       std::int64_t last, std::string_view codec, std::int64_t max_timestamp) {
  return "batch at " + std::to_string(position) + ": " + std::to_string(size) + " bytes, magic " +
         std::to_string(magic) + ", " + std::to_string(base) + ".." + std::to_string(last) + ", " +
         std::string(codec) + ", " + std::to_string(max_timestamp);
}

// What only V2 headers have.
std::string producer_line(std::int64_t id, std::int64_t epoch, std::int64_t sequence,
                          std::int64_t leader_epoch, std::int64_t count, bool transactional,
                          bool control, std::int64_t crc) {
  std::string line;
  for (const auto number : {id, epoch, sequence, leader_epoch, count, crc}) {
    line += std::to_string(number) + " ";
  }
  return line + (transactional ? "transactional " : "") + (control ? "control" : "");
}

std::vector<std::string> expected_lines(const fs::path& segment) {
  auto path = segment;
  std::ifstream file(path.replace_extension(".records.jsonl"));
  std::vector<std::string> lines;
  for (std::string text; std::getline(file, text);) {
    const auto parsed = json::parse(text).as_object();
    if (parsed.at("t").as_string() == "rec") {
      lines.push_back(line_of(parsed));
      continue;
    }
    const auto integer = [&parsed](const char* name) {
      return parsed.at(name).to_number<std::int64_t>();
    };
    const auto magic = static_cast<int>(integer("magic"));
    lines.push_back(batch_line(static_cast<std::size_t>(integer("position")),
                               static_cast<std::size_t>(integer("size")), magic,
                               integer("baseOffset"), integer("lastOffset"),
                               parsed.at("compression").as_string(), integer("maxTimestamp")));
    if (magic < 2) continue;
    lines.push_back(producer_line(integer("producerId"), integer("producerEpoch"),
                                  integer("baseSequence"), integer("leaderEpoch"), integer("count"),
                                  parsed.at("transactional").as_bool(),
                                  parsed.at("control").as_bool(), integer("crc")));
  }
  return lines;
}

void add_batch(const Buffer& bytes, std::size_t position, std::vector<std::string>& lines) {
  const auto header = read_batch_header(bytes);
  ASSERT_TRUE(header) << header.error().detail;
  EXPECT_TRUE(verify_crc(bytes.bytes().first(header->total_bytes())));
  lines.push_back(batch_line(position, header->total_bytes(), 2, header->base_offset.value,
                             header->last_offset().value, name_of(header->compression()),
                             header->max_timestamp.ms));
  lines.push_back(producer_line(header->producer_id, header->producer_epoch, header->base_sequence,
                                header->partition_leader_epoch.value, header->record_count,
                                header->transactional(), header->control(), header->crc));
  const auto section = open_records(*header, bytes, testing::loaded_codecs(), opened_bytes_max);
  ASSERT_TRUE(section) << section.error().detail;
  const auto walked = for_each_record(*header, *section, [&lines](const RecordView& record) {
    lines.push_back(line_of(record.offset.value, record.timestamp.ms, record.key, record.value,
                            record.headers));
    return true;
  });
  EXPECT_TRUE(walked) << walked.error().detail;
}

void add_legacy(const Buffer& bytes, const EntryHead& head, std::size_t position,
                std::vector<std::string>& lines) {
  const auto messages = open_legacy_entry(bytes, testing::loaded_codecs(), opened_bytes_max);
  ASSERT_TRUE(messages) << messages.error().detail;
  Timestamp newest;
  for (const auto& message : *messages) newest = std::max(newest, message.timestamp);
  const auto codec = static_cast<CompressionId>(load_be<std::uint8_t>(bytes.data() + 17) & 7);
  lines.push_back(batch_line(position, head.total_bytes, head.magic, messages->front().offset.value,
                             head.offset.value, name_of(codec), newest.ms));
  for (const auto& message : *messages) {
    lines.push_back(
        line_of(message.offset.value, message.timestamp.ms, message.key, message.value, {}));
  }
}

class GoldenSegmentTest : public ::testing::TestWithParam<fs::path> {};

TEST_P(GoldenSegmentTest, ReadsWhatKafkaReads) {
  const auto log = read_all(GetParam());
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < log.size();) {
    const auto rest = log.slice(at);
    const auto head = read_entry_head(rest);
    ASSERT_TRUE(head) << "at byte " << at << ": " << head.error().detail;
    if (head->magic == 2) {
      add_batch(rest, at, lines);
    } else {
      add_legacy(rest, *head, at, lines);
    }
    if (HasFatalFailure()) FAIL() << "at byte " << at;
    at += head->total_bytes;
  }
  EXPECT_EQ(lines, expected_lines(GetParam()));
}

TEST_P(GoldenSegmentTest, UpConvertsOldFormatsWithoutLoss) {
  const auto log = read_all(GetParam());
  for (std::size_t at = 0; at < log.size();) {
    const auto head = read_entry_head(log.bytes().subspan(at));
    ASSERT_TRUE(head);
    const auto entry = log.slice(at, head->total_bytes);
    at += head->total_bytes;
    if (head->magic == 2) continue;
    const auto messages = open_legacy_entry(entry, testing::loaded_codecs(), opened_bytes_max);
    ASSERT_TRUE(messages);
    const auto batches = up_convert(entry, testing::loaded_codecs(), opened_bytes_max);
    ASSERT_TRUE(batches) << batches.error().detail;
    ASSERT_EQ(batches->size(), 1U);
    const auto header = read_batch_header(batches->front());
    ASSERT_TRUE(header) << header.error().detail;
    const auto section =
        open_records(*header, batches->front(), testing::loaded_codecs(), opened_bytes_max);
    ASSERT_TRUE(section);
    std::size_t index = 0;
    const auto walked = for_each_record(*header, *section, [&](const RecordView& record) {
      const auto& message = (*messages)[index];
      EXPECT_EQ(line_of(record.offset.value, record.timestamp.ms, record.key, record.value, {}),
                line_of(static_cast<std::int64_t>(index), message.timestamp.ms, message.key,
                        message.value, {}));
      ++index;
      return true;
    });
    EXPECT_TRUE(walked) << walked.error().detail;
    EXPECT_EQ(index, messages->size());
  }
}

INSTANTIATE_TEST_SUITE_P(Segments, GoldenSegmentTest, ::testing::ValuesIn(segments()),
                         [](const auto& info) {
                           auto name = info.param.parent_path().parent_path().filename().string() +
                                       "_" + info.param.parent_path().filename().string() + "_" +
                                       info.param.stem().string();
                           for (auto& c : name) {
                             if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
                           }
                           return name;
                         });

}  // namespace
}  // namespace millrace
