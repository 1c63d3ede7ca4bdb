#include "kernel/cli/message_format.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace millrace::kernel::cli {
namespace {

using testing::HasSubstr;

const RecordView message{.offset = {7},
                         .timestamp = {1'764'410'400'250},
                         .key = as_bytes("k"),
                         .value = as_bytes("value"),
                         .headers = {{"a", as_bytes("1")}, {"b", std::nullopt}}};

std::string formatted(const MessageFormat& format, const RecordView& record = message) {
  std::string text;
  format.append(text, "orders", 3, record);
  return text;
}

std::string formatted(std::string_view text, const RecordView& record = message) {
  const auto format = MessageFormat::parse(text);
  return format ? formatted(*format, record) : format.error().detail;
}

TEST(MessageFormatTest, DirectivesStandForWhatAMessageHas) {
  EXPECT_EQ(formatted("%t-%p@%o %k=%s"), "orders-3@7 k=value");
  EXPECT_EQ(formatted("%K %S %T %d"), "1 5 1764410400250 2025-11-29T10:00:00.250Z");
  EXPECT_EQ(formatted("%h;100%%"), "a=1,b=;100%");
  EXPECT_EQ(formatted(R"(\t\n\r\\\x41)"), "\t\n\r\\A");
  EXPECT_EQ(formatted("\\0"), std::string(1, '\0'));
}

TEST(MessageFormatTest, OfWhatIsNullThereIsNothingAndItsSizeSaysSo) {
  EXPECT_EQ(formatted("[%k|%s|%K|%S]", {}), "[||-1|-1]");
}

TEST(MessageFormatTest, WhatIsUnknownIsNamedWithWhatThereIs) {
  for (const auto* wrong : {"%x", "%", "\\q", "\\", "\\x4"}) {
    EXPECT_THAT(formatted(wrong), HasSubstr("is not known; there are ")) << wrong;
  }
  EXPECT_THAT(formatted("%x"), HasSubstr("'%x'"));
  EXPECT_THAT(formatted("%x"), HasSubstr("%s value"));
}

TEST(MessageFormatTest, LinesAreValuesBehindTheirHeadersAndKeys) {
  EXPECT_EQ(formatted(MessageFormat::lines(false, false)), "value\n");
  EXPECT_EQ(formatted(MessageFormat::lines(true, false)), "k\tvalue\n");
  EXPECT_EQ(formatted(MessageFormat::lines(true, true)), "a=1,b=\tk\tvalue\n");
}

TEST(MessageFormatTest, OnATerminalTheFormatIsItsUsersAndTheMessageIsNot) {
  const RecordView hostile{.key = as_bytes("\x1b[2J"),
                           .value = as_bytes("\x9b"
                                             "a\r")};
  const auto format = MessageFormat::parse(R"(\x1b[1m%k\x1b[0m\x07 %s\n)");
  ASSERT_TRUE(format);
  std::string text;
  format->append_printable(text, "orders", 3, hostile);
  EXPECT_EQ(text, "\x1b[1m\\x1b[2J\x1b[0m\x07 \\x9ba\r\n") << "an end of a line stays one";
}

TEST(MessageFormatTest, SeparatorsAreUnescaped) {
  EXPECT_EQ(unescaped(R"(a\t\\)").value(), "a\t\\");
  EXPECT_EQ(unescaped("").value(), "");
  EXPECT_FALSE(unescaped("\\"));
}

}  // namespace
}  // namespace millrace::kernel::cli
