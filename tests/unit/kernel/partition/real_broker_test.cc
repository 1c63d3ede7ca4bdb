// Hand-built produce requests that a real broker was sent: our partition answers as it did.
#include <fstream>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <boost/json.hpp>

#include <millrace/kafka/codec.h>
#include <millrace/kafka/produce.h>

#include "tests/unit/kernel/partition/partition_fixture.h"
#include "tests/unit/sdk/batch/loaded_codecs.h"

namespace millrace::kernel {
namespace {

namespace json = boost::json;

// When the session was captured: one of its requests is beyond what this clock allows.
constexpr Timestamp captured{1'795'960'910'280};

struct Exchange {
  std::string name;  // "raw:bad-crc"
  std::string topic;
  Buffer records;
  ProduceContext context;
  std::int16_t error_code = 0;
  std::int64_t base_offset = -1;
  std::int64_t log_start = -1;
  std::size_t record_errors = 0;
};

Buffer from_hex(std::string_view hex) {
  std::string bytes;
  for (std::size_t at = 0; at + 1 < hex.size(); at += 2) {
    bytes.push_back(static_cast<char>(std::stoi(std::string(hex.substr(at, 2)), nullptr, 16)));
  }
  return Buffer::copy_of(bytes);
}

Exchange request_of(const json::object& event) {
  const auto frame = from_hex(event.at("hex").as_string());
  const auto at = static_cast<std::size_t>(event.at("bodyOffset").as_int64());
  const auto version = static_cast<std::int16_t>(event.at("version").as_int64());
  const auto request = kafka::decode<kafka::ProduceRequest>(frame.slice(at), version);
  EXPECT_TRUE(request);
  const auto& topic = request->topic_data.at(0);
  return {.name = std::string(event.at("client").as_string()),
          .topic = std::string(topic.name),
          .records = topic.partition_data.at(0).records.value_or(Buffer()),
          .context = {.acks = request->acks,
                      .timeout = std::chrono::milliseconds(request->timeout_ms),
                      .features = {.zstd = version >= 7}}};
}

void add_answer(const json::object& event, Exchange& exchange) {
  const auto& partition = event.at("json").at("responses").at(0).at("partitionResponses").at(0);
  exchange.error_code = static_cast<std::int16_t>(partition.at("errorCode").as_int64());
  exchange.base_offset = partition.at("baseOffset").as_int64();
  exchange.log_start = partition.at("logStartOffset").as_int64();
  if (const auto* errors = partition.as_object().if_contains("recordErrors")) {
    exchange.record_errors = errors->as_array().size();
  }
}

/// Requests of existing partitions that were answered, in their order.
std::vector<Exchange> exchanges() {
  constexpr std::int64_t produce_key = 0;
  std::ifstream file(MILLRACE_GOLDEN_DIR "/sessions/kafka44-raw-error-cases.jsonl");
  std::map<std::pair<std::int64_t, std::int64_t>, Exchange> asked;
  std::vector<Exchange> answered;
  for (std::string line; std::getline(file, line);) {
    const auto event = json::parse(line).as_object();
    const auto* key = event.if_contains("key");
    if (!key || key->as_int64() != produce_key) continue;
    const std::pair id(event.at("conn").as_int64(), event.at("corr").as_int64());
    if (event.at("dir").as_string() == "req") {
      asked[id] = request_of(event);
      continue;
    }
    add_answer(event, asked.at(id));
    constexpr std::int16_t unknown_topic_or_partition = 3;
    if (asked[id].error_code != unknown_topic_or_partition) answered.push_back(asked[id]);
  }
  return answered;
}

class RealBrokerTest : public testing::PartitionFixture {
 protected:
  RealBrokerTest() { codecs = millrace::testing::loaded_codecs(); }

  void replay(const std::string& topic, const ConfigMap& config, std::size_t expected) {
    environment.set_wall(captured);
    open(config);
    std::size_t replayed = 0;
    for (const auto& one : exchanges()) {
      if (one.topic != topic) continue;
      ++replayed;
      const auto ours = produce(one.records, one.context);
      EXPECT_EQ(name_of(ours.error), name_of(static_cast<ErrorCode>(one.error_code)))
          << one.name << ": " << ours.message;
      EXPECT_EQ(ours.record_errors.size(), one.record_errors) << one.name;
      EXPECT_EQ(ours.base_offset.value, one.base_offset) << one.name;
      EXPECT_EQ(ours.log_start.value, one.log_start) << one.name;
    }
    EXPECT_EQ(replayed, expected);
  }
};

TEST_F(RealBrokerTest, AnswersAsItDid) { replay("raw-c", {}, 28); }
TEST_F(RealBrokerTest, BoundsBatchesAsItDid) {
  replay("raw-small", {{"max.message.bytes", "300"}}, 1);
}
TEST_F(RealBrokerTest, WantsKeysAsItDid) {
  replay("raw-compact", {{"cleanup.policy", "compact"}}, 1);
}

}  // namespace
}  // namespace millrace::kernel
