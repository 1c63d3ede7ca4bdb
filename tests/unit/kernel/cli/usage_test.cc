#include "kernel/cli/usage.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace millrace::kernel::cli {
namespace {

using testing::HasSubstr;

TEST(UsageTest, OneOfAFewWordsNamesThemAndTheNearest) {
  const auto check = one_of({"none", "gzip", "snappy"});
  EXPECT_EQ(check("gzip"), "");
  EXPECT_EQ(check("gzipp"), "expected none, gzip or snappy, found \"gzipp\"; nearest known: gzip");
  EXPECT_EQ(check("brotli"), "expected none, gzip or snappy, found \"brotli\"");
}

TEST(UsageTest, WholeNumbersHaveBounds) {
  const auto check = whole_number<std::int32_t>(1);
  EXPECT_EQ(check("1"), "");
  EXPECT_EQ(check("2147483647"), "");
  const auto* expected = "expected an integer from 1 to 2147483647, found ";
  for (const auto* wrong :
       {"0", "-1", "2147483648", "99999999999999999999", "", "3x", "three", "1.5"}) {
    EXPECT_EQ(check(wrong), expected + ('"' + std::string(wrong) + '"'));
  }
  EXPECT_EQ(whole_number<std::int64_t>(0)("-1"), "expected an integer, at least 0, found \"-1\"");
}

TEST(UsageTest, TopicsHaveNamesThatKafkaAllows) {
  EXPECT_EQ(topic_name("orders.v1_x-Y"), "");
  EXPECT_EQ(topic_name(std::string(249, 'a')), "");
  EXPECT_THAT(topic_name("a b"),
              HasSubstr("\"a b\" is no topic's name: it has ' '; allowed are a-z"));
  EXPECT_THAT(topic_name("orders😀"), HasSubstr("it has '😀'; allowed are"));
  EXPECT_THAT(topic_name("a\nb"), HasSubstr("it has '\\x0a'"));
  EXPECT_THAT(topic_name(""), HasSubstr("\"\" is no topic's name"));
  EXPECT_THAT(topic_name(".."), HasSubstr("neither '.' nor '..'"));
  EXPECT_THAT(topic_name(std::string(250, 'a')), HasSubstr("of 250 bytes is too long"));
}

}  // namespace
}  // namespace millrace::kernel::cli
