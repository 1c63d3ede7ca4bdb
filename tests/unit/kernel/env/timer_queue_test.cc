#include "kernel/env/timer_queue.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace millrace::kernel {
namespace {

MonoTime at(int ms) { return MonoTime{} + std::chrono::milliseconds(ms); }

TEST(TimerQueueTest, RunsByTimeThenByOrderOfScheduling) {
  TimerQueue timers;
  std::string ran;
  timers.schedule(at(2), [&] { ran += 'c'; });
  timers.schedule(at(1), [&] { ran += 'a'; });
  timers.schedule(at(1), [&] { ran += 'b'; });
  timers.schedule(at(3), [&] { ran += 'd'; });

  EXPECT_EQ(timers.next(), at(1));
  EXPECT_TRUE(timers.run_due(at(2)));
  EXPECT_EQ(ran, "abc");
  EXPECT_EQ(timers.next(), at(3));
  EXPECT_FALSE(timers.run_due(at(2)));
}

TEST(TimerQueueTest, ATimerRemovedByAnotherThatIsDueDoesNotRun) {
  TimerQueue timers;
  bool ran = false;
  TimerId second = TimerId::none;
  timers.schedule(at(1), [&] { timers.unschedule(second); });
  second = timers.schedule(at(1), [&] { ran = true; });
  timers.run_due(at(1));
  EXPECT_FALSE(ran);
  EXPECT_EQ(timers.size(), 0);
}

TEST(TimerQueueTest, ATimerScheduledByAnotherRunsInTheNextCall) {
  TimerQueue timers;
  int ran = 0;
  timers.schedule(at(1), [&] { timers.schedule(at(0), [&] { ++ran; }); });
  timers.run_due(at(1));
  EXPECT_EQ(ran, 0);
  timers.run_due(at(1));
  EXPECT_EQ(ran, 1);
}

TEST(TimerQueueTest, RemovingReleasesWhatTheJobHolds) {
  TimerQueue timers;
  auto held = std::make_shared<int>();
  const auto timer = timers.schedule(at(1), [held] {});
  EXPECT_EQ(held.use_count(), 2);
  timers.unschedule(timer);
  EXPECT_EQ(held.use_count(), 1);
  timers.unschedule(timer);
  timers.unschedule(TimerId::none);
  EXPECT_EQ(timers.next(), std::nullopt);
}

// Deadlines that never come are the usual case: each request sets one and removes it.
TEST(TimerQueueTest, KeepsWhatIsLeftAmongManyRemovals) {
  TimerQueue timers;
  std::vector<int> ran;
  for (int i = 0; i < 10'000; ++i) {
    const auto timer = timers.schedule(at(10'000 - i), [&ran, i] { ran.push_back(i); });
    if (i % 1000 != 0) timers.unschedule(timer);
  }
  EXPECT_EQ(timers.size(), 10);
  EXPECT_EQ(timers.next(), at(1000));
  timers.run_due(at(10'000));
  EXPECT_THAT(ran, testing::ElementsAre(9000, 8000, 7000, 6000, 5000, 4000, 3000, 2000, 1000, 0));
}

}  // namespace
}  // namespace millrace::kernel
