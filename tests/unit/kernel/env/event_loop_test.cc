#include "kernel/env/event_loop.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <future>
#include <latch>
#include <memory>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "environment_fixture.h"
#include "kernel/env/descriptor.h"

namespace millrace::kernel {
namespace {

using EventLoopTest = EnvironmentTest;
using testing::ElementsAre;
using testing::HasSubstr;

TEST_F(EventLoopTest, RunsPostedJobsInOrderOnItsThread) {
  constexpr int jobs = 10'000;
  std::vector<int> ran;
  std::promise<void> done;
  for (int i = 0; i < jobs; ++i) {
    shard().post([&, i] {
      if (shard().is_current() && !shard(1).is_current()) ran.push_back(i);
      if (i == jobs - 1) done.set_value();
    });
  }
  done.get_future().wait();
  ASSERT_EQ(ran.size(), jobs);
  EXPECT_TRUE(std::ranges::is_sorted(ran));
  EXPECT_FALSE(shard().is_current());
}

TEST_F(EventLoopTest, ManyPostsCostOneWakeUp) {
  auto& loop = dynamic_cast<EventLoop&>(shard());
  std::latch busy(1);
  std::latch release(1);
  std::promise<void> done;
  shard().post([&] {
    busy.count_down();
    release.wait();
  });
  busy.wait();
  const auto before = loop.wake_ups();
  for (int i = 0; i < 1000; ++i) shard().post([] {});
  shard().post([&] { done.set_value(); });
  release.count_down();
  done.get_future().wait();
  EXPECT_LE(loop.wake_ups() - before, 1);
}

TEST_F(EventLoopTest, FiresTimersInOrderAndNotTooEarly) {
  std::vector<int> fired;
  const auto begin = environment().clock().now();
  const auto result = run(shard(), [&]() -> Task<> {
    return [](std::vector<int>& order) -> Task<> {
      Shard& here = co_await this_shard();
      const auto now = here.now();
      for (const int ms : {30, 10, 20}) {
        here.schedule(now + std::chrono::milliseconds(ms), [&order, ms] { order.push_back(ms); });
      }
      co_return co_await sleep(std::chrono::milliseconds(40));
    }(fired);
  });
  ASSERT_TRUE(result);
  EXPECT_THAT(fired, ElementsAre(10, 20, 30));
  EXPECT_GE(environment().clock().now() - begin, std::chrono::milliseconds(40));
}

// The system's timer is set for one of them at a time, and stays set when that one is gone.
TEST_F(EventLoopTest, TimersAreInTimeWhateverTheSystemsTimerWasSetFor) {
  using std::chrono::milliseconds;
  const auto fires = [&](Duration when) {
    auto fired = std::make_shared<std::promise<void>>();
    shard().post([this, fired, when] {
      shard().schedule(shard().now() + when, [fired] { fired->set_value(); });
    });
    return fired->get_future().wait_for(patience) == std::future_status::ready;
  };
  std::promise<TimerId> far;
  shard().post(
      [&] { far.set_value(shard().schedule(shard().now() + std::chrono::hours(1), [] {})); });
  const auto last = far.get_future().get();
  EXPECT_TRUE(fires(milliseconds(5)));  // earlier than what it waits for
  std::promise<void> gone;
  shard().post([&] {
    shard().unschedule(last);
    const auto next = shard().schedule(shard().now() + milliseconds(5), [] {});
    shard().post([this, &gone, next] {
      shard().unschedule(next);
      gone.set_value();
    });
  });
  gone.get_future().wait();
  EXPECT_TRUE(fires(milliseconds(20)));  // later
  EXPECT_TRUE(fires(Duration::zero()));
}

Task<int> after(Duration duration) {
  auto sleeping = sleep(duration);
  MR_CO_CHECK(co_await std::move(sleeping));
  co_return 7;
}

TEST_F(EventLoopTest, ADeadlineEndsAWait) {
  const auto late = block_on(shard(), [] {
    return with_deadline(after(std::chrono::hours(1)), std::chrono::milliseconds(5));
  });
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, Errc::timed_out);
  const auto in_time =
      block_on(shard(), [] { return with_deadline(after(Duration::zero()), patience); });
  EXPECT_EQ(in_time.value_or(0), 7);
}

TEST_F(EventLoopTest, RunsATaskOnAnotherShardAndBringsItsResultBack) {
  auto where = [](Shard& there) -> Task<unsigned> {
    auto ask = []() -> Task<unsigned> {
      Shard& here = co_await this_shard();
      co_return here.is_current() ? here.index() : 99;
    };
    MR_CO_TRY(const auto index, co_await run_on(there, ask));
    Shard& home = co_await this_shard();
    co_return home.is_current() && home.index() == 0 ? index : 98;
  };
  EXPECT_EQ(run(shard(0), [&] { return where(shard(1)); }).value_or(97), 1);
  EXPECT_EQ(run(shard(0), [&] { return where(environment().control()); }).value_or(97), 2);
}

TEST_F(EventLoopTest, BlockingWorkRunsOnAWorkerAndItsErrorsComeBack) {
  auto work = [](BlockingPool& pool) -> Task<std::string> {
    auto failing = []() -> Result<int> { return Error{Errc::io, "the disk"}; };
    const auto failed = co_await on_worker(pool, failing);
    auto naming = []() -> Result<std::string> {
      char name[16];
      pthread_getname_np(pthread_self(), name, sizeof name);
      return std::string(name);
    };
    MR_CO_TRY(auto name, co_await on_worker(pool, naming));
    co_return name + " " + failed.error().detail;
  };
  const auto result = run(shard(), [&] { return work(environment().workers()); });
  EXPECT_THAT(result.value_or(""), testing::MatchesRegex("mr-worker-[01] the disk"));
}

TEST_F(EventLoopTest, ATaskThatFailsUnawaitedIsReported) {
  std::promise<void> done;
  shard().post([&] {
    auto failing = []() -> Task<> { co_return Error{Errc::io, "no such luck"}; };
    auto leaving = []() -> Task<> { co_return Error{Errc::closed, "peer closed"}; };
    spawn(shard(), failing(), "the test's task");
    spawn(shard(), leaving(), "another");
    done.set_value();
  });
  done.get_future().wait();
  EXPECT_EQ(environment().tasks_failed(), 1);
  EXPECT_THAT(log_.lines(), ElementsAre(testing::AllOf(HasSubstr("task=the test's task"),
                                                       HasSubstr("no such luck"))));
}

// A busy coroutine gives way: the loop serves timers and sockets between its turns.
TEST_F(EventLoopTest, AYieldingLoopStarvesNobody) {
  bool rung = false;
  auto spin = [](bool& until) -> Task<> {
    Shard& here = co_await this_shard();
    here.schedule(here.now() + std::chrono::milliseconds(5), [&until] { until = true; });
    while (!until) {
      auto [resolver, pending] = make_pending<>();
      here.post([turn = std::move(resolver)]() mutable { turn.resolve(); });
      MR_CO_CHECK(co_await pending);
    }
    co_return {};
  };
  EXPECT_TRUE(run(shard(), [&] { return spin(rung); }));
}

struct SlowJobs {
  int run = 0;
  bool enough = false;

