#include "kernel/env/system_sources.h"

#include <set>

#include <gtest/gtest.h>

namespace millrace::kernel {
namespace {

TEST(SystemSourcesTest, RandomBytesDiffer) {
  SystemRandom random;
  std::set<std::uint64_t> seen;
  for (int i = 0; i < 100; ++i) seen.insert(random.next());
  EXPECT_EQ(seen.size(), 100);
  random.fill({});
}

TEST(SystemSourcesTest, TheClockTellsTodayAndGoesForward) {
  const SystemClock clock;
  EXPECT_GT(clock.wall().ms, 1'700'000'000'000);
  const auto first = clock.now();
  EXPECT_GE(clock.now(), first);
}

}  // namespace
}  // namespace millrace::kernel
