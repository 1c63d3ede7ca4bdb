// __consumer_offsets as brokers of four releases have left it: what it says is what is known here,
// and what is written here is what they would have written.
#include <charconv>
#include <fstream>

#include "bench.h"

namespace millrace::consumer_groups::testing {
namespace {

constexpr std::string_view base64_digits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

std::string from_base64(std::string_view text) {
  std::string bytes;
  std::uint32_t bits = 0;
  int count = 0;
  for (const char c : text) {
    if (c == '=') break;
    bits = bits << 6 | static_cast<std::uint32_t>(base64_digits.find(c));
    count += 6;
    if (count < 8) continue;
    count -= 8;
    bytes += static_cast<char>(bits >> count & 0xff);
  }
  return bytes;
}

/// A field of a line of the reader's output; nothing when it is null or missing.
std::optional<std::string> field(const std::string& line, const std::string& name) {
  const auto key = "\"" + name + "\":";
  const auto at = line.find(key);
  if (at == std::string::npos) return std::nullopt;
  const auto from = at + key.size();
  if (line[from] == '"') return line.substr(from + 1, line.find('"', from + 1) - from - 1);
  auto value = line.substr(from, line.find_first_of(",}", from) - from);
  if (value == "null") return std::nullopt;
  return value;
}

std::int64_t number(const std::string& line, const std::string& name) {
  const auto text = field(line, name).value_or("");
  std::int64_t value = -1;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

struct KafkaRecord {
  std::string key;
  std::optional<std::string> value;
};

class KafkaLogTest : public Bench {
 public:
  static std::ifstream records_of(const std::string& release) {
    return std::ifstream(std::string(MILLRACE_GOLDEN_DIR) + "/segments/" + release +
                         "/__consumer_offsets/00000000000000000000.records.jsonl");
  }

  void replay(const std::string& release) {
    auto lines = records_of(release);
    ASSERT_TRUE(lines.is_open());
    millrace::testing::RecordProducer producer;
    int records = 0;
    for (std::string line; std::getline(lines, line);) {
      if (field(line, "t") == "batch") {
        producer = {number(line, "producerId"),
                    static_cast<std::int16_t>(number(line, "producerEpoch")),
                    field(line, "transactional") == "true"};
      } else if (const auto end = field(line, "controlType")) {
        driver.end_transaction(producer.id, producer.epoch, *end == "COMMIT");
      } else {
        const auto key = from_base64(*field(line, "key"));
        auto value = field(line, "value");
        if (value) value = from_base64(*value);
        ASSERT_TRUE(driver.write(key, value, producer)) << line;
        ++records;
      }
    }
    EXPECT_GT(records, 5);
  }

  /// The record at an offset.
  static KafkaRecord record_at(const std::string& release, std::int64_t offset) {
    auto lines = records_of(release);
    for (std::string line; std::getline(lines, line);) {
      if (field(line, "t") != "rec" || number(line, "offset") != offset) continue;
      auto value = field(line, "value");
      if (value) value = from_base64(*value);
      return {from_base64(*field(line, "key")), value};
    }
    ADD_FAILURE() << "no record " << offset;
    return {};
  }

  std::string types() {
    std::string out;
    for (const auto& group : list()) {
      out += group.group + " " + group.type + " " + group.state + "\n";
    }
    return out;
  }
};

TEST_F(KafkaLogTest, Of09) {
  replay("kafka-0.9.0.1");
  EXPECT_EQ(offset_of("g09", "v0-gzip-java09"), 60);
  EXPECT_EQ(offset_of("h-g09b", "h-v0-gzip-java09"), 60);
  ASSERT_TRUE(driver.reload());
  EXPECT_EQ(offset_of("g09", "v0-gzip-java09"), 60);
}

TEST_F(KafkaLogTest, Of010) {
  replay("kafka-0.10.2.2");
  EXPECT_EQ(offset_of("g010", "v1-gzip-java010"), 45);
  EXPECT_EQ(types(), "g010 classic Empty\nh-g010 classic Empty\n");
}

TEST_F(KafkaLogTest, Of28) {
  replay("kafka-2.8.2");
  EXPECT_EQ(offset_of("g28", "v2-gzip-java28"), 40);
  EXPECT_EQ(offset_of("h-g28s", "h-v2-gzip-java28"), 40);
  EXPECT_EQ(describe("g28s").state, "Empty");
  EXPECT_EQ(describe("g28s").protocol_type, "consumer");
}

// Classic, consumer, share and streams groups, transactions that were committed and aborted.
TEST_F(KafkaLogTest, Of44) {
  replay("kafka-4.4.0");
  EXPECT_EQ(offset_of("kcatg", "s-kcat"), 20);
  EXPECT_EQ(offset_of("gclassic", "s-java"), -1);
  EXPECT_EQ(offset_of("gstatic", "s-java"), 15);
  EXPECT_EQ(offset_of("gnew", "s-java"), 15);
  EXPECT_EQ(offset_of("B", "s-eos"), 20);
  EXPECT_EQ(offset_of("g-aio", "s-kcat"), 36);
  const auto all = types();
  EXPECT_NE(all.find("gnew consumer Empty"), std::string::npos) << all;
  EXPECT_NE(all.find("gstatic classic Empty"), std::string::npos) << all;
  EXPECT_EQ(all.find("sg1"), std::string::npos) << all;  // a share group is not ours
}

// A group that was stable when Kafka was killed goes on.
TEST_F(KafkaLogTest, AGroupOfKafkaGoesOnInItsGeneration) {
  const auto stable = record_at("kafka-2.8.2", 0);
  ASSERT_TRUE(driver.write(stable.key, stable.value));
  ASSERT_TRUE(driver.reload());
  Client client{.group = "g28",
                .member_id = "consumer-g28-1-6eee4fcc-122e-419a-8519-93d9027d6e66",
                .generation = 1};
  EXPECT_EQ(heartbeat(client), ErrorCode::none);
  EXPECT_EQ(state("g28"), "Stable");
  EXPECT_EQ(describe("g28").members.at(0).client_id, "consumer-g28-1");
  EXPECT_EQ(leave(client).members.at(0).error, ErrorCode::none);
  EXPECT_EQ(state("g28"), "Empty");
}

TEST_F(KafkaLogTest, ACommitIsWrittenAsKafkaWritesIt) {
  const auto theirs = record_at("kafka-2.8.2", 1);
  driver.cluster().put("v2-gzip-java28", 1);
  driver.cluster_changed();
  OffsetCommitRequest request{.group = "g28"};
  request.topics.push_back({{.name = "v2-gzip-java28"},
                            {{.partition = 0,
                              .offset = {40},
                              .leader_epoch = {0},
                              .commit_timestamp = {1795959381910}}}});
  (void)ask<OffsetCommitAnswer>("g28", request);
  ASSERT_EQ(driver.log().size(), 1U);
  EXPECT_EQ(driver.log()[0].key_text(), theirs.key);
  EXPECT_EQ(driver.log()[0].value_text(), *theirs.value);
}

TEST_F(KafkaLogTest, WhatKafkaCannotHaveWrittenIsRefused) {
  kafka::OffsetCommitKey key;
  key.group = "g";
  key.topic = "orders";
  const auto key_bytes = *encode_key(key);
  log_is_bad = true;
  EXPECT_FALSE(driver.write(key_bytes.text(), std::string_view("\0\3\0", 3)));
  EXPECT_FALSE(driver.loaded());
}

TEST_F(KafkaLogTest, RecordsOfKindsThatAreNotKnownAreLeftAlone) {
  EXPECT_TRUE(driver.write(std::string_view("\x7f\xff what is this"), "and this"));
  EXPECT_TRUE(driver.loaded());
  EXPECT_TRUE(list().empty());
}

}  // namespace
}  // namespace millrace::consumer_groups::testing
