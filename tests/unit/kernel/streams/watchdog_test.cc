// Work that is slow, or never comes back, on real threads.
#include "kernel/streams/watchdog.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>

#include <millrace/testing/fake_host.h>

#include "kernel/env/block_on.h"
#include "kernel/env/real_environment.h"

namespace millrace::kernel {
namespace {

constexpr Duration soon = std::chrono::milliseconds(300);
constexpr Duration late = std::chrono::minutes(1);

class WatchdogTest : public ::testing::Test {
 protected:
  WatchdogTest()
      : environment_(
            RealEnvironment::start({.shards = 1, .workers = 1}, Log(log_, "test"), metrics_)
                .value()) {}

  template <class F>
  auto run(F work, const Duration& limit = late) {
    auto body = [&] { return run_watched(*environment_, limit, std::move(work)); };
    return block_on(*environment_->shards()[0], body);
  }

  /// A job that keeps its worker until open() is called.
  auto closed_door() {
    return [opened = door_.get_future().share()]() -> Result<int> {
      opened.wait();
      return 1;
    };
  }
  void open() { door_.set_value(); }

  testing::KeptLog log_;
  testing::KeptMetrics metrics_;
  std::promise<void> door_;
  std::unique_ptr<RealEnvironment> environment_;
};

TEST_F(WatchdogTest, WhatComesBackIsBroughtHome) {
  EXPECT_EQ(run([]() -> Result<int> { return 42; }).value(), 42);
  EXPECT_EQ(run([]() -> Result<int> { return Error{Errc::io, "no"}; }).error().code, Errc::io);
}

TEST_F(WatchdogTest, WhatDoesNotComeBackIsGivenUpAndAnotherWorkerTakesItsPlace) {
  EXPECT_EQ(run(closed_door(), soon).error().code, Errc::timed_out);
  // The one worker that there was is lost: this needs another.
  EXPECT_EQ(run([]() -> Result<int> { return 2; }).value(), 2);
  EXPECT_EQ(environment_->threads_lent(), 1);
  open();
  // It comes back late: nobody is told, and the thread too many ends.
  while (environment_->threads_lent() > 0) std::this_thread::yield();
  EXPECT_EQ(run([]() -> Result<int> { return 3; }).value(), 3);
}

TEST_F(WatchdogTest, OthersDoNotWaitForWhatIsSlow) {
  auto body = [&]() -> Task<int> {
    Shard& here = co_await this_shard();
    auto slow = start(here, run_watched(*environment_, late, closed_door()));
    // It waits behind the slow one until that is missed.
    auto quick = run_watched(*environment_, late, [this]() -> Result<int> {
      open();
      return 10;
    });
    MR_CO_TRY(const auto first, co_await std::move(quick));
    MR_CO_TRY(const auto second, co_await std::move(slow));
    co_return first + second;
  };
  EXPECT_EQ(block_on(*environment_->shards()[0], body).value(), 11);
}

TEST_F(WatchdogTest, AStopDoesNotWaitForWhatIsLost) {
  auto work = closed_door();
  EXPECT_EQ(run(work, soon).error().code, Errc::timed_out);
  environment_->stop();
  EXPECT_EQ(environment_->threads_lent(), 1);
  open();
  while (environment_->threads_lent() > 0) std::this_thread::yield();
}

}  // namespace
}  // namespace millrace::kernel
