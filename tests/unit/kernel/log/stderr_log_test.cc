#include "kernel/log/stderr_log.h"

#include <gtest/gtest.h>

namespace millrace::kernel {
namespace {

TEST(StderrLogTest, TheNearestNamedSubsystemDecides) {
  const StderrLog log({.others = LogLevel::info,
                       .of = {{"storage", LogLevel::error}, {"storage.filelog", LogLevel::debug}}},
                      "text");
  EXPECT_TRUE(log.wants(LogLevel::info, "broker"));
  EXPECT_FALSE(log.wants(LogLevel::debug, "broker"));
  EXPECT_FALSE(log.wants(LogLevel::warning, "storage.memory"));
  EXPECT_TRUE(log.wants(LogLevel::debug, "storage.filelog"));
  EXPECT_TRUE(log.wants(LogLevel::debug, "storage.filelog.recovery"));
  EXPECT_TRUE(log.wants(LogLevel::info, "storagex"));
}

TEST(StderrLogTest, LevelsChangeWhileItIsUsed) {
  StderrLog log({.others = LogLevel::info, .of = {}}, "text");
  log.set_levels({.others = LogLevel::warning, .of = {{"storage", LogLevel::debug}}});
  EXPECT_FALSE(log.wants(LogLevel::info, "broker"));
  EXPECT_TRUE(log.wants(LogLevel::debug, "storage"));
}

TEST(StderrLogTest, WritesOneLine) {
  ::testing::internal::CaptureStderr();
  {
    StderrLog log({.others = LogLevel::info, .of = {}}, "text");
    Log(log, "broker").info("ready", {{"shards", 2}});
    Log(log, "broker").debug("not wanted");
  }
  const auto written = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(written.find("INFO  broker: ready shards=2\n"), std::string::npos) << written;
  EXPECT_EQ(std::ranges::count(written, '\n'), 1);
}

}  // namespace
}  // namespace millrace::kernel
