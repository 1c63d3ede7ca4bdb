#include "kernel/partition/rate_limit.h"

#include <chrono>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace millrace::kernel {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr MonoTime start{seconds(1000)};

TEST(RateLimitTest, UnlimitedNothingWaits) {
  RateLimit limit;
  limit.charge(std::uint64_t{1} << 40, start);
  EXPECT_EQ(limit.wait(start), Duration::zero());
}

TEST(RateLimitTest, WhatHasMovedIsWaitedFor) {
  RateLimit limit;
  limit.set_rate(1000, start);
  EXPECT_EQ(limit.wait(start), Duration::zero());
  limit.charge(2000, start);
  EXPECT_EQ(limit.wait(start), seconds(2) - RateLimit::saved_max);
  EXPECT_EQ(limit.wait(start + seconds(1)), seconds(1) - RateLimit::saved_max);
  EXPECT_EQ(limit.wait(start + seconds(2)), Duration::zero());
}

TEST(RateLimitTest, IdleTimeIsSavedForAMomentAlone) {
  RateLimit limit;
  limit.set_rate(1000, start);
  limit.charge(1000, start + seconds(3600));
  EXPECT_EQ(limit.wait(start + seconds(3600)), seconds(1) - RateLimit::saved_max);
}

// A hundred pieces, each as soon as it may: a second for every 1000 bytes.
TEST(RateLimitTest, TheRateIsKeptOverManyPieces) {
  RateLimit limit;
  limit.set_rate(1000, start);
  auto now = start;
  for (int piece = 0; piece < 100; ++piece) {
    now += limit.wait(now);
    limit.charge(250, now);
  }
  now += limit.wait(now);
  EXPECT_EQ(now - start, seconds(25) - RateLimit::saved_max);
}

TEST(RateLimitTest, WhatIsOwedIsPaidAtTheNewRate) {
  RateLimit limit;
  limit.set_rate(1000, start);
  limit.charge(10'100, start);
  ASSERT_EQ(limit.wait(start), seconds(10));
  limit.set_rate(10'000, start);
  EXPECT_EQ(limit.wait(start), seconds(1));
  limit.set_rate(RateLimit::unlimited, start);
  EXPECT_EQ(limit.wait(start), Duration::zero());
  limit.set_rate(1000, start);
  EXPECT_EQ(limit.wait(start), Duration::zero()) << "what was owed is forgotten";
}

TEST(RateLimitTest, ARateOfNothingIsAByteASecond) {
  RateLimit limit;
  limit.set_rate(0, start);
  EXPECT_EQ(limit.rate(), 1);
  limit.charge(std::uint64_t{1} << 62, start);
  EXPECT_GT(limit.wait(start), seconds(3600));
  EXPECT_LE(limit.wait(start), seconds(86'400));
}

TEST(RateLimitTest, AllShardsShareIt) {
  RateLimit limit;
  Counter counter;
  limit.count_with(counter);
  limit.set_rate(1000, start);
  std::vector<std::jthread> threads;
  for (int n = 0; n < 4; ++n) {
    threads.emplace_back([&limit] {
      for (int piece = 0; piece < 1000; ++piece) limit.charge(10, start);
    });
  }
  threads.clear();
  EXPECT_EQ(counter.value(), 40'000U);
  EXPECT_EQ(limit.wait(start), seconds(40) - RateLimit::saved_max);
}

}  // namespace
}  // namespace millrace::kernel
