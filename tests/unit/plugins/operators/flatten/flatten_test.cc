#include "tests/unit/plugins/operators/shipped.h"

namespace millrace::testing {
namespace {

class FlattenTest : public ShippedOperator {
 protected:
  FlattenTest() : ShippedOperator("flatten") {}

  Values flattened(OptionValues options, const std::string& value) {
    auto driver = drive(std::move(options));
    return values_of(driver, of_value(value));
  }
};

TEST_F(FlattenTest, EachElementIsARecord) {
  EXPECT_EQ(flattened({}, R"([1.10,"a",{"b":[2]},[3,[4]],null])"),
            (Values{"1.10", "\"a\"", "{\"b\":[2]}", "[3,[4]]", "null"}));
  EXPECT_EQ(flattened({}, "[]"), Values{});
  EXPECT_EQ(flattened({{"field", "value.a.b"}}, R"({"a":{"b":[1,2]}})"), (Values{"1", "2"}));
}

TEST_F(FlattenTest, KeyTimeAndHeadersAreThoseOfTheRecord) {
  auto driver = drive({});
  ASSERT_TRUE(driver.feed(of_value("[1,2]", {{"h", "x"}})));
  const std::vector<OperatorOutput> expected{
      {.key = "k", .value = "1", .at = 1'000, .headers = {{"h", "x"}}},
      {.key = "k", .value = "2", .at = 1'000, .headers = {{"h", "x"}}}};
  EXPECT_EQ(driver.take_outputs(), expected);
}

TEST_F(FlattenTest, APartOfTheElementMayBecomeItsKey) {
  auto driver = drive({{"key", "value.id"}});
  ASSERT_TRUE(driver.feed(of_value(R"([{"id":"a"},{"id":7},{}])")));
  const auto outputs = driver.take_outputs();
  ASSERT_EQ(outputs.size(), 3U);
  EXPECT_EQ(outputs[0].key, "a");
  EXPECT_EQ(outputs[1].key, "7");
  EXPECT_EQ(outputs[2].key, std::nullopt);
}

TEST_F(FlattenTest, WhatIsNoArrayIsAnErrorOfThatRecord) {
  EXPECT_EQ(flattened({}, "{}"), Values{"error: value is no JSON array"});
  EXPECT_EQ(flattened({{"field", "value.a"}}, "{}"), Values{"error: there is no value.a"});
  EXPECT_EQ(flattened({}, "[1,").at(0).substr(0, 16), "error: not JSON:");
  EXPECT_EQ(flattened({{"key", "value.id"}}, "[1,{\"id\":2}]"), (Values{"1", "{\"id\":2}"}));
}

TEST_F(FlattenTest, ATombstoneGoesOn) {
  auto driver = drive({});
  EXPECT_EQ(values_of(driver, {.key = "k", .at = 1}), Values{"none"});
}

TEST_F(FlattenTest, RefusesOptionsThatMeanNothing) {
  EXPECT_EQ(refusal({{"field", "nothing"}}).substr(0, 16), "field: expected ");
  EXPECT_EQ(refusal({{"key", "header.a"}}),
            "key: expected value or value.PATH of the element, found header.a");
}

}  // namespace
}  // namespace millrace::testing
