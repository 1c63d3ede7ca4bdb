// The compiled table against what Kafka's own schemas say of every message.
#include <fstream>
#include <map>
#include <sstream>
#include <string>

#include <gtest/gtest.h>

#include <millrace/kafka/api.h>
#include <millrace/kafka/message_info.h>

namespace millrace::kafka {
namespace {

/// A message's line: number, name, kind, valid versions, flexible versions.
struct Facts {
  std::int16_t number = -1;
  std::string name;
  MessageKind kind = MessageKind::data;
  VersionRange versions;
  std::int16_t flexible_from = INT16_MAX;
};

std::vector<std::string> split(const std::string& line) {
  std::vector<std::string> columns;
  std::istringstream row(line);
  for (std::string column; std::getline(row, column, '\t');) columns.push_back(column);
  return columns;
}

std::vector<Facts> facts_of(const std::string& file) {
  static const std::map<std::string, MessageKind> kinds{{"request", MessageKind::request},
                                                        {"response", MessageKind::response},
                                                        {"coordinator-key", MessageKind::key},
                                                        {"coordinator-value", MessageKind::value},
                                                        {"metadata", MessageKind::record},
                                                        {"header", MessageKind::header},
                                                        {"data", MessageKind::data}};
  std::vector<Facts> all;
  std::ifstream in(std::string(MILLRACE_GOLDEN_DIR "/protocol/") + file);
  for (std::string line; std::getline(in, line);) {
    const auto columns = split(line);
    if (columns.empty() || columns[0] != "M") continue;
    Facts facts{.name = columns[2], .kind = kinds.at(columns[3])};
    if (columns[1] != "-") facts.number = static_cast<std::int16_t>(std::stoi(columns[1]));
    // "0-13", "7" or "0,8".
    const auto& versions = columns[4];
    facts.versions.min = static_cast<std::int16_t>(std::stoi(versions));
    facts.versions.max =
        static_cast<std::int16_t>(std::stoi(versions.substr(versions.find_last_of("-,") + 1)));
    const auto& flexible = columns[7];
    if (flexible != "none" && flexible != "-") {
      facts.flexible_from = static_cast<std::int16_t>(std::stoi(flexible));
    }
    all.push_back(facts);
  }
  return all;
}

class MessageTableTest : public ::testing::TestWithParam<const char*> {};

TEST_P(MessageTableTest, HasEveryMessageAsKafkaDescribesIt) {
  const auto all = facts_of(GetParam());
  EXPECT_GT(all.size(), 90u);
  for (const auto& facts : all) {
    const auto* message = find_message(facts.name);
    ASSERT_NE(message, nullptr) << facts.name;
    EXPECT_EQ(message->kind, facts.kind) << facts.name;
    EXPECT_EQ(message->number, facts.number) << facts.name;
    EXPECT_EQ(message->versions, facts.versions) << facts.name;
    // Beyond the last version none is flexible, however that is said.
    if (facts.flexible_from <= facts.versions.max || message->flexible_from != INT16_MAX) {
      EXPECT_EQ(message->flexible_from, facts.flexible_from) << facts.name;
    }
    if (facts.kind != MessageKind::request) continue;
    const auto* api = find_api(facts.number);
    ASSERT_NE(api, nullptr) << facts.name;
    EXPECT_TRUE(api->known.contains(facts.versions.min)) << facts.name;
    EXPECT_TRUE(api->known.contains(facts.versions.max)) << facts.name;
  }
}

INSTANTIATE_TEST_SUITE_P(Facts, MessageTableTest,
                         ::testing::Values("messages.tsv", "internal-schemas.tsv"));

}  // namespace
}  // namespace millrace::kafka
