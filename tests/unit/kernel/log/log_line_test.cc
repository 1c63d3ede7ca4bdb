#include "kernel/log/log_line.h"

#include <gtest/gtest.h>

namespace millrace::kernel {
namespace {

constexpr Timestamp noon{1'795'953'601'123};

TEST(LogLineTest, HasTimeLevelSubsystemMessageAndFields) {
  EXPECT_EQ(text_line({noon,
                       LogLevel::warning,
                       "storage.filelog",
                       "recovered",
                       {{"partition", "orders-3"}, {"cut_bytes", 112}}}),
            "2026-11-29T12:00:01.123Z WARN  storage.filelog: recovered partition=orders-3 "
            "cut_bytes=112\n");
}

TEST(LogLineTest, QuotesWhatWouldReadAsSomethingElse) {
  EXPECT_EQ(text_line({noon,
                       LogLevel::info,
                       "x",
                       "m",
                       {{"a", "two words"}, {"b", ""}, {"c", "k=v"}, {"d", "say \"hi\""}}}),
            "2026-11-29T12:00:01.123Z INFO  x: m a=\"two words\" b=\"\" c=\"k=v\" "
            "d=\"say \\\"hi\\\"\"\n");
}

TEST(LogLineTest, AClientCannotForgeALine) {
  const auto line = text_line(
      {noon, LogLevel::info, "x", "m\nforged", {{"client", "evil\n2026 ERROR x: forged\x1b[31m"}}});
  EXPECT_EQ(std::ranges::count(line, '\n'), 1);
  EXPECT_EQ(line.find('\x1b'), std::string::npos);
}

TEST(LogLineTest, BytesThatAreNoTextBreakNoLine) {
  const LogEvent event{noon,
                       LogLevel::info,
                       "x",
                       "m",
                       {{"group",
                         "a\xff\xc2\x9b"
                         "2J\xc3\xa4"}}};
  EXPECT_NE(text_line(event).find("group=\"a\\ufffd\\u009b2J\xc3\xa4\""), std::string::npos)
      << text_line(event);
  EXPECT_NE(json_line(event).find("\"group\":\"a\\ufffd\\u009b2J\xc3\xa4\""), std::string::npos)
      << json_line(event);
}

TEST(LogLineTest, WritesJson) {
  EXPECT_EQ(json_line({noon, LogLevel::error, "x", "a \"b\"", {{"n", 3}, {"t", "tab\t"}}}),
            "{\"time\":\"2026-11-29T12:00:01.123Z\",\"level\":\"error\",\"subsystem\":\"x\","
            "\"message\":\"a \\\"b\\\"\",\"n\":\"3\",\"t\":\"tab\\t\"}\n");
}

TEST(LogLineTest, InTheJournalALineHasItsLevelInFrontAndNoTime) {
  const auto line = [](LogLevel level, bool json) {
    return styled_line({.json = json, .journal = true}, {noon, level, "x", "m", {{"n", 3}}});
  };
  EXPECT_EQ(line(LogLevel::error, false), "<3>ERROR x: m n=3\n");
  EXPECT_EQ(line(LogLevel::warning, false), "<4>WARN  x: m n=3\n");
  EXPECT_EQ(line(LogLevel::info, false), "<6>INFO  x: m n=3\n");
  EXPECT_EQ(line(LogLevel::debug, false), "<7>DEBUG x: m n=3\n");
  EXPECT_EQ(line(LogLevel::error, true),
            "<3>{\"time\":\"2026-11-29T12:00:01.123Z\",\"level\":\"error\",\"subsystem\":\"x\","
            "\"message\":\"m\",\"n\":\"3\"}\n");
}

}  // namespace
}  // namespace millrace::kernel
