// Tasks, waits and their ends, on a simulated shard.
#include <millrace/task.h>

#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <millrace/testing/sim_environment.h>

namespace millrace {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class TaskTest : public ::testing::Test {
 protected:
  /// Lets everything run that can, and time pass.
  void run(Duration time = Duration::zero()) { world.run_for(time); }
  template <class T>
  Errc code_of(Pending<T>& pending) {
    EXPECT_TRUE(pending.is_ready());
    const auto result = pending.await_resume();
    return result ? Errc::ok : result.error().code;
  }

  testing::SimWorld world{1};
  testing::SimEnvironment& node = world.add_node("b1", 2);
  Shard& shard = *node.shards()[0];
};

Task<int> answer() { co_return 42; }
Task<int> twice(Task<int> task) {
  MR_CO_TRY(const auto once, co_await std::move(task));
  co_return once * 2;
}
Task<> wait_for(Pending<> pending) { co_return co_await pending; }
Task<int> fail() { co_return Error{Errc::corrupt, "bad bytes"}; }
Task<int> raise() {
  throw std::runtime_error("out of luck");
  co_return 1;
}

TEST_F(TaskTest, RunsToItsEndWithoutSuspending) {
  auto result = start(shard, twice(answer()));
  ASSERT_TRUE(result.is_ready());
  EXPECT_EQ(*result.await_resume(), 84);
}

TEST_F(TaskTest, PassesErrorsOn) {
  auto result = start(shard, twice(fail()));
  const auto failed = result.await_resume();
  ASSERT_FALSE(failed);
  EXPECT_EQ(to_string(failed.error()), "corrupt: bad bytes");
}

TEST_F(TaskTest, MakesAnErrorOfAnException) {
  auto result = start(shard, twice(raise()));
  const auto failed = result.await_resume();
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, Errc::internal);
  EXPECT_TRUE(failed.error().detail.contains("out of luck"));
}

TEST_F(TaskTest, DoesNotStartWhenDropped) {
  bool started = false;
  constexpr auto mark = [](bool* flag) -> Task<> {
    *flag = true;
    co_return {};
  };
  {
    const auto dropped = mark(&started);
  }
  EXPECT_FALSE(started);
}

TEST_F(TaskTest, WakesOnceItsWaitIsResolved) {
  auto [resolver, pending] = make_pending<>();
  auto result = start(shard, wait_for(std::move(pending)));
  run();
  EXPECT_FALSE(result.is_ready());
  resolver.resolve();
  EXPECT_FALSE(result.is_ready()) << "soon, not inline";
  run();
  EXPECT_EQ(code_of(result), Errc::ok);
}

TEST_F(TaskTest, IsCancelledWhenTheResolverIsDropped) {
  auto [resolver, pending] = make_pending<>();
  auto result = start(shard, wait_for(std::move(pending)));
  {
    const auto dropped = std::move(resolver);
  }
  run();
  EXPECT_EQ(code_of(result), Errc::cancelled);
}

TEST_F(TaskTest, CountsOnlyTheFirstResolution) {
  auto [resolver, pending] = make_pending<int>();
  auto other = std::move(resolver);
  other.resolve(1);
  EXPECT_FALSE(other);
  EXPECT_TRUE(pending.is_ready());
  EXPECT_EQ(*pending.await_resume(), 1);
}

TEST_F(TaskTest, EndsItsWaitWhenItsScopeIsCancelled) {
  auto [resolver, pending] = make_pending<>();
  bool told = false;
  resolver.on_abandoned([&told] { told = true; });
  CancelScope outer;
  CancelScope inner(&outer);
  auto result = start(shard, wait_for(std::move(pending)), &inner);
  outer.cancel();
  EXPECT_TRUE(told);
  EXPECT_TRUE(resolver.abandoned());
  run();
  EXPECT_EQ(code_of(result), Errc::cancelled);
  resolver.resolve();
}

