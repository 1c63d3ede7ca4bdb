#include "kernel/log/stderr_log.h"

#include <gtest/gtest.h>

namespace millrace::kernel {
namespace {

TEST(StderrLogTest, TheNearestNamedSubsystemDecides) {
  const StderrLog log(LogLevel::info,
                      {{"storage", LogLevel::error}, {"storage.filelog", LogLevel::debug}}, "text");
  EXPECT_TRUE(log.wants(LogLevel::info, "broker"));
  EXPECT_FALSE(log.wants(LogLevel::debug, "broker"));
  EXPECT_FALSE(log.wants(LogLevel::warning, "storage.memory"));
  EXPECT_TRUE(log.wants(LogLevel::debug, "storage.filelog"));
  EXPECT_TRUE(log.wants(LogLevel::debug, "storage.filelog.recovery"));
  EXPECT_TRUE(log.wants(LogLevel::info, "storagex"));
}

TEST(StderrLogTest, WritesOneLine) {
  StderrLog log(LogLevel::info, {}, "text");
  ::testing::internal::CaptureStderr();
  Log(log, "broker").info("ready", {{"shards", 2}});
  Log(log, "broker").debug("not wanted");
  const auto written = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(written.find("INFO  broker: ready shards=2\n"), std::string::npos) << written;
  EXPECT_EQ(std::ranges::count(written, '\n'), 1);
}

}  // namespace
}  // namespace millrace::kernel