  static void next(Shard& here, std::shared_ptr<SlowJobs> jobs) {
    if (jobs->enough || jobs->run == 100) return;
    ++jobs->run;
    const auto end = here.now() + std::chrono::milliseconds(2);
    while (here.now() < end) {
    }
    here.post([&here, jobs] { next(here, jobs); });
  }
};

TEST_F(EventLoopTest, SlowJobsKeepNoSocketWaiting) {
  auto wait = []() -> Task<int> {
    Shard& here = co_await this_shard();
    Descriptor ready(dynamic_cast<EventLoop&>(here), ::eventfd(1, EFD_NONBLOCK | EFD_CLOEXEC));
    const auto jobs = std::make_shared<SlowJobs>();
    SlowJobs::next(here, jobs);
    MR_CO_CHECK(co_await ready.readable());
    jobs->enough = true;
    co_return jobs->run;
  };
  const auto run_before = run(shard(), wait);
  ASSERT_TRUE(run_before);
  EXPECT_LE(*run_before, 3);
}

// As a process has one that is just being started, until it is another program.
TEST_F(EventLoopTest, WhatIsClosedIsQuietAlthoughACopyOfItIsOpen) {
  class Counting final : public LoopWatch {
   public:
    void on_events(std::uint32_t) noexcept override { ++events; }
    void cancel_waits() noexcept override {}
    int events = 0;
  };
  const auto events_after_close = run(shard(), []() -> Task<int> {
    auto& loop = dynamic_cast<EventLoop&>(co_await this_shard());
    Counting watch;
    const int descriptor = ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    MR_CO_CHECK(loop.watch(descriptor, EPOLLIN, watch));
    const int copy = ::dup(descriptor);
    loop.forget(descriptor, watch);
    ::close(descriptor);
    ::eventfd_write(copy, 1);
    MR_CO_CHECK(co_await sleep(std::chrono::milliseconds(1)));
    ::close(copy);
    co_return watch.events;
  });
  EXPECT_EQ(events_after_close, 0);
}

// ---- stopping ----

TEST_F(EventLoopTest, StopRunsWhatWasSubmittedAndPosted) {
  std::atomic<int> ran = 0;
  for (int i = 0; i < 100; ++i) {
    environment().workers().submit([&] {
      shard(0).post([&] { shard(1).post([&] { environment().control().post([&] { ++ran; }); }); });
    });
  }
  environment().stop();
  EXPECT_EQ(ran, 100);
}

TEST_F(EventLoopTest, StopCancelsWhatStillWaits) {
  std::vector<Errc> ends;
  std::promise<void> waiting;
  shard().post([&] {
    auto wait = [](std::vector<Errc>& codes) -> Task<> {
      const auto slept = co_await sleep(std::chrono::hours(1));
      codes.push_back(slept.error().code);
      co_return {};
    };
    spawn(shard(), wait(ends), "sleeper");
    waiting.set_value();
  });
  waiting.get_future().wait();
  environment().stop();
  EXPECT_THAT(ends, ElementsAre(Errc::cancelled));
  environment().stop();
}

// A coroutine that its test destroys.
struct Bare {
  struct promise_type {
    Bare get_return_object() { return {std::coroutine_handle<promise_type>::from_promise(*this)}; }
    std::suspend_always initial_suspend() noexcept { return {}; }
    std::suspend_always final_suspend() noexcept { return {}; }
    void return_void() noexcept {}
    void unhandled_exception() noexcept {}
  };
  std::coroutine_handle<promise_type> handle;
};

Bare note(bool& ran) {
  ran = true;
  co_return;
}

TEST_F(EventLoopTest, WhatIsWokenAfterStopCanBeForgotten) {
  bool ran = false;
  const auto waiter = note(ran);
  environment().stop();
  shard().resume_soon(waiter.handle);
  EXPECT_EQ(environment().forget_woken(), 1);
  EXPECT_EQ(environment().forget_woken(), 0);
  environment_.reset();
  EXPECT_FALSE(ran);
  waiter.handle.destroy();
}

TEST_F(EventLoopTest, AfterStopWorkersRunInTheCallersThread) {
  environment().stop();
  bool ran = false;
  environment().workers().submit([&] { ran = true; });
  EXPECT_TRUE(ran);
}

}  // namespace
}  // namespace millrace::kernel
