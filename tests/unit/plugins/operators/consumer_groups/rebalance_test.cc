// From generation to generation: who is waited for, and how long.
#include "bench.h"

namespace millrace::consumer_groups::testing {
namespace {

class RebalanceTest : public Bench {};

TEST_F(RebalanceTest, TheFirstGenerationWaitsForThoseThatAreStartedTogether) {
  Client a{.client_id = "a"};
  const auto joining_a = begin_join(a);
  driver.advance(2s);
  Client b{.client_id = "b"};
  const auto joining_b = begin_join(b);
  driver.advance(1s);
  EXPECT_TRUE(waits(joining_a));  // somebody came: the delay begins again
  driver.advance(3s);
  EXPECT_EQ(end_join(a, joining_a).generation, 1);
  EXPECT_EQ(end_join(b, joining_b).generation, 1);
}

TEST_F(RebalanceTest, ButNoLongerThanTheRebalanceTimeOut) {
  driver.set("group.initial.rebalance.delay.ms", "3000");
  Client a{.client_id = "a", .rebalance = 8s};
  const auto joining = begin_join(a);
  for (int more = 0; more < 3; ++more) {
    driver.advance(2s);
    Client next{.rebalance = 8s};
    (void)begin_join(next);
  }
  driver.advance(1900ms);  // 7.9 s
  EXPECT_TRUE(waits(joining));
  driver.advance(200ms);
  EXPECT_EQ(end_join(a, joining).generation, 1);
}

TEST_F(RebalanceTest, NoDelayIsADelayToo) {
  driver.set("group.initial.rebalance.delay.ms", "0");
  driver.advance(2s);
  Client a;
  const auto joining = begin_join(a);
  driver.advance({});
  EXPECT_EQ(end_join(a, joining).generation, 1);
}

TEST_F(RebalanceTest, ANewMemberMakesTheOthersJoinAgain) {
  Client a{.client_id = "a"};
  make_stable({&a});
  Client b{.client_id = "b"};
  const auto joining_b = begin_join(b);
  EXPECT_EQ(heartbeat(a), ErrorCode::rebalance_in_progress);
  EXPECT_EQ(state(), "PreparingRebalance");
  const auto joining_a = send_join(a);
  EXPECT_EQ(end_join(a, joining_a).members.size(), 2U);
  EXPECT_EQ(end_join(b, joining_b).generation, 2);
  sync_all({&a, &b});
  EXPECT_EQ(heartbeat(a), ErrorCode::none);
  EXPECT_EQ(state(), "Stable");
}

TEST_F(RebalanceTest, WhoDoesNotJoinAgainInTimeIsOut) {
  Client a{.client_id = "a", .session = 300s, .rebalance = 20s};
  Client b{.client_id = "b", .session = 300s, .rebalance = 20s};
  make_stable({&a, &b});
  const auto joining = send_join(a);
  driver.advance(20s);
  const auto joined = end_join(a, joining);
  EXPECT_EQ(joined.generation, 2);
  ASSERT_EQ(joined.members.size(), 1U);
  EXPECT_EQ(heartbeat(b), ErrorCode::unknown_member_id);
}

TEST_F(RebalanceTest, WhoIsGivenAnIdIsWaitedFor) {
  Client a{.client_id = "a"};
  make_stable({&a});
  Client b{.client_id = "b", .session = 8s};
  b.member_id = taken<JoinGroupAnswer>(send_join(b)).member_id;
  EXPECT_EQ(heartbeat(a), ErrorCode::none);  // nothing happens before it comes back
  const auto joining_a = send_join(a);       // the leader wants a rebalance meanwhile
  driver.advance(5s);
  EXPECT_TRUE(waits(joining_a));
  driver.advance(3s);  // b's id has expired
  EXPECT_EQ(end_join(a, joining_a).generation, 2);
}

TEST_F(RebalanceTest, AMemberThatIsSilentIsOutAfterItsSession) {
  Client a{.client_id = "a", .session = 10s};
  Client b{.client_id = "b", .session = 30s};
  make_stable({&a, &b});
  driver.advance(9s);
  EXPECT_EQ(heartbeat(a), ErrorCode::none);
  driver.advance(9s);
  EXPECT_EQ(heartbeat(b), ErrorCode::none);
  EXPECT_EQ(heartbeat(a), ErrorCode::none);
  driver.advance(10s);
  EXPECT_EQ(heartbeat(a), ErrorCode::unknown_member_id);
  EXPECT_EQ(heartbeat(b), ErrorCode::rebalance_in_progress);
  const auto joining = send_join(b);
  const auto joined = end_join(b, joining);
  EXPECT_EQ(joined.leader, b.member_id);
  EXPECT_EQ(joined.members.size(), 1U);
}

TEST_F(RebalanceTest, HeartbeatsOnlyMoveADeadline) {
  Client a{.session = 10s};
  make_stable({&a});
  const auto due = driver.timer_in("group/g");
  ASSERT_TRUE(due);
  driver.advance(2s);
  for (int beat = 0; beat < 100; ++beat) EXPECT_EQ(heartbeat(a), ErrorCode::none);
  EXPECT_EQ(driver.timer_in("group/g"), *due - 2s);
}

TEST_F(RebalanceTest, AMemberDoesNotExpireWhileItWaits) {
  Client a{.client_id = "a", .session = 10s, .rebalance = 60s};
  Client b{.client_id = "b", .session = 60s, .rebalance = 60s};
  make_stable({&a, &b});
  const auto joining = send_join(a);
  driver.advance(50s);
  EXPECT_TRUE(waits(joining));
  const auto joining_b = send_join(b);
  EXPECT_EQ(end_join(a, joining).members.size(), 2U);
  EXPECT_EQ(end_join(b, joining_b).generation, 2);
  driver.advance(9s);
  EXPECT_EQ(heartbeat(a), ErrorCode::none);  // its session has begun with the answer
}

// A connection that is gone cannot be seen while its request is parked.
TEST_F(RebalanceTest, ANewMemberIsWaitedForFiveMinutesAtMost) {
  Client a{.client_id = "a", .session = 1800s, .rebalance = 1800s};
  make_stable({&a});
  Client b{.client_id = "b", .known_id = false};
  const auto joining = send_join(b);
  driver.advance(300s);
  EXPECT_EQ(taken<JoinGroupAnswer>(joining).error, ErrorCode::unknown_member_id);
  const auto joining_a = send_join(a);
  EXPECT_EQ(end_join(a, joining_a).members.size(), 1U);
}

// G01, KAFKA-12890.
TEST_F(RebalanceTest, ALeaderThatNeverAssignsIsOutAfterTheRebalanceTimeOut) {
  Client a{.client_id = "a", .session = 30s, .rebalance = 40s};
  Client b{.client_id = "b", .session = 30s, .rebalance = 40s};
  const auto joining_a = begin_join(a);
  const auto joining_b = begin_join(b);
  driver.advance(7s);
  (void)end_join(a, joining_a);
  (void)end_join(b, joining_b);
  const auto sync = send_sync(b);
  driver.advance(20s);
  EXPECT_EQ(heartbeat(a), ErrorCode::none);  // alive, and does nothing
  EXPECT_TRUE(waits(sync));
  driver.advance(20s);
  EXPECT_EQ(taken<SyncGroupAnswer>(sync).error, ErrorCode::rebalance_in_progress);
  EXPECT_EQ(heartbeat(a), ErrorCode::unknown_member_id);
  const auto again = send_join(b);
  EXPECT_EQ(end_join(b, again).leader, b.member_id);
  sync_all({&b});
}

TEST_F(RebalanceTest, AFollowerThatNeverAsksForItsAssignmentIsOutToo) {
  Client a{.client_id = "a", .session = 1000s, .rebalance = 40s};
  Client b{.client_id = "b", .session = 1000s, .rebalance = 40s};
  const auto joining_a = begin_join(a);
  const auto joining_b = begin_join(b);
  driver.advance(7s);
  (void)end_join(a, joining_a);
  (void)end_join(b, joining_b);
  EXPECT_EQ(taken<SyncGroupAnswer>(send_sync(a)).error, ErrorCode::none);
  EXPECT_EQ(state(), "Stable");
  driver.advance(40s);
  EXPECT_EQ(heartbeat(b), ErrorCode::unknown_member_id);
  EXPECT_EQ(heartbeat(a), ErrorCode::rebalance_in_progress);
}

TEST_F(RebalanceTest, TheLastToLeaveLeavesAnEmptyGeneration) {
  Client a;
  make_stable({&a});
  EXPECT_EQ(leave(a).members.at(0).error, ErrorCode::none);
  const auto described = describe("g");
  EXPECT_EQ(described.state, "Empty");
  EXPECT_EQ(described.protocol_type, "consumer");
  EXPECT_EQ(described.protocol, "");
  EXPECT_TRUE(described.members.empty());
  ASSERT_TRUE(driver.reload());
  EXPECT_EQ(state(), "Empty");
  Client b;
  const auto joining = begin_join(b);
  driver.advance(3s);
  EXPECT_EQ(end_join(b, joining).generation, 3);  // it goes on from the empty one
}

TEST_F(RebalanceTest, AGroupThatNeverWasStableLeavesNothing) {
  Client a;
  const auto joining = begin_join(a);
  EXPECT_EQ(leave(a).members.at(0).error, ErrorCode::none);
  EXPECT_EQ(taken<JoinGroupAnswer>(joining).error, ErrorCode::unknown_member_id);
  driver.advance(10s);
  EXPECT_TRUE(list().empty());
  EXPECT_TRUE(driver.log().empty());
  EXPECT_EQ(driver.timers(), std::vector<std::string>{"retention"});
}

TEST_F(RebalanceTest, AfterALoadAGroupGoesOnInItsGeneration) {
  Client a{.client_id = "a"};
  Client b{.client_id = "b"};
  make_stable({&a, &b});
  driver.advance(5s);
  ASSERT_TRUE(driver.reload());
  driver.advance(9s);  // sessions begin anew
  EXPECT_EQ(heartbeat(a), ErrorCode::none);
  EXPECT_EQ(commit_error(b, 5), ErrorCode::none);
  EXPECT_EQ(taken<SyncGroupAnswer>(send_sync(b)).assignment.text(), "for b");
  driver.advance(10s);
  EXPECT_EQ(heartbeat(a), ErrorCode::unknown_member_id);
}

TEST_F(RebalanceTest, ALoadInTheMiddleOfARebalanceSettles) {
  Client a{.client_id = "a"};
  make_stable({&a});
  Client b{.client_id = "b"};
  const auto joining_b = begin_join(b);
  ASSERT_TRUE(driver.reload());
  EXPECT_EQ(driver.error(joining_b), ErrorCode::not_coordinator);
  EXPECT_EQ(heartbeat(a), ErrorCode::none);  // the generation in the log
  EXPECT_EQ(taken<JoinGroupAnswer>(send_join(b)).error, ErrorCode::unknown_member_id);
  b.member_id.clear();
  const auto again = begin_join(b);
  const auto joining_a = send_join(a);
  EXPECT_EQ(end_join(a, joining_a).generation, 2);
  EXPECT_EQ(end_join(b, again).generation, 2);
  sync_all({&a, &b});
}

TEST_F(RebalanceTest, AnAssignmentThatCannotBeWrittenIsNotGivenOut) {
  Client a{.client_id = "a"};
  Client b{.client_id = "b"};
  const auto joining_a = begin_join(a);
  const auto joining_b = begin_join(b);
  driver.advance(7s);
  (void)end_join(a, joining_a);
  (void)end_join(b, joining_b);
  const auto sync_b = send_sync(b);
  driver.fail_appends();
  const auto sync_a = send_sync(a);
  EXPECT_EQ(driver.error(sync_a), ErrorCode::coordinator_not_available);
  EXPECT_EQ(driver.error(sync_b), ErrorCode::coordinator_not_available);
  EXPECT_EQ(state(), "CompletingRebalance");
  EXPECT_EQ(taken<JoinGroupAnswer>(send_join(a)).generation, 1);
  EXPECT_EQ(taken<JoinGroupAnswer>(send_join(b)).generation, 1);
  sync_all({&a, &b});
}

TEST_F(RebalanceTest, AnAssignmentIsGivenOutWhenItStays) {
  Client a;
  const auto joining = begin_join(a);
  driver.advance(3s);
  (void)end_join(a, joining);
  driver.hold_high_watermark();
  const auto sync = send_sync(a);
  EXPECT_TRUE(waits(sync));
  driver.release_high_watermark();
  EXPECT_EQ(taken<SyncGroupAnswer>(sync).error, ErrorCode::none);
}

}  // namespace
}  // namespace millrace::consumer_groups::testing
