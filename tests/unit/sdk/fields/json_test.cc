#include <gtest/gtest.h>

#include <millrace/fields/json_text.h>

namespace millrace {
namespace {

std::string again(std::string_view json) {
  JsonText text;
  const auto walked = walk_json(as_bytes(json), text);
  return walked ? text.take() : walked.error().detail;
}

TEST(JsonTextTest, GivesBackWhatItWasTold) {
  for (const auto* json :
       {R"({"a":[1,2.50,{"b":null}],"c":{},"d":[]})", R"([[],[[]],{}])", R"("text")", "-0.0e-1",
        "true", R"(["\"\\\b\f\n\r\t\u0001ü"])", R"({"":"","a":":","b":",","c":"{","d":"["})"}) {
    EXPECT_EQ(again(json), json);
  }
  EXPECT_EQ(again(" { \"a\" : [ 1 , 2 ] } "), R"({"a":[1,2]})");
  EXPECT_EQ(again(R"("\u00fc\/")"), R"("ü/")");
}

TEST(JsonTextTest, BeginsAnew) {
  JsonText text;
  ASSERT_TRUE(walk_json(as_bytes("[1]"), text));
  EXPECT_EQ(text.take(), "[1]");
  EXPECT_TRUE(text.empty());
  ASSERT_TRUE(walk_json(as_bytes("2"), text));
  EXPECT_EQ(text.text(), "2");
}

TEST(JsonWalkTest, SaysWhereItEnds) {
  EXPECT_EQ(again("[1,]"), "not JSON: syntax error, at byte 3 of 4");
  EXPECT_EQ(again("[1] 2").substr(0, 9), "not JSON:");
}

TEST(JsonWalkTest, LongTextsComeWhole) {
  const auto long_text =
      "\"" + std::string(100'000, 'x') + "\\n" + std::string(100'000, 'y') + "\"";
  EXPECT_EQ(again(long_text), long_text);
  const std::string digits(5'000, '7');
  EXPECT_EQ(again(digits), digits);
}

TEST(JsonWalkTest, DepthIsBounded) {
  const auto nested = [](std::size_t depth) {
    return std::string(depth, '[') + std::string(depth, ']');
  };
  EXPECT_EQ(again(nested(json_depth_max)), nested(json_depth_max));
  EXPECT_EQ(again(nested(json_depth_max + 1)).substr(0, 9), "not JSON:");
}

}  // namespace
}  // namespace millrace
