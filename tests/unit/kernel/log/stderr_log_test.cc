#include "kernel/log/stderr_log.h"

#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <string>

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

TEST(StderrLogTest, TheJournalIsTheFileThatItsVariableNames) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  struct stat file{};
  ASSERT_EQ(::fstat(ends[1], &file), 0);
  const auto stream = std::to_string(file.st_dev) + ":" + std::to_string(file.st_ino);
  EXPECT_TRUE(is_journal(ends[1], stream.c_str()));
  EXPECT_FALSE(is_journal(ends[1], nullptr));
  EXPECT_FALSE(is_journal(ends[1], (stream + "0").c_str())) << "redirected to something else";
  EXPECT_FALSE(is_journal(-1, stream.c_str()));
  for (const int end : ends) ::close(end);
}

}  // namespace
}  // namespace millrace::kernel
