#include "kernel/replication/replicas.h"

#include "tests/unit/kernel/replication/replicas_fixture.h"

namespace millrace::kernel::three {
namespace {

using ::testing::ElementsAre;
using ::testing::UnorderedElementsAre;

TEST_F(ReplicasTest, WhatIsAcknowledgedByAllIsEverywhere) {
  tell();
  for (const std::int32_t number : {0, 1, 2}) {
    const auto produced = produce(1, number, "a" + std::to_string(number));
    ASSERT_TRUE(produced);
    EXPECT_EQ(produced->error, ErrorCode::none) << produced->message;
    for (const std::int32_t id : {1, 2, 3}) {
      EXPECT_THAT(values(id, number), ElementsAre("a" + std::to_string(number)));
    }
  }
  // Followers learn what is replicated, though nothing more is written.
  EXPECT_TRUE(until([this] { return node(2).partition(1)->high_watermark() == Offset{1}; }));
}

TEST_F(ReplicasTest, PartitionsThatRestCostAPollAndNoMore) {
  tell();
  world_.run_for(seconds(5));
  const auto before = node(1).fetches;
  world_.run_for(seconds(10));
  // Two followers with two shards each: a poll every 500 ms.
  EXPECT_LE(node(1).fetches - before, 2 * 2 * 22U);
  EXPECT_GE(node(1).fetches - before, 2 * 2 * 18U);
}

TEST_F(ReplicasTest, AnotherLeaderIsFollowedAndTheOldOneToo) {
  tell();
  ASSERT_EQ(produce(1, 0, "a")->error, ErrorCode::none);
  elect(2);
  ASSERT_EQ(produce(2, 0, "b")->error, ErrorCode::none);
  EXPECT_EQ(produce(1, 0, "c")->error, ErrorCode::not_leader_or_follower);
  for (const std::int32_t id : {1, 2, 3}) EXPECT_THAT(values(id, 0), ElementsAre("a", "b"));
}

TEST_F(ReplicasTest, WhoIsDeadIsTakenOutAndComesBack) {
  tell();
  ASSERT_EQ(produce(1, 0, "a")->error, ErrorCode::none);
  node(3).replicas->set_brokers({}, -1);  // it reaches nobody
  ASSERT_EQ(produce(1, 0, "b")->error, ErrorCode::none) << "the leader has taken it out";
  EXPECT_THAT(states_[0].in_sync, UnorderedElementsAre(1, 2));
  tell();
  EXPECT_TRUE(until([this] { return states_[0].in_sync.size() == 3; }));
  EXPECT_THAT(epochs_told_, UnorderedElementsAre(-1, 102, 103));
  EXPECT_THAT(values(3, 0), ElementsAre("a", "b"));
}

TEST_F(ReplicasTest, WhoIsBackIsAskedForWithAllItsPartitionsAtOnce) {
  for (std::int32_t number = 0; number < 100; ++number) {
    states_[number] = states_[0];
    states_[number].in_sync = {1, 2};
  }
  tell();
  EXPECT_TRUE(until([this] {
    return std::ranges::all_of(states_,
                               [](const auto& one) { return one.second.in_sync.size() == 3; });
  }));
  EXPECT_EQ(asked_, 2) << "by each shard once";
}

TEST_F(ReplicasTest, ALeaderKeepsItsFollowersWhereAChangeOfTheInSyncSetEndsAMove) {
  states_[0].in_sync = {1, 2};
  change_ends_move_ = true;
  tell();
  ASSERT_TRUE(until([this] { return states_[0].in_sync.size() == 3; }));
  tell();
  ASSERT_TRUE(node(1).partition(0)->replicas());
  EXPECT_THAT(node(1).partition(0)->replicas()->in_sync(), UnorderedElementsAre(1, 2, 3));
  ASSERT_EQ(produce(1, 0, "a")->error, ErrorCode::none);
  for (const std::int32_t id : {1, 2, 3}) EXPECT_THAT(values(id, 0), ElementsAre("a"));
}

TEST_F(ReplicasTest, WhoStopsFollowingIsNotTakenInSyncAgain) {
  auto& three = node(3);
  const auto stopped = world_.run(three.environment.control(),
                                  [&three] { return three.replicas->stop_following(); });
  ASSERT_TRUE(stopped) << to_string(stopped.error());
  states_[0].in_sync = {1, 2};
  tell();
  ASSERT_EQ(produce(1, 0, "a")->error, ErrorCode::none);
  world_.run_for(seconds(5));
  EXPECT_THAT(states_[0].in_sync, UnorderedElementsAre(1, 2));
  EXPECT_THAT(values(3, 0), ElementsAre());
}

TEST_F(ReplicasTest, AFetchUnderALeaseThatNobodyHasSaysNothing) {
  tell();
  ASSERT_EQ(produce(1, 0, "a")->error, ErrorCode::none);
  FakePeer forger(node(1));
  FetchRequest forged{.replica_id = 3,
                      .replica_epoch = std::int64_t{1} << 40,
                      .bytes_max = 1000,
                      .session_epoch = 0};
  forged.topics.push_back({{"orders", topic_id}, {}});
  forged.topics[0].partitions.push_back({.partition = 0, .from = {1}, .bytes_max = 1000});
  const auto answer =
      world_.run(node(3).environment.control(), [&] { return forger.fetch(forged); });
  ASSERT_TRUE(answer) << to_string(answer.error());
  EXPECT_EQ(answer->topics.at(0).partitions.at(0).error, ErrorCode::not_leader_or_follower);
  forged.replica_epoch = -1;
  const auto without =
      world_.run(node(3).environment.control(), [&] { return forger.fetch(forged); });
  ASSERT_TRUE(without) << to_string(without.error());
  EXPECT_EQ(without->topics.at(0).partitions.at(0).error, ErrorCode::not_leader_or_follower);

  node(3).replicas->set_brokers({}, -1);  // it reaches nobody
  ASSERT_EQ(produce(1, 0, "b")->error, ErrorCode::none);
  EXPECT_THAT(states_[0].in_sync, UnorderedElementsAre(1, 2));
  tell();
  EXPECT_TRUE(until([this] { return states_[0].in_sync.size() == 3; }));
}

TEST_F(ReplicasTest, WhoIsBackIsInSyncSoonAfterItsLeaderHasBeenToldOfIt) {
  leases_[3] = 203;
  known_leases_[3] = 103;  // of its earlier life
  for (auto& [number, state] : states_) state.in_sync = {1, 2};
  tell();
  world_.run_for(seconds(5));
  for (const auto& [number, state] : states_) EXPECT_EQ(state.in_sync.size(), 2);
  const auto told = world_.now();
  known_leases_.clear();
  tell();
  EXPECT_TRUE(until([this] {
    return std::ranges::all_of(states_,
                               [](const auto& one) { return one.second.in_sync.size() == 3; });
  }));
  EXPECT_LT(world_.now() - told, milliseconds(1500)) << "the longest pause between tries is 1 s";
  EXPECT_THAT(epochs_told_, UnorderedElementsAre(-1, 102, 203));
}

TEST_F(ReplicasTest, WithoutAControllerInSyncSetsStayAndAreAskedForAgain) {
  tell();
  ASSERT_EQ(produce(1, 0, "a")->error, ErrorCode::none);
  refuse_all_ = true;
  node(3).replicas->set_brokers({}, -1);
  const auto waiting = produce(1, 0, "b");
  ASSERT_TRUE(waiting);
  EXPECT_EQ(waiting->error, ErrorCode::request_timed_out);
  refuse_all_ = false;
  EXPECT_TRUE(until([this] { return states_[0].in_sync.size() == 2; }));
}

TEST_F(ReplicasTest, ALeaderThatIsDownIsTriedAgainWithOneLineInTheLog) {
  tell();
  ASSERT_EQ(produce(1, 0, "a")->error, ErrorCode::none);
  node(1).up = false;
  world_.run_for(seconds(10));
  node(1).up = true;
  ASSERT_EQ(produce(1, 0, "b")->error, ErrorCode::none);
  EXPECT_THAT(values(2, 0), ElementsAre("a", "b"));
  std::size_t told = 0;
  for (const auto& line : node(2).log.lines()) {
    if (line.contains("cannot fetch from a leader")) ++told;
  }
  EXPECT_LE(told, 2U) << "one for each shard";
}

TEST_F(ReplicasTest, WhatIsTrimmedIsGoneEverywhereSoon) {
  tell();
  ASSERT_EQ(produce(1, 0, "a")->error, ErrorCode::none);
  ASSERT_EQ(produce(1, 0, "b")->error, ErrorCode::none);
  const auto from = world_.now();
  auto& shard = node(1).partitions->owner_of("orders", 0);
  auto body = [partition = node(1).partition(0)]() -> Task<PartitionTrimmed> {
    const PartitionTrim wanted{.partition = 0, .before = {1}};
    MR_CO_TRY(const auto trimmed, co_await partition->trim(wanted));
    co_return co_await partition->trimmed_everywhere(trimmed.log_start, seconds(10));
  };
  const auto trimmed = world_.run(shard.shard(), body);
  ASSERT_TRUE(trimmed);
  EXPECT_EQ(trimmed->error, ErrorCode::none);
  EXPECT_EQ(trimmed->log_start, Offset{1});
  EXPECT_LT(world_.now() - from, seconds(2)) << "two polls of half a second";
  for (const std::int32_t id : {2, 3}) EXPECT_EQ(node(id).partition(0)->log_start(), Offset{1});
}

TEST_F(ReplicasTest, WhatIsStoppedAndErasedIsGone) {
  tell();
  ASSERT_EQ(produce(1, 0, "a")->error, ErrorCode::none);
  auto& two = node(2);
  const auto stopped = world_.run(two.environment.control(), [&two] {
    std::vector<ReplicaStop> stops{{numbered(0), topic_id, true}};
    return two.replicas->stop(std::move(stops));
  });
  ASSERT_TRUE(stopped) << to_string(stopped.error());
  EXPECT_EQ(two.partition(0), nullptr);
  EXPECT_NE(two.partition(1), nullptr);
}

}  // namespace
}  // namespace millrace::kernel::three
