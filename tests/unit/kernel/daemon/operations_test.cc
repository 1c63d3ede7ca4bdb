#include "kernel/daemon/operations.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernel/log/stderr_log.h"

namespace millrace::kernel {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class OperationsTest : public ::testing::Test {
 protected:
  OperationsTest() {
    operations.set_plugins(
        {{.kind = "storage", .instance = "filelog"}, {.kind = "transport", .instance = "kafka"}},
        {1'000});
  }
  std::vector<std::string> levels() const {
    std::vector<std::string> shown;
    for (const auto& [subsystem, level] : operations.log_levels()) {
      shown.push_back(subsystem + "=" + std::string(name_of(level)));
    }
    return shown;
  }

  StderrLog log{{.others = LogLevel::info, .of = {{"storage", LogLevel::warning}}}, "text"};
  BrokerOperations operations{{{"broker.id", "1", "default"}}, &log};
};

TEST_F(OperationsTest, APluginRunsSinceItWasBegunOrReplaced) {
  const auto starts = [this] {
    std::vector<std::pair<std::string, std::int64_t>> all;
    for (const auto& one : operations.plugin_starts()) all.emplace_back(one.instance, one.since.ms);
    return all;
  };
  using Start = std::pair<std::string, std::int64_t>;
  EXPECT_THAT(starts(), ElementsAre(Start("filelog", 1'000), Start("kafka", 1'000)));
  const PluginFact storage{.kind = "storage", .instance = "filelog"};
  PluginFact tally{.kind = "operators", .instance = "tally", .version = "1"};
  operations.set_plugins({storage, tally}, {2'000});
  EXPECT_THAT(starts(), ElementsAre(Start("filelog", 1'000), Start("tally", 2'000)));
  tally.version = "2";
  operations.set_plugins({tally, storage}, {3'000});
  EXPECT_THAT(starts(), ElementsAre(Start("tally", 3'000), Start("filelog", 1'000)));
}

TEST_F(OperationsTest, LevelsAreThoseOfTheLog) {
  EXPECT_THAT(levels(), ElementsAre("=info", "storage=warning"));
  log.set_levels({.others = LogLevel::error, .of = {}});  // as a reload does
  EXPECT_THAT(levels(), ElementsAre("=error"));
}

TEST_F(OperationsTest, ALevelIsSetForASubsystemOrForTheRest) {
  EXPECT_TRUE(operations.set_log_level("storage.filelog", LogLevel::debug));
  EXPECT_TRUE(operations.set_log_level("", LogLevel::error));
  EXPECT_THAT(levels(), ElementsAre("=error", "storage=warning", "storage.filelog=debug"));
  EXPECT_TRUE(log.wants(LogLevel::debug, "storage.filelog"));
  EXPECT_FALSE(log.wants(LogLevel::warning, "broker"));
}

TEST_F(OperationsTest, ALevelThatIsTakenAwayIsThatOfWhatIsAbove) {
  EXPECT_TRUE(operations.set_log_level("storage", std::nullopt));
  EXPECT_THAT(levels(), ElementsAre("=info"));
  EXPECT_TRUE(log.wants(LogLevel::info, "storage"));
  EXPECT_TRUE(operations.set_log_level("no.such", std::nullopt));
}

TEST_F(OperationsTest, WhatIsNoSubsystemIsRefusedWithTheNearestOne) {
  for (const auto* name : {"a b", "x\n", "storage.memory", "storage.filelog.x", "kafka", "stor"}) {
    const auto set = operations.set_log_level(name, LogLevel::debug);
    ASSERT_FALSE(set) << name;
    EXPECT_EQ(set.error().code, Errc::invalid_argument);
  }
  const auto slip = operations.set_log_level("storage.filelg", LogLevel::debug);
  EXPECT_THAT(slip.error().detail, HasSubstr("nearest known: storage.filelog"));
  EXPECT_TRUE(operations.set_log_level("transport", LogLevel::debug)) << "what is above counts";
  EXPECT_FALSE(operations.set_log_level("", std::nullopt));
  EXPECT_THAT(levels(), ElementsAre("=info", "storage=warning", "transport=debug"));
}

TEST_F(OperationsTest, WithoutALogThereAreNoLevels) {
  BrokerOperations silent({}, nullptr);
  EXPECT_THAT(silent.log_levels(), IsEmpty());
  EXPECT_EQ(silent.set_log_level("", LogLevel::debug).error().code, Errc::unsupported);
}

TEST_F(OperationsTest, ItsStateIsWhatTheEngineSays) {
  EXPECT_EQ(operations.state(), Operations::State::starting);
  operations.set_state(Operations::State::serving);
  EXPECT_EQ(operations.state(), Operations::State::serving);
}

}  // namespace
}  // namespace millrace::kernel
