#include "kernel/cli/datetime.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace millrace::kernel::cli {
namespace {

using std::chrono::milliseconds;

TEST(DatetimeTest, DurationsAreSumsOfUnits) {
  EXPECT_EQ(parse_duration("500ms"), milliseconds(500));
  EXPECT_EQ(parse_duration("90s"), milliseconds(90'000));
  EXPECT_EQ(parse_duration("15m"), milliseconds(900'000));
  EXPECT_EQ(parse_duration("1h30m"), milliseconds(5'400'000));
  EXPECT_EQ(parse_duration("7d"), milliseconds(604'800'000));
  EXPECT_EQ(parse_duration("2w"), milliseconds(1'209'600'000));
  for (const auto* wrong : {"", "2", "h", "2 h", "-2h", "2y", "99999999999999999w", "2h3"}) {
    EXPECT_EQ(parse_duration(wrong), std::nullopt) << wrong;
  }
}

TEST(DatetimeTest, AMomentIsATimeOrHowLongAgoItWas) {
  const Timestamp now{1'000'000'000};
  EXPECT_EQ(parse_moment("2h", now)->ms, now.ms - 7'200'000);
  EXPECT_EQ(parse_moment("100w", now)->ms, 0);
  EXPECT_EQ(parse_moment("@5", now)->ms, 5);
  EXPECT_EQ(parse_moment("1970-01-02", now)->ms, 86'400'000);
  const auto wrong = parse_moment("yesterday", now);
  ASSERT_FALSE(wrong);
  EXPECT_THAT(wrong.error().detail, testing::HasSubstr("'yesterday' is no point in time"));
  EXPECT_THAT(wrong.error().detail, testing::HasSubstr("or how long ago, such as 90s"));
}

TEST(DatetimeTest, WhatIsPrintedIsReadBack) {
  EXPECT_EQ(datetime_text(Timestamp{1'764'410'400'250}), "2025-11-29T10:00:00.250Z");
  EXPECT_EQ(parse_datetime("2025-11-29T10:00:00.250Z")->ms, 1'764'410'400'250);
  EXPECT_EQ(datetime_text({}), "-");
}

}  // namespace
}  // namespace millrace::kernel::cli
