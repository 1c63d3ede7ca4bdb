#include "kernel/daemon/setting_problems.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace millrace::kernel {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

ConfigPlace line(std::uint32_t number) { return {.source = "x.toml", .line = number, .column = 1}; }

std::vector<std::string> problems_of(TopicSettings topic,
                                     std::map<std::string, std::string> defaults = {}) {
  topic.name = "orders";
  topic.place = line(1);
  Plan plan;
  plan.defaults = std::move(defaults);
  plan.topics.push_back(std::move(topic));
  std::vector<std::string> lines;
  for (const auto& problem : setting_problems(plan)) lines.push_back(to_string(problem));
  return lines;
}

TEST(SettingProblemsTest, ATopicThatIsRight) {
  EXPECT_THAT(problems_of({.replication_factor = 3,
                           .configs = {{"cleanup.policy", "compact,delete"},
                                       {"min.insync.replicas", "2"}}}),
              IsEmpty());
}

TEST(SettingProblemsTest, AValueThatItsTypeDoesNotTell) {
  EXPECT_THAT(problems_of({.configs = {{"cleanup.policy", "keep"}},
                           .places = {{"cleanup.policy", line(7)}}}),
              ElementsAre(HasSubstr("x.toml:7:1: topic.orders.\"cleanup.policy\": ")));
}

TEST(SettingProblemsTest, ValuesThatContradictEachOther) {
  EXPECT_THAT(
      problems_of({.configs = {{"min.compaction.lag.ms", "9"}, {"max.compaction.lag.ms", "5"}}}),
      ElementsAre(HasSubstr("x.toml:1:1: [topic.orders]: conflict")));
}

TEST(SettingProblemsTest, MoreInSyncReplicasThanReplicas) {
  EXPECT_THAT(problems_of({.replication_factor = 1,
                           .configs = {{"min.insync.replicas", "2"}},
                           .places = {{"min.insync.replicas", line(3)}}}),
              ElementsAre("x.toml:3:1: topic.orders.\"min.insync.replicas\": 2 in-sync replicas of "
                          "1: no record with acks=all would be accepted; raise "
                          "replication-factor or lower this"));
  // Both inherited.
  EXPECT_THAT(problems_of({}, {{"min.insync.replicas", "2"}}),
              ElementsAre(HasSubstr("2 in-sync replicas of 1")));
  EXPECT_THAT(problems_of({}, {{"min.insync.replicas", "2"}, {"default.replication.factor", "3"}}),
              IsEmpty());
}

TEST(SettingProblemsTest, OfDefaultsComeFirst) {
  EXPECT_THAT(problems_of({.configs = {{"cleanup.policy", "keep"}}}, {{"cleanup.policy", "hold"}}),
              ElementsAre(HasSubstr("defaults.\"cleanup.policy\"")));
}

}  // namespace
}  // namespace millrace::kernel
