// The records as Kafka's own tool printed them, applied here by other code, against what we read.
#include "kernel/takeover/metadata_log.h"

#include <gmock/gmock.h>

#include <boost/json.hpp>

#include <millrace/testing/sim_environment.h>

#include "golden_metadata.h"

namespace millrace::kernel {
namespace {

namespace json = boost::json;

struct Expected {
  std::map<std::string, std::string> names;  // by id
  std::map<std::string, std::map<std::int64_t, std::pair<std::int64_t, std::int64_t>>>
      partitions;  // by id: leader and its epoch
  std::map<std::string, Settings> settings;
};

std::string text(const json::value& value) { return std::string(value.get_string()); }

Expected read_printed_records() {
  Expected expected;
  std::istringstream lines(golden_metadata_file("00000000000000000000.decoded.jsonl"));
  for (std::string line; std::getline(lines, line);) {
    const auto record = json::parse(line);
    const auto type = text(record.at("type"));
    const auto& value = record.at("value").get_object();
    if (type == "TopicRecord") {
      expected.names[text(value.at("topicId"))] = text(value.at("name"));
    } else if (type == "RemoveTopicRecord") {
      const auto id = text(value.at("topicId"));
      expected.settings.erase(expected.names[id]);
      expected.partitions.erase(id);
      expected.names.erase(id);
    } else if (type == "PartitionRecord") {
      expected.partitions[text(value.at("topicId"))][value.at("partitionId").as_int64()] = {
          value.at("leader").as_int64(), value.at("leaderEpoch").as_int64()};
    } else if (type == "PartitionChangeRecord" && value.contains("leader")) {
      auto& partition =
          expected.partitions[text(value.at("topicId"))][value.at("partitionId").as_int64()];
      partition = {value.at("leader").as_int64(), partition.second + 1};
    } else if (type == "ConfigRecord" && value.at("resourceType").as_int64() == 2) {
      auto& settings = expected.settings[text(value.at("resourceName"))];
      const auto name = text(value.at("name"));
      if (value.at("value").is_null()) {
        settings.erase(name);
      } else {
        settings[name] = text(value.at("value"));
      }
    }
  }
  return expected;
}

class MetadataLogTest : public ::testing::Test {
 protected:
  Result<KafkaMetadata> read() { return read_metadata_log(files_, "/data/__cluster_metadata-0"); }
  void put_log(std::string_view content) {
    put_file(files_, "/data/__cluster_metadata-0/00000000000000000000.log", content);
  }

  testing::SimWorld world_{1};
  testing::SimDisk& files_ = world_.add_node("b1").files();
};

TEST_F(MetadataLogTest, FindsTheTopicsThatKafkaHad) {
  put_golden_metadata(files_, "/data");
  const auto found = read();
  ASSERT_TRUE(found) << to_string(found.error());
  const auto expected = read_printed_records();
  ASSERT_GT(expected.names.size(), 100u);
  EXPECT_EQ(found->topics.size(), expected.names.size());
  for (const auto& topic : found->topics) {
    const auto id = to_string(topic.id);
    SCOPED_TRACE(topic.name);
    ASSERT_TRUE(expected.names.contains(id));
    EXPECT_EQ(topic.name, expected.names.at(id));
    const auto& partitions = expected.partitions.at(id);
    ASSERT_EQ(topic.partitions.size(), partitions.size());
    for (const auto& [number, state] : partitions) {
      const auto& partition = topic.partitions[static_cast<std::size_t>(number)];
      EXPECT_EQ(partition.leader, state.first);
      EXPECT_EQ(partition.leader_epoch.value, state.second);
      EXPECT_THAT(partition.replicas, ::testing::ElementsAre(1));
    }
    const auto settings = expected.settings.find(topic.name);
    EXPECT_EQ(topic.configs, settings == expected.settings.end() ? Settings{} : settings->second);
  }
}

TEST_F(MetadataLogTest, RefusesDamageAndSaysWhere) {
  put_golden_metadata(files_, "/data");
  auto log = golden_metadata_file("00000000000000000000.log.gz");
  log[log.size() / 2] ^= 0x10;
  put_log(log);
  const auto damaged = read();
  ASSERT_FALSE(damaged);
  EXPECT_THAT(damaged.error().detail, ::testing::HasSubstr("00000000000000000000.log at byte"));
}

// Whoever believed less than all of the log would delete the topics that only the rest names.
TEST_F(MetadataLogTest, RefusesALogThatIsNotAllThere) {
  const std::string folder = "/data/__cluster_metadata-0/";
  const auto refusal = [&] {
    const auto found = read();
    return found ? "read" : found.error().detail;
  };
  put_golden_metadata(files_, "/data");
  const auto log = golden_metadata_file("00000000000000000000.log.gz");
  put_log(std::string_view(log).substr(0, log.size() - 3));
  EXPECT_THAT(refusal(), ::testing::HasSubstr("does not end"));
  auto lied = log;
  lied[8] = 0x7f;
  put_log(lied);
  EXPECT_THAT(refusal(), ::testing::HasSubstr("the batch at byte 0 does not end"));

  put_log(log);
  put_file(files_, folder + "00000000000000005000.log", "");
  EXPECT_THAT(refusal(), ::testing::HasSubstr("00000000000000005000.log: what is before is there"));

  ASSERT_TRUE(files_.remove(folder + "00000000000000000000.log"));
  EXPECT_THAT(refusal(), ::testing::HasSubstr("there up to offset 0"));

  const auto snapshot = golden_metadata_file("00000000000000000000-0000000000.checkpoint");
  const auto cut = std::string_view(snapshot).substr(0, snapshot.size() - 3);
  put_file(files_, folder + "00000000000000005000-0000000001.checkpoint", snapshot);
  EXPECT_EQ(refusal(), "read");
  put_file(files_, folder + "00000000000000005000-0000000001.checkpoint", cut);
  EXPECT_THAT(refusal(), ::testing::HasSubstr("does not end"));

  ASSERT_TRUE(files_.remove(folder + "00000000000000005000.log"));
  EXPECT_THAT(refusal(), ::testing::HasSubstr("there is no segment of the log"));
}

}  // namespace
}  // namespace millrace::kernel
