#include "kernel/replication/throttle.h"

#include <chrono>

#include <gtest/gtest.h>

namespace millrace::kernel {
namespace {

using std::chrono::milliseconds;

constexpr std::int64_t mib = 1 << 20;
constexpr Duration step = milliseconds(200);

TEST(ThrottledReplicasTest, AStarIsEverybody) {
  const ThrottledReplicas all("*");
  EXPECT_TRUE(all.has(0, 1));
  EXPECT_TRUE(all.has(99, 7));
}

TEST(ThrottledReplicasTest, AListIsThoseInIt) {
  const ThrottledReplicas some("0:101, 1:102,12:101");
  EXPECT_TRUE(some.has(0, 101));
  EXPECT_TRUE(some.has(1, 102));
  EXPECT_TRUE(some.has(12, 101));
  EXPECT_FALSE(some.has(0, 102));
  EXPECT_FALSE(some.has(2, 101));
}

TEST(ThrottledReplicasTest, NothingIsNobody) {
  EXPECT_FALSE(ThrottledReplicas("").has(0, 1));
  EXPECT_FALSE(ThrottledReplicas("0:,x:1,5").has(0, 1));
}

// All of what may move in a step does.
void make_full_use(YieldingRate& rate, Duration waited) {
  rate.observe(waited, static_cast<std::uint64_t>(rate.rate() / 5), step);
}

TEST(YieldingRateTest, GrowsToTheMostWhileNobodyWaits) {
  YieldingRate rate(100 * mib);
  EXPECT_EQ(rate.rate(), 8 * mib);
  int steps = 0;
  for (; rate.rate() < 100 * mib && steps < 100; ++steps) make_full_use(rate, {});
  EXPECT_EQ(rate.rate(), 100 * mib);
  EXPECT_LE(steps, 15) << "in three seconds";
  make_full_use(rate, {});
  EXPECT_EQ(rate.rate(), 100 * mib);
}

TEST(YieldingRateTest, YieldsAtOnceWhenRequestsWaitAndNeverStandsStill) {
  YieldingRate rate(100 * mib);
  for (int n = 0; n < 20; ++n) make_full_use(rate, {});
  make_full_use(rate, milliseconds(5));
  EXPECT_EQ(rate.rate(), 50 * mib);
  make_full_use(rate, milliseconds(50));
  EXPECT_EQ(rate.rate(), 25 * mib);
  for (int n = 0; n < 100; ++n) make_full_use(rate, milliseconds(50));
  EXPECT_EQ(rate.rate(), YieldingRate::rate_min);
  make_full_use(rate, milliseconds(4));
  EXPECT_GT(rate.rate(), YieldingRate::rate_min) << "who waits for a moment is not slowed down";
}

TEST(YieldingRateTest, WhatNobodyMakesUseOfDoesNotGrow) {
  YieldingRate rate(100 * mib);
  for (int n = 0; n < 100; ++n) rate.observe({}, 1000, step);
  EXPECT_EQ(rate.rate(), 8 * mib);
}

TEST(YieldingRateTest, AnotherBoundCountsAtOnce) {
  YieldingRate rate(RateLimit::unlimited);
  for (int n = 0; n < 50; ++n) make_full_use(rate, {});
  EXPECT_GT(rate.rate(), 1000 * mib);
  rate.set_max(100'000);
  EXPECT_EQ(rate.rate(), 100'000);
  make_full_use(rate, milliseconds(50));
  EXPECT_EQ(rate.rate(), 100'000) << "there is no less than that";
  rate.set_max(10 * mib);
  EXPECT_EQ(rate.rate(), YieldingRate::rate_min);
  EXPECT_EQ(YieldingRate(100).rate(), 100);
}

}  // namespace
}  // namespace millrace::kernel
