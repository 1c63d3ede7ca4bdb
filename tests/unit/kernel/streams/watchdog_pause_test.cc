// The watchdog of a process that was stopped for a while, in a time that the test makes.
#include <gtest/gtest.h>

#include <map>
#include <utility>

#include "kernel/streams/watchdog.h"

namespace millrace::kernel {
namespace {

using std::chrono::milliseconds;

/// One shard whose timers fire when the test lets time pass; all else is not asked for.
class StoppedTime final : public Environment, public Clock, public Shard, public BlockingPool {
 public:
  // Environment
  Clock& clock() noexcept override { return *this; }
  Random& random() noexcept override { std::abort(); }
  Network& network() noexcept override { std::abort(); }
  FileSystem& files() noexcept override { std::abort(); }
  BlockingPool& workers() noexcept override { return *this; }
  std::span<Shard* const> shards() noexcept override { return {}; }
  Shard& control() noexcept override { return *this; }
  // Clock, Shard
  MonoTime now() const noexcept override { return now_; }
  Timestamp wall() const noexcept override { return {}; }
  unsigned index() const noexcept override { return 0; }
  bool is_current() const noexcept override { return true; }
  void post(Job /*job*/) override { std::abort(); }
  void resume_soon(std::coroutine_handle<> /*waiting*/) override { std::abort(); }
  TimerId schedule(MonoTime when, Job job) override {
    timers_.emplace(when, std::move(job));
    return {};
  }
  void unschedule(TimerId /*timer*/) noexcept override {}
  void report(std::string_view /*task*/, const Error& /*error*/) noexcept override {}
  // BlockingPool
  void submit(Job /*job*/) override { std::abort(); }

  /// Timers fire when they are due.
  void run_for(Duration time) {
    const auto end = now_ + time;
    while (!timers_.empty() && timers_.begin()->first <= end) {
      now_ = std::max(now_, timers_.begin()->first);
      fire();
    }
    now_ = end;
  }
  /// Nothing runs; then those fire that would have been due.
  void stand_still_for(Duration time) {
    now_ += time;
    while (!timers_.empty() && timers_.begin()->first <= now_) fire();
  }

 private:
  void fire() {
    auto job = std::move(timers_.begin()->second);
    timers_.erase(timers_.begin());
    job();
  }

  MonoTime now_{};
  std::multimap<MonoTime, Job> timers_;
};

class WatchdogPauseTest : public ::testing::Test {
 protected:
  WatchdogPauseTest() { watch_->start(); }

  StoppedTime time_;
  bool given_up_ = false;
  const Duration limit_ = milliseconds(1000);
  std::shared_ptr<Watch> watch_ =
      std::make_shared<Watch>(time_, time_, limit_, [this] { given_up_ = true; });
};

TEST_F(WatchdogPauseTest, ATimeInWhichNothingRanDoesNotCount) {
  ASSERT_TRUE(watch_->begin());
  time_.run_for(milliseconds(350));
  time_.stand_still_for(milliseconds(60'000));
  time_.run_for(milliseconds(500));
  EXPECT_FALSE(given_up_);
  time_.run_for(milliseconds(350));
  EXPECT_TRUE(given_up_) << "1.2 s of its own";
}

TEST_F(WatchdogPauseTest, WhatBeginsAfterThePauseHasAllItsTime) {
  time_.run_for(milliseconds(250));
  time_.stand_still_for(milliseconds(5'000));
  ASSERT_TRUE(watch_->begin());
  time_.run_for(milliseconds(900));
  EXPECT_FALSE(given_up_);
  time_.run_for(milliseconds(300));
  EXPECT_TRUE(given_up_);
}

TEST_F(WatchdogPauseTest, SlowTicksAreNoPause) {
  ASSERT_TRUE(watch_->begin());
  for (int tick = 0; tick < 8; ++tick) time_.stand_still_for(milliseconds(150));
  EXPECT_TRUE(given_up_);
}

}  // namespace
}  // namespace millrace::kernel
