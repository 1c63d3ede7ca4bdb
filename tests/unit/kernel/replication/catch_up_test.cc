// How fast a replica catches up that is not in sync: as an operator has set, or as clients let it.
#include "tests/unit/kernel/replication/replicas_fixture.h"

namespace millrace::kernel::three {
namespace {

using ::testing::UnorderedElementsAre;

constexpr std::int64_t kib = 1 << 10;
constexpr std::int64_t mib = 1 << 20;

class CatchUpTest : public ReplicasTest {
 protected:
  static constexpr std::int32_t number = 0;

  /// Broker 3 has none of so many batches, and is not in sync.
  void leave_behind(int batches, std::size_t batch_bytes) {
    auto& state = states_[number];
    state.replicas = state.in_sync = {1, 2};
    tell();
    const std::string value(batch_bytes, 'x');
    for (int n = 0; n < batches; ++n) {
      ASSERT_EQ(produce(1, number, value)->error, ErrorCode::none);
    }
    state.replicas = {1, 2, 3};
    ++state.partition_epoch;
  }
  bool caught_up() {
    const auto partition = node(3).partition(number);
    return partition && partition->log_end() == node(1).partition(number)->log_end();
  }
  /// How long it takes broker 3, from now on.
  Duration catch_up() {
    tell();
    const auto from = world_.now();
    EXPECT_TRUE(world_.run_until([this] { return caught_up(); }, seconds(600)));
    return world_.now() - from;
  }
  void set_rates(std::int32_t id, ReplicationRates rates) {
    node(id).environment.control().post([this, id, rates] { node(id).replicas->set_rates(rates); });
    world_.run_for(milliseconds(10));
  }
  /// Requests wait so long for the shards of a broker.
  void let_requests_wait(std::int32_t id, Duration time) {
    node(id).replicas->moves().measure_by([time](Shard&) -> Task<Duration> { co_return time; });
  }
};

TEST_F(CatchUpTest, WithoutARateItTakesNoTime) {
  leave_behind(32, 64 * kib);
  EXPECT_LT(catch_up(), seconds(1));
  EXPECT_TRUE(until([this] { return states_[number].in_sync.size() == 3; }));
}

// 2 MiB at 256 KiB/s; what is saved up, and the last share, are not waited for.
TEST_F(CatchUpTest, TheFollowersRateIsKept) {
  follower_throttled_ = true;
  leave_behind(32, 64 * kib);
  set_rates(3, {.follower = 256 * kib});
  const auto time = catch_up();
  EXPECT_GT(time, milliseconds(7400));
  EXPECT_LT(time, milliseconds(8600));
  EXPECT_TRUE(until([this] { return states_[number].in_sync.size() == 3; }));
}

TEST_F(CatchUpTest, TheLeadersRateIsKept) {
  leader_throttled_ = true;
  leave_behind(32, 64 * kib);
  set_rates(1, {.leader = 256 * kib});
  const auto time = catch_up();
  EXPECT_GT(time, milliseconds(7400));
  EXPECT_LT(time, milliseconds(8600));
}

TEST_F(CatchUpTest, ARateIsForThoseReplicasThatAreListed) {
  leave_behind(32, 64 * kib);
  set_rates(1, {.leader = 1});
  set_rates(3, {.follower = 1});
  EXPECT_LT(catch_up(), seconds(1));
}

TEST_F(CatchUpTest, WhoIsInSyncIsNotHeldBack) {
  leader_throttled_ = follower_throttled_ = true;
  for (const std::int32_t id : {1, 2, 3}) set_rates(id, {.leader = 1, .follower = 1});
  tell();
  const auto from = world_.now();
  for (int n = 0; n < 8; ++n) {
    ASSERT_EQ(produce(1, number, std::string(64 * kib, 'x'))->error, ErrorCode::none);
  }
  EXPECT_LT(world_.now() - from, seconds(1));
  EXPECT_THAT(states_[number].in_sync, UnorderedElementsAre(1, 2, 3));
}

TEST_F(CatchUpTest, WhoIsHeldBackDoesNotHoldUpThoseInSync) {
  follower_throttled_ = true;
  leave_behind(32, 64 * kib);
  set_rates(3, {.follower = 1});
  tell();
  world_.run_for(seconds(1));
  ASSERT_FALSE(caught_up());
  // Of the other partitions broker 3 is in sync.
  const auto from = world_.now();
  for (const std::int32_t other : {1, 2}) {
    ASSERT_EQ(produce(1, other, "a")->error, ErrorCode::none);
  }
  EXPECT_LT(world_.now() - from, seconds(1));
}

TEST_F(CatchUpTest, AnotherRateCountsSoon) {
  follower_throttled_ = true;
  leave_behind(32, 64 * kib);
  set_rates(3, {.follower = 1});
  tell();
  world_.run_for(seconds(10));
  ASSERT_FALSE(caught_up());
  set_rates(3, {});
  EXPECT_LT(catch_up(), seconds(2));
}

TEST_F(CatchUpTest, AMoveGetsFasterWhileNobodyWaits) {
  leave_behind(64, 500 * kib);
  states_[number].adding = {3};
  // 31 MiB: at 8 MiB/s it would take four seconds.
  EXPECT_LT(catch_up(), milliseconds(3000));
  EXPECT_GT(node(3).replicas->moves().rate(), 8 * mib);
}

TEST_F(CatchUpTest, AMoveYieldsWhileRequestsWaitAtTheFollower) {
  leave_behind(16, 500 * kib);
  states_[number].adding = {3};
  let_requests_wait(3, milliseconds(20));
  // 7.8 MiB: some in the first second, then one a second.
  const auto time = catch_up();
  EXPECT_GT(time, seconds(4));
  EXPECT_LT(time, seconds(9)) << "it never stands still";
  EXPECT_EQ(node(3).replicas->moves().rate(), mib);
}

TEST_F(CatchUpTest, AMoveYieldsWhileRequestsWaitAtTheLeader) {
  leave_behind(16, 500 * kib);
  states_[number].adding = {3};
  let_requests_wait(1, milliseconds(20));
  EXPECT_GT(catch_up(), seconds(4));
  EXPECT_EQ(node(1).replicas->moves().rate(), mib);
}

TEST_F(CatchUpTest, AMoveKeepsToTheMostThatIsSet) {
  leave_behind(32, 64 * kib);
  states_[number].adding = {3};
  set_rates(3, {.moves_max = 256 * kib});
  const auto time = catch_up();
  EXPECT_GT(time, milliseconds(7400));
  EXPECT_LT(time, milliseconds(8600));
}

TEST_F(CatchUpTest, AMoveThatAToolHoldsBackKeepsToTheToolsRate) {
  follower_throttled_ = leader_throttled_ = true;
  leave_behind(32, 64 * kib);
  states_[number].adding = {3};
  for (const std::int32_t id : {1, 3}) {
    set_rates(id, {.leader = 4 * mib, .follower = 4 * mib, .moves_max = 1});
  }
  EXPECT_LT(catch_up(), seconds(1));
}

}  // namespace
}  // namespace millrace::kernel::three
