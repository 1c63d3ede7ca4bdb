#include "kernel/cli/bench_run.h"

#include <gtest/gtest.h>

namespace millrace::kernel::cli {
namespace {

using std::chrono::milliseconds;

TEST(PaceTest, MessagesAreDueOneAfterTheOther) {
  const MonoTime start(std::chrono::seconds(100));
  const Pace pace(start, 200);
  EXPECT_EQ(pace.due(0), start);
  EXPECT_EQ(pace.due(10), start + milliseconds(50));
  EXPECT_EQ(pace.due_by(start - milliseconds(1), 0), 0);
  EXPECT_EQ(pace.due_by(start, 0), 1);
  EXPECT_EQ(pace.due_by(start + milliseconds(49), 0), 10);
  EXPECT_EQ(pace.due_by(start + milliseconds(50), 0), 11);
  EXPECT_EQ(pace.due_by(start + milliseconds(50), 10), 1);
  EXPECT_EQ(pace.due_by(start + milliseconds(50), 11), 0);
}

TEST(PaceTest, WithoutARateNothingIsWaitedFor) {
  const Pace pace(MonoTime(std::chrono::seconds(1)), 0);
  EXPECT_FALSE(pace.paced());
  EXPECT_EQ(pace.due(1'000'000), pace.start());
}

TEST(HistogramTest, QuantilesAreOffByLessThanOnePercent) {
  Histogram histogram;
  for (std::int64_t value = 1; value <= 100'000; ++value) histogram.add(value);
  EXPECT_EQ(histogram.total(), 100'000u);
  EXPECT_EQ(histogram.max(), 100'000u);
  for (const double share : {0.01, 0.5, 0.9, 0.99, 0.999}) {
    EXPECT_NEAR(static_cast<double>(histogram.quantile(share)), share * 100'000, share * 1000);
  }
}

TEST(HistogramTest, ManyOfATimeAreAsManyTimes) {
  Histogram once;
  Histogram each;
  once.add(700, 5);
  once.add(90, 2);
  for (int at = 0; at < 5; ++at) each.add(700);
  for (int at = 0; at < 2; ++at) each.add(90);
  for (const double share : {0.1, 0.5, 0.99}) EXPECT_EQ(once.quantile(share), each.quantile(share));
  EXPECT_EQ(once.total(), each.total());
  EXPECT_EQ(Histogram().quantile(0.5), 0u);
}

TEST(BenchCountsTest, TimeRunsFromTheFirstToTheLast) {
  BenchCounts counts;
  EXPECT_EQ(counts.seconds(), 0);
  const MonoTime start(std::chrono::seconds(10));
  counts.first = start;
  counts.count(10, 100, start + milliseconds(500));
  counts.count(5, 100, start + milliseconds(1500));
  EXPECT_EQ(counts.messages, 15);
  EXPECT_EQ(counts.bytes, 1500);
  EXPECT_DOUBLE_EQ(counts.seconds(), 1.5);
}

}  // namespace
}  // namespace millrace::kernel::cli
