// What tasks of one shard share, and how they reach another shard.
#include <millrace/shard.h>

#include <chrono>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <millrace/testing/sim_environment.h>

namespace millrace {
namespace {

using std::chrono::seconds;

class ShardTest : public ::testing::Test {
 protected:
  void run() { world.run_for(Duration::zero()); }
  Pending<MemoryBudget::Lease> acquire(std::size_t bytes, CancelScope* scope = nullptr) {
    return start(shard, budget.acquire(bytes), scope);
  }
  static MemoryBudget::Lease lease_of(Pending<MemoryBudget::Lease>& pending) {
    EXPECT_TRUE(pending.is_ready());
    auto lease = pending.await_resume();
    EXPECT_TRUE(lease);
    return *std::move(lease);
  }

  testing::SimWorld world{1};
  testing::SimEnvironment& node = world.add_node("b1", 2);
  Shard& shard = *node.shards()[0];
  Shard& other = *node.shards()[1];
  MemoryBudget budget{100};
};

TEST_F(ShardTest, EventWakesAllWhoWait) {
  Event event;
  EXPECT_FALSE(event.has_waiters());
  auto first = start(shard, event.wait());
  auto second = start(shard, event.wait());
  EXPECT_TRUE(event.has_waiters());
  event.notify_all();
  EXPECT_FALSE(event.has_waiters());
  auto late = start(shard, event.wait());
  run();
  EXPECT_TRUE(first.is_ready() && second.is_ready());
  EXPECT_FALSE(late.is_ready());
  event.notify_all();
  run();
}

TEST_F(ShardTest, EventForgetsWhoWasCancelled) {
  Event event;
  CancelScope scope;
  auto cancelled = start(shard, event.wait(), &scope);
  scope.cancel();
  run();
  auto waiting = start(shard, event.wait());
  event.notify_all();
  run();
  EXPECT_EQ(cancelled.await_resume().error().code, Errc::cancelled);
  EXPECT_TRUE(waiting.await_resume());
}

TEST_F(ShardTest, EventCancelsWhoWaitsWhenItEnds) {
  auto event = std::make_unique<Event>();
  auto waiting = start(shard, event->wait());
  event.reset();
  run();
  EXPECT_EQ(waiting.await_resume().error().code, Errc::cancelled);
}

TEST_F(ShardTest, GateClosesOnceTheLastHasLeft) {
  Gate gate;
  auto first = gate.enter();
  auto second = gate.enter();
  ASSERT_TRUE(first && second);
  EXPECT_EQ(gate.inside(), 2U);
  auto closing = start(shard, gate.close());
  EXPECT_TRUE(gate.closed());
  EXPECT_EQ(gate.enter().error().code, Errc::closed);
  *first = {};
  run();
  EXPECT_FALSE(closing.is_ready());
  {
    const auto passed_on = *std::move(second);
  }
  run();
  EXPECT_TRUE(closing.is_ready());
  EXPECT_TRUE(start(shard, gate.close()).is_ready()) << "closing twice does no harm";
}

TEST_F(ShardTest, BudgetServesInOrderSoThatALargeRequestIsNotOvertaken) {
  auto first = acquire(60);
  auto lease = lease_of(first);
  auto large = acquire(80);
  auto small = acquire(10);
  run();
  EXPECT_FALSE(large.is_ready());
  EXPECT_FALSE(small.is_ready()) << "it would fit, but came later";
  lease = {};
  run();
  const auto large_lease = lease_of(large);
  const auto small_lease = lease_of(small);
  EXPECT_EQ(budget.bytes_used(), 90U);
}

TEST_F(ShardTest, BudgetLetsInWhatIsLargerThanItselfOnceItIsEmpty) {
  auto small = acquire(1);
  auto lease = lease_of(small);
  auto huge = acquire(1000);
  run();
  EXPECT_FALSE(huge.is_ready());
  lease = {};
  run();
  const auto huge_lease = lease_of(huge);
  EXPECT_EQ(huge_lease.bytes(), 1000U);
  auto next = acquire(1);
  run();
  EXPECT_FALSE(next.is_ready());
}

TEST_F(ShardTest, BudgetGetsBackWhatALeaseShrinksBy) {
  auto first = acquire(100);
  auto lease = lease_of(first);
  auto second = acquire(50);
  lease.shrink_to(60);
  run();
  EXPECT_FALSE(second.is_ready());
  lease.shrink_to(200);
  EXPECT_EQ(lease.bytes(), 60U) << "a lease does not grow";
  lease.shrink_to(50);
  run();
  const auto second_lease = lease_of(second);
  EXPECT_EQ(budget.bytes_used(), 100U);
}

TEST_F(ShardTest, BudgetPassesOverWhoWasCancelled) {
  auto first = acquire(100);
  auto lease = lease_of(first);
  CancelScope scope;
  auto cancelled = acquire(90, &scope);
  auto waiting = acquire(10);
  scope.cancel();
  lease = {};
  run();
  EXPECT_EQ(cancelled.await_resume().error().code, Errc::cancelled);
  const auto waiting_lease = lease_of(waiting);
  EXPECT_EQ(budget.bytes_used(), 10U);
}

TEST_F(ShardTest, BudgetIsNotHeldUpByACancelledRequestAtItsHead) {
  auto first = acquire(60);
  const auto lease = lease_of(first);
  CancelScope scope;
  auto large = acquire(80, &scope);
  auto small = acquire(10);
  scope.cancel();
  run();
  EXPECT_TRUE(small.is_ready()) << "nobody waits in front of it any more";
}

TEST_F(ShardTest, BudgetGetsBackALeaseThatWasNotTaken) {
  auto first = acquire(100);
  auto lease = lease_of(first);
  CancelScope scope;
  {
    auto waiting = acquire(50, &scope);
    lease = {};
    scope.cancel();
    run();
  }
  EXPECT_EQ(budget.bytes_used(), 0U);
}

TEST_F(ShardTest, MutexHasOneHolderAtATime) {
  Mutex mutex;
  auto first = start(shard, mutex.lock());
  auto second = start(shard, mutex.lock());
  ASSERT_TRUE(first.is_ready());
  EXPECT_FALSE(second.is_ready());
  {
    const auto held = *first.await_resume();
  }
  run();
  EXPECT_TRUE(second.is_ready());
}

Task<bool> runs_on(Shard& shard) {
  Shard& here = co_await this_shard();
  co_return &here == &shard&& shard.is_current();
}

TEST_F(ShardTest, RunsOnAnotherShardAndComesBack) {
  const auto result = world.run(shard, [this] {
    constexpr auto there_and_back = [](Shard& home, Shard& target) -> Task<bool> {
      auto visit = run_on(target, [&target] { return runs_on(target); });
      MR_CO_TRY(const auto there, co_await std::move(visit));
      co_return there&& home.is_current();
    };
    return there_and_back(shard, other);
  });
  ASSERT_TRUE(result);
  EXPECT_TRUE(*result);
}

TEST_F(ShardTest, RunsHereWithoutAPostWhenItIsThereAlready) {
  auto result = start(shard, run_on(shard, [this]() -> Task<bool> { return runs_on(shard); }));
  EXPECT_TRUE(result.is_ready());
}

TEST_F(ShardTest, BringsErrorsBackFromAnotherShard) {
  const auto result = world.run(shard, [this] {
    return run_on(other, []() -> Task<> { co_return Error{Errc::io, "no disk there"}; });
  });
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().detail, "no disk there");
}

}  // namespace
}  // namespace millrace