TEST_F(TaskTest, FindsEveryWaitCancelledInACancelledScope) {
  CancelScope scope;
  scope.cancel();
  scope.cancel();
  CancelScope below(&scope);
  EXPECT_TRUE(below.cancelled());
  auto [resolver, pending] = make_pending<>();
  auto result = start(shard, wait_for(std::move(pending)), &below);
  EXPECT_EQ(code_of(result), Errc::cancelled);
}

TEST_F(TaskTest, OutlivesAScopeThatIsNotCancelled) {
  auto [resolver, pending] = make_pending<>();
  Pending<> result;
  {
    CancelScope scope;
    result = start(shard, wait_for(std::move(pending)), &scope);
  }
  resolver.resolve();
  run();
  EXPECT_EQ(code_of(result), Errc::ok);
}

TEST_F(TaskTest, CancelsManyWaitsOfOneScope) {
  CancelScope scope;
  std::vector<Resolver<>> resolvers;
  std::vector<Pending<>> results;
  for (int i = 0; i < 10; ++i) {
    auto [resolver, pending] = make_pending<>();
    resolvers.push_back(std::move(resolver));
    results.push_back(start(shard, wait_for(std::move(pending)), &scope));
  }
  resolvers[4].resolve();
  resolvers.erase(resolvers.begin() + 7);
  scope.cancel();
  run();
  for (std::size_t i = 0; i < results.size(); ++i) {
    EXPECT_EQ(code_of(results[i]), i == 4 ? Errc::ok : Errc::cancelled) << i;
  }
}

TEST_F(TaskTest, SleepsUntilItsTime) {
  auto result = start(shard, sleep(milliseconds(10)));
  run(milliseconds(9));
  EXPECT_FALSE(result.is_ready());
  run(milliseconds(1));
  EXPECT_EQ(code_of(result), Errc::ok);
}

TEST_F(TaskTest, WakesFromSleepWhenCancelled) {
  CancelScope scope;
  auto result = start(shard, sleep(seconds(10)), &scope);
  scope.cancel();
  run();
  EXPECT_EQ(code_of(result), Errc::cancelled);
}

TEST_F(TaskTest, TimesOutAndUnwindsFirst) {
  bool unwound = false;
  constexpr auto body = [](bool* flag) -> Task<> {
    const auto slept = co_await sleep(seconds(10));
    *flag = true;
    co_return slept;
  };
  auto result = start(shard, with_deadline(body(&unwound), milliseconds(5)));
  run(milliseconds(5));
  ASSERT_TRUE(result.is_ready());
  EXPECT_TRUE(unwound);
  const auto late = result.await_resume();
  EXPECT_EQ(to_string(late.error()), "timed out: no result within 5 ms");
}

TEST_F(TaskTest, KeepsAResultThatComesInTime) {
  auto result = start(shard, with_deadline(twice(answer()), milliseconds(5)));
  run(seconds(1));
  EXPECT_EQ(*result.await_resume(), 84);
}

TEST_F(TaskTest, IsCancelledRatherThanLateWhenItsOwnerCancels) {
  CancelScope scope;
  auto result = start(shard, with_deadline(sleep(seconds(10)), seconds(5)), &scope);
  run(seconds(1));
  scope.cancel();
  run();
  EXPECT_EQ(code_of(result), Errc::cancelled);
}

TEST_F(TaskTest, KnowsItsShardAndScope) {
  constexpr auto look = [](Shard* expected, CancelScope* scope) -> Task<bool> {
    Shard& here = co_await this_shard();
    const auto* cancelled_by = co_await this_scope();
    co_return &here == expected&& cancelled_by == scope;
  };
  CancelScope scope;
  auto result = start(shard, look(&shard, &scope), &scope);
  EXPECT_TRUE(*result.await_resume());
}

TEST_F(TaskTest, ReportsOnlyErrorsThatNobodyExpects) {
  constexpr auto end_with = [](Errc code) -> Task<> { co_return Error{code, "x"}; };
  spawn(shard, end_with(Errc::cancelled), "cancelled");
  spawn(shard, end_with(Errc::closed), "closed");
  spawn(shard, end_with(Errc::io), "io");
  EXPECT_EQ(node.reports(), std::vector<std::string>{"b1/0 io: i/o: x"});
}

}  // namespace
}  // namespace millrace
