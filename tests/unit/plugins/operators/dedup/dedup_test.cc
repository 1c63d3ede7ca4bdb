#include "tests/unit/plugins/operators/shipped.h"

namespace millrace::testing {
namespace {

class DedupTest : public ShippedOperator {
 protected:
  DedupTest() : ShippedOperator("dedup") {}

  /// Whether it went on.
  static bool passes(OperatorDriver& driver, const OperatorInput& record) {
    const auto fed = driver.feed(record);
    EXPECT_TRUE(fed) << fed.error().detail;
    return driver.take_outputs().size() == 1;
  }
  static OperatorInput at(std::int64_t ms, std::string key) {
    return {.key = std::move(key), .value = "v", .at = ms};
  }
  OptionValue second_ = std::int64_t{1'000};
};

TEST_F(DedupTest, TheSameKeyIsDroppedForATime) {
  auto driver = drive({{"within_ms", second_}});
  EXPECT_TRUE(passes(driver, at(10'000, "a")));
  EXPECT_FALSE(passes(driver, at(10'000, "a")));
  EXPECT_TRUE(passes(driver, at(10'500, "b")));
  EXPECT_FALSE(passes(driver, at(10'999, "a")));
  EXPECT_TRUE(passes(driver, at(11'000, "a")));
  EXPECT_FALSE(passes(driver, at(11'400, "b")));
  EXPECT_FALSE(passes(driver, at(11'999, "a")));
}

TEST_F(DedupTest, WhatIsOverIsForgotten) {
  auto driver = drive({{"within_ms", second_}});
  for (int n = 0; n < 100; ++n) passes(driver, at(10'000, std::to_string(n)));
  EXPECT_EQ(driver.state().size(), 100U);
  ASSERT_TRUE(driver.advance_to(11'000));
  EXPECT_TRUE(driver.state().empty());
  EXPECT_TRUE(driver.timers().empty());
}

TEST_F(DedupTest, RemembersOverARestart) {
  auto driver = drive({});
  EXPECT_TRUE(passes(driver, at(10'000, "a")));
  driver.restart();
  EXPECT_FALSE(passes(driver, at(10'001, "a")));
}

TEST_F(DedupTest, ALateRecordIsMeasuredByTheStreamsTime) {
  auto driver = drive({{"within_ms", second_}});
  EXPECT_TRUE(passes(driver, at(10'000, "a")));
  EXPECT_TRUE(passes(driver, at(5'000, "late")));
  EXPECT_FALSE(passes(driver, at(10'900, "late")));
}

TEST_F(DedupTest, GoesByAHeaderOrAField) {
  auto by_header = drive({{"field", "header.id"}});
  EXPECT_TRUE(passes(by_header, of_value("1", {{"id", "x"}})));
  EXPECT_FALSE(passes(by_header, of_value("2", {{"id", "x"}})));
  EXPECT_TRUE(passes(by_header, of_value("3")));
  EXPECT_TRUE(passes(by_header, of_value("4")));
  auto by_field = drive({{"field", "value.id"}});
  EXPECT_TRUE(passes(by_field, of_value(R"({"id":1})")));
  EXPECT_FALSE(passes(by_field, of_value(R"({"id":1,"x":2})")));
  EXPECT_FALSE(by_field.feed(of_value("no")));
}

TEST_F(DedupTest, RefusesOptionsThatMeanNothing) {
  EXPECT_EQ(refusal({{"field", "nothing"}}).substr(0, 16), "field: expected ");
}

}  // namespace
}  // namespace millrace::testing
