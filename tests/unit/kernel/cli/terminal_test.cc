#include "kernel/cli/terminal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace millrace::kernel::cli {
namespace {

using testing::ElementsAre;

TEST(TerminalTest, NothingIsFittedOrColouredInAPipe) {
  const auto pipe = terminal_by({.columns = "40", .term = "xterm"});
  EXPECT_EQ(pipe.columns, std::nullopt);
  EXPECT_FALSE(pipe.colours);
}

TEST(TerminalTest, ColumnsAreThoseOfTheVariableThenOfTheWindow) {
  const auto columns = [](std::size_t window, const char* variable) {
    return terminal_by({.is_terminal = true, .window_columns = window, .columns = variable})
        .columns.value_or(0);
  };
  EXPECT_EQ(columns(120, nullptr), 120U);
  EXPECT_EQ(columns(120, "40"), 40U);
  EXPECT_EQ(columns(120, "wide"), 120U);
  EXPECT_EQ(columns(120, ""), 120U);
  EXPECT_EQ(columns(0, nullptr), 80U);
}

TEST(TerminalTest, ColoursAreLeftOutWhereTheyAreNotWanted) {
  const auto colours = [](const char* term, const char* no_color) {
    return terminal_by({.is_terminal = true, .no_color = no_color, .term = term}).colours;
  };
  EXPECT_TRUE(colours("xterm", nullptr));
  EXPECT_TRUE(colours("xterm", ""));
  EXPECT_FALSE(colours("xterm", "1"));
  EXPECT_FALSE(colours("dumb", nullptr));
  EXPECT_FALSE(colours(nullptr, nullptr));
}

TEST(TerminalTest, WideLettersTakeTwoColumns) {
  EXPECT_EQ(display_width("orders"), 6U);
  EXPECT_EQ(display_width("Größe"), 5U);
  EXPECT_EQ(display_width("注文"), 4U);
  EXPECT_EQ(display_width("a😀"), 3U);
  EXPECT_EQ(display_width("e\u0301"), 1U);
  EXPECT_EQ(display_width(""), 0U);
}

TEST(TerminalTest, WhatOthersHaveWrittenIsNoCommandForATerminal) {
  EXPECT_EQ(printable("a\tb\nc\r\n"), "a\tb\nc\r\n");
  EXPECT_EQ(printable("\x1b[2J\x07 over\rwritten"), "\\x1b[2J\\x07 over\\x0dwritten");
  EXPECT_EQ(printable(std::string_view("\0\x7f", 2)), "\\x00\\x7f");
  EXPECT_EQ(printable("\xc2\x9b"
                      "31m"),
            "\\xc2\\x9b31m")
      << "U+009B is what ESC [ is";
  EXPECT_EQ(printable("\xff\xfe \xf0\x9f\x98\x80 \xc3\xa4"),
            "\\xff\\xfe \xf0\x9f\x98\x80 \xc3\xa4");
  EXPECT_EQ(printable(red("b")), "\\x1b[31mb\\x1b[0m");
  const auto ours = bold("A") + red("b") + yellow("c");
  EXPECT_EQ(printable_with_tones(ours + "\x1b[2J"), ours + "\\x1b[2J");
}

TEST(TerminalTest, LinesAreCutAtSpaces) {
  EXPECT_THAT(wrapped("one two three", 7), ElementsAre("one two", "three"));
  EXPECT_THAT(wrapped("one two three", 100), ElementsAre("one two three"));
  EXPECT_THAT(wrapped("incomprehensible a b", 4), ElementsAre("incomprehensible", "a b"));
  EXPECT_THAT(wrapped("注文 注文 a", 9), ElementsAre("注文 注文", "a"));
  EXPECT_THAT(wrapped("", 5), ElementsAre(""));
}

TEST(TerminalTest, HelpIsCutToTheWidthOfTheTerminal) {
  constexpr std::string_view help =
      "create a topic\n"
      "Usage: millrace topic create [OPTIONS] NAME\n"
      "\n"
      "Options:\n"
      "  --config KEY=VALUE          a setting of the topic\n"
      "                              that it has\n"
      "\n"
      "Example:\n"
      "  millrace topic create orders --partitions 3 --replication-factor 3\n";
  EXPECT_EQ(fitted_help(help, 100), help);
  EXPECT_EQ(fitted_help(help, 40),
            "create a topic\n"
            "Usage: millrace topic create [OPTIONS]\n"
            "NAME\n"
            "\n"
            "Options:\n"
            "  --config KEY=VALUE\n"
            "      a setting of the topic\n"
            "      that it has\n"
            "\n"
            "Example:\n"
            "  millrace topic create orders --partitions 3 --replication-factor 3\n");
  EXPECT_EQ(fitted_help("  --a NAME    one two three four\n", 28),
            "  --a NAME    one two three\n"
            "              four\n");
}

}  // namespace
}  // namespace millrace::kernel::cli
