#include "tests/unit/plugins/operators/shipped.h"

namespace millrace::testing {
namespace {

using namespace std::chrono_literals;

class ThrottleTest : public ShippedOperator {
 protected:
  ThrottleTest() : ShippedOperator("throttle") {}
};

TEST_F(ThrottleTest, EveryRecordTakesItsShareOfASecond) {
  auto driver = drive({{"records_per_second", 20.0}});
  for (int at = 0; at < 20; ++at) ASSERT_TRUE(driver.feed(of_value("v")));
  EXPECT_EQ(driver.take_outputs().size(), 20U);
  EXPECT_EQ(driver.take_pause(), 1s);
}

TEST_F(ThrottleTest, BytesTakeTheirShareToo) {
  auto driver = drive({{"bytes_per_second", std::int64_t{1'000}}});
  // A key of 1, a header of 9.
  ASSERT_TRUE(driver.feed(of_value(std::string(490, 'x'), {{"head", "value"}})));
  EXPECT_EQ(driver.take_pause(), 500ms);
}

TEST_F(ThrottleTest, TheSlowerOfTwoBoundsCounts) {
  auto driver = drive({{"records_per_second", 10.0}, {"bytes_per_second", std::int64_t{1'000}}});
  ASSERT_TRUE(driver.feed(of_value("v")));
  EXPECT_EQ(driver.take_pause(), 100ms);
  ASSERT_TRUE(driver.feed(of_value(std::string(999, 'x'))));
  EXPECT_EQ(driver.take_pause(), 1s);
}

TEST_F(ThrottleTest, WhatComesOutIsWhatCameIn) {
  auto driver = drive({{"records_per_second", 0.5}});
  ASSERT_TRUE(driver.feed(of_value("v", {{"h", std::nullopt}})));
  const std::vector<OperatorOutput> expected{
      {.key = "k", .value = "v", .at = 1'000, .headers = {{"h", std::nullopt}}}};
  EXPECT_EQ(driver.take_outputs(), expected);
  EXPECT_EQ(driver.take_pause(), 2s);
  EXPECT_TRUE(driver.state().empty());
}

TEST_F(ThrottleTest, RefusesOptionsThatMeanNothing) {
  EXPECT_EQ(refusal({}), "neither records_per_second nor bytes_per_second is set");
  EXPECT_EQ(refusal({{"records_per_second", 0.0}}),
            "records_per_second: expected 0.001 or more, found 0.000000");
}

}  // namespace
}  // namespace millrace::testing
