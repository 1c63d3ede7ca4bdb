#include "kernel/broker/logger_configs.h"

#include <map>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace millrace::kernel {
namespace {

using enum ConfigOperation;

class KeptOperations final : public Operations {
 public:
  State state() const noexcept override { return State::serving; }
  std::vector<PluginFact> plugins() const override {
    return {{.kind = "storage", .instance = "filelog"}, {.kind = "transport", .instance = "kafka"}};
  }
  std::vector<SettingFact> settings() const override { return {}; }
  std::vector<LogLevelFact> log_levels() const override {
    std::vector<LogLevelFact> facts;
    for (const auto& [subsystem, level] : levels) facts.push_back({subsystem, level});
    return facts;
  }
  Result<> set_log_level(std::string_view subsystem, std::optional<LogLevel> level) override {
    if (subsystem == "refused") return Error{Errc::invalid_argument, "no such subsystem"};
    levels.erase(std::string(subsystem));
    if (level) levels.emplace(subsystem, *level);
    return {};
  }

  std::map<std::string, LogLevel> levels{{"", LogLevel::info}, {"storage", LogLevel::warning}};
};

class LoggerConfigsTest : public ::testing::Test {
 protected:
  std::optional<ConfigRefusal> alter(std::vector<ConfigChange> changes, bool only = false) {
    return alter_loggers(operations, {.resource = {}, .changes = std::move(changes)}, only);
  }
  KeptOperations operations;
};

TEST_F(LoggerConfigsTest, LevelsAreToldInKafkasWords) {
  const auto entries = describe_loggers(operations);
  std::map<std::string, std::string> told;
  for (const auto& entry : entries) {
    told.emplace(entry.name, *entry.value);
    EXPECT_EQ(entry.source, ConfigSource::broker_logger);
  }
  EXPECT_EQ(told, (std::map<std::string, std::string>{{"root", "INFO"},
                                                      {"broker", "INFO"},
                                                      {"storage", "WARN"},
                                                      {"storage.filelog", "WARN"},
                                                      {"transport.kafka", "INFO"}}));
}

TEST_F(LoggerConfigsTest, LevelsAreSetAndTakenAway) {
  EXPECT_FALSE(alter({{"root", set, "DEBUG"}, {"broker", set, "TRACE"}, {"storage", remove, {}}}));
  EXPECT_EQ(operations.levels,
            (std::map<std::string, LogLevel>{{"", LogLevel::debug}, {"broker", LogLevel::trace}}));
}

TEST_F(LoggerConfigsTest, AllOrNothing) {
  const auto before = operations.levels;
  EXPECT_EQ(alter({{"broker", set, "DEBUG"}, {"storage", set, "LOUD"}})->error,
            ErrorCode::invalid_config);
  EXPECT_EQ(alter({{"broker", set, "DEBUG"}, {"root", remove, {}}})->error,
            ErrorCode::invalid_request);
  EXPECT_EQ(alter({{"broker", append, "DEBUG"}})->error, ErrorCode::invalid_request);
  EXPECT_EQ(alter({{"broker", set, {}}})->error, ErrorCode::invalid_config);
  EXPECT_EQ(alter({{"broker", set, "INFO"}, {"broker", remove, {}}})->error,
            ErrorCode::invalid_request);
  EXPECT_FALSE(alter({{"broker", set, "DEBUG"}}, true));
  EXPECT_EQ(operations.levels, before);
}

TEST_F(LoggerConfigsTest, WhatTheLogRefusesIsTold) {
  EXPECT_EQ(alter({{"refused", set, "INFO"}})->message, "no such subsystem");
}

}  // namespace
}  // namespace millrace::kernel
