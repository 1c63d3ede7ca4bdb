#include <millrace/utf8.h>

#include <gtest/gtest.h>

namespace millrace {
namespace {

TEST(Utf8Test, WhatIsNoTextIsReplaced) {
  EXPECT_EQ(utf8_of("plain"), "plain");
  EXPECT_EQ(utf8_of("\xc3\xa4\xff"
                    "b\xc3"),
            "\xc3\xa4\xef\xbf\xbd"
            "b\xef\xbf\xbd");
}

TEST(Utf8Test, TheFrontOfATextCutsNoCharacter) {
  EXPECT_EQ(front_of("abc", 3), "abc");
  EXPECT_EQ(front_of("abcd", 3), "abc");
  EXPECT_EQ(front_of("ab\xe2\x82\xac", 4), "ab");
  EXPECT_EQ(front_of("\xe2\x82\xac", 0), "");
}

TEST(Utf8Test, WhatSomebodyHasSentIsShownInOneLineAndNotInFull) {
  EXPECT_EQ(shown("group-1"), "group-1");
  EXPECT_EQ(shown("a\nb\x7f\xff"), "a\\x0ab\\x7f\xef\xbf\xbd");
  EXPECT_EQ(shown("a\xc2\x9b"
                  "2J\xc2\xa0\xc3\xa4"),
            "a\\x9b"
            "2J\xc2\xa0\xc3\xa4")
      << "a terminal's command, in one character";
  EXPECT_EQ(shown(std::string(300, 'x'), 4), "xxxx... (300 bytes)");
}

}  // namespace
}  // namespace millrace
