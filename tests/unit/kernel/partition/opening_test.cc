#include "kernel/partition/opening.h"

#include <deque>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/kernel/partition/partition_fixture.h"

namespace millrace::kernel::testing {
namespace {

using ::testing::ElementsAre;

constexpr std::size_t mib = 1UL << 20;

// Counts the jobs that were begun; each ends when it is told to, and only then runs.
class HandPool final : public BlockingPool {
 public:
  void submit(Job job) override { waiting.push_back(std::move(job)); }
  void run_front() {
    auto job = std::move(waiting.front());
    waiting.pop_front();
    job();
  }
  std::deque<Job> waiting;
};

TEST(OneAtATimeTest, AJobBeginsWhenTheOneBeforeItHasEnded) {
  HandPool pool;
  OneAtATime line(pool);
  std::vector<std::string> ran;
  for (const auto* name : {"a", "b", "c"}) line.submit([&ran, name] { ran.emplace_back(name); });
  EXPECT_EQ(pool.waiting.size(), 1u);
  pool.run_front();
  EXPECT_THAT(ran, ElementsAre("a"));
  EXPECT_EQ(pool.waiting.size(), 1u);
  pool.run_front();
  pool.run_front();
  EXPECT_THAT(ran, ElementsAre("a", "b", "c"));
  EXPECT_TRUE(pool.waiting.empty());
  line.submit([&ran] { ran.emplace_back("d"); });
  pool.run_front();
  EXPECT_EQ(ran.size(), 4u);
}

TEST(OneAtATimeTest, JobsMayOutliveIt) {
  HandPool pool;
  int ran = 0;
  {
    OneAtATime line(pool);
    line.submit([&ran] { ++ran; });
    line.submit([&ran] { ++ran; });
  }
  while (!pool.waiting.empty()) pool.run_front();
  EXPECT_EQ(ran, 2);
}

// Work that needs `needed` bytes, and the bounds that it was run with.
class OpeningTest : public ::testing::Test {
 protected:
  Result<int> run(std::size_t limit, std::size_t needed) {
    auto work = [this, needed](std::size_t opened_max) -> Result<int> {
      bounds.push_back(opened_max);
      if (needed > opened_max) return Error{Errc::too_large, "more"};
      return 1;
    };
    const auto opened =
        Arriving<int>::start(environment.shard(), opening.run(limit, std::move(work)));
    environment.run();
    return opened.result();
  }
  TestEnvironment environment;
  OneAtATime one_at_a_time{environment.workers()};
  Opening opening{environment.workers(), one_at_a_time};
  std::vector<std::size_t> bounds;
};

TEST_F(OpeningTest, WhatOpensToLittleIsOpenedOnce) {
  EXPECT_TRUE(run(128 * mib, mib));
  EXPECT_THAT(bounds, ElementsAre(opened_beside_bytes_max));
}

TEST_F(OpeningTest, WhatOpensToMuchBeginsAnewUpToItsLimit) {
  EXPECT_TRUE(run(128 * mib, 100 * mib));
  EXPECT_THAT(bounds, ElementsAre(opened_beside_bytes_max, 128 * mib));
}

TEST_F(OpeningTest, WhatOpensToMoreThanItsLimitIsNotTriedAgain) {
  EXPECT_EQ(run(128 * mib, 200 * mib).error().code, Errc::too_large);
  EXPECT_THAT(bounds, ElementsAre(opened_beside_bytes_max, 128 * mib));
  bounds.clear();
  EXPECT_EQ(run(mib, 2 * mib).error().code, Errc::too_large);
  EXPECT_THAT(bounds, ElementsAre(mib));
}

}  // namespace
}  // namespace millrace::kernel::testing
