// KIP-345: members with an instance id keep their place while they are away.
#include "bench.h"

namespace millrace::consumer_groups::testing {
namespace {

class StaticMembersTest : public Bench {
 public:
  Client a{.client_id = "a", .instance_id = "one"};
  Client b{.client_id = "b", .instance_id = "two"};
  Client& leader() { return a.leads() ? a : b; }
  Client& follower() { return a.leads() ? b : a; }
  /// The process was started again: it knows its instance id alone.
  static Client restarted(const Client& from) {
    auto again = from;
    again.member_id.clear();
    again.generation = -1;
    return again;
  }
};

TEST_F(StaticMembersTest, NeedNoMemberIdToJoin) {
  make_stable({&a});
  EXPECT_TRUE(a.member_id.starts_with("one-"));
  const auto described = describe("g");
  EXPECT_EQ(described.members.at(0).instance_id, "one");
}

TEST_F(StaticMembersTest, AFollowerComesBackWithoutARebalance) {
  make_stable({&a, &b});
  const auto old = follower();
  auto again = restarted(old);
  const auto joined = end_join(again, send_join(again));
  EXPECT_EQ(joined.error, ErrorCode::none);
  EXPECT_EQ(joined.generation, 1);
  EXPECT_EQ(joined.leader, leader().member_id);
  EXPECT_FALSE(joined.skip_assignment);
  EXPECT_NE(again.member_id, old.member_id);
  EXPECT_EQ(state(), "Stable");
  EXPECT_EQ(taken<SyncGroupAnswer>(send_sync(again)).assignment.text(), "for " + old.client_id);
  EXPECT_EQ(heartbeat(leader()), ErrorCode::none);
  EXPECT_EQ(heartbeat(old), ErrorCode::fenced_instance_id);
  EXPECT_EQ(commit_error(old, 1), ErrorCode::fenced_instance_id);
  EXPECT_EQ(taken<SyncGroupAnswer>(send_sync(old)).error, ErrorCode::fenced_instance_id);
  EXPECT_EQ(taken<JoinGroupAnswer>(send_join(old)).error, ErrorCode::fenced_instance_id);
}

TEST_F(StaticMembersTest, ALeaderComesBackAndSkipsTheAssignment) {
  make_stable({&a, &b});
  const auto old = leader();
  auto again = restarted(old);
  const auto joined = end_join(again, send_join(again));
  EXPECT_EQ(joined.leader, again.member_id);
  EXPECT_TRUE(joined.skip_assignment);
  ASSERT_EQ(joined.members.size(), 2U);
  EXPECT_TRUE(joined.members[0].member_id == again.member_id ||
              joined.members[1].member_id == again.member_id);
  EXPECT_EQ(taken<SyncGroupAnswer>(send_sync(again)).assignment.text(), "for " + old.client_id);
  // It is the leader still: when it wants a rebalance it gets one.
  EXPECT_TRUE(waits(send_join(again)));
}

TEST_F(StaticMembersTest, AnOlderLeaderIsToldThatItsFormerSelfLeads) {
  a.skip_assignment = b.skip_assignment = false;
  make_stable({&a, &b});
  const auto old = leader();
  auto again = restarted(old);
  const auto joined = end_join(again, send_join(again));
  EXPECT_EQ(joined.leader, old.member_id);
  EXPECT_FALSE(joined.skip_assignment);
  EXPECT_TRUE(joined.members.empty());
}

TEST_F(StaticMembersTest, WhoCameBackIsInTheLog) {
  make_stable({&a, &b});
  auto again = restarted(follower());
  (void)end_join(again, send_join(again));
  ASSERT_TRUE(driver.reload());
  EXPECT_EQ(heartbeat(again), ErrorCode::none);
  EXPECT_EQ(taken<SyncGroupAnswer>(send_sync(again)).assignment.text(), "for " + again.client_id);
  EXPECT_EQ(heartbeat(leader()), ErrorCode::none);
}

TEST_F(StaticMembersTest, WhoCannotBeWrittenDownHasNotComeBack) {
  make_stable({&a, &b});
  const auto old = follower();
  auto again = restarted(old);
  driver.fail_appends();
  EXPECT_EQ(driver.error(send_join(again)), ErrorCode::coordinator_not_available);
  EXPECT_EQ(heartbeat(old), ErrorCode::none);
  EXPECT_EQ(end_join(again, send_join(again)).error, ErrorCode::none);
  EXPECT_EQ(heartbeat(old), ErrorCode::fenced_instance_id);
}

TEST_F(StaticMembersTest, AChangeOfTheProtocolTakesARebalance) {
  a.protocols = b.protocols = {{"range", {}}, {"sticky", {}}};
  make_stable({&a, &b});
  auto again = restarted(follower());
  again.protocols = {{"sticky", {}}};
  const auto joining = send_join(again);
  EXPECT_TRUE(waits(joining));
  EXPECT_EQ(heartbeat(leader()), ErrorCode::rebalance_in_progress);
  const auto other = send_join(leader());
  EXPECT_EQ(end_join(again, joining).protocol, "sticky");
  EXPECT_EQ(end_join(leader(), other).generation, 2);
}

TEST_F(StaticMembersTest, WhoComesBackInARebalanceFencesItsFormerSelf) {
  make_stable({&a, &b});
  const auto old_joining = send_join(leader());
  auto again = restarted(leader());
  const auto joining = send_join(again);
  EXPECT_EQ(taken<JoinGroupAnswer>(old_joining).error, ErrorCode::fenced_instance_id);
  EXPECT_TRUE(waits(joining));
  const auto other = send_join(follower());
  EXPECT_EQ(end_join(again, joining).error, ErrorCode::none);
  EXPECT_EQ(taken<JoinGroupAnswer>(other).generation, 2);
}

TEST_F(StaticMembersTest, WhoComesBackBeforeTheAssignmentStartsOver) {
  const auto joining_a = begin_join(a);
  const auto joining_b = begin_join(b);
  driver.advance(7s);
  (void)end_join(a, joining_a);
  (void)end_join(b, joining_b);
  const auto old_sync = send_sync(follower());
  auto again = restarted(follower());
  const auto joining = send_join(again);
  EXPECT_EQ(taken<SyncGroupAnswer>(old_sync).error, ErrorCode::fenced_instance_id);
  EXPECT_TRUE(waits(joining));
  EXPECT_EQ(state(), "PreparingRebalance");
}

TEST_F(StaticMembersTest, KeepTheirPlaceInARebalanceUntilTheirSessionIsOver) {
  a.session = b.session = 100s;
  a.rebalance = b.rebalance = 20s;
  make_stable({&a, &b});
  const auto joining = send_join(leader());
  driver.advance(20s);
  const auto joined = end_join(leader(), joining);
  EXPECT_EQ(joined.generation, 2);
  EXPECT_EQ(joined.members.size(), 2U);  // the one that is away, too
}

TEST_F(StaticMembersTest, AGroupWhoseMembersAreAllAwayWaitsForOne) {
  a.session = 1000s;
  a.rebalance = 20s;
  make_stable({&a});
  Client dynamic{.client_id = "d", .session = 30s, .rebalance = 20s};
  const auto joining = begin_join(dynamic);
  driver.advance(5s);
  EXPECT_EQ(leave(dynamic).members.at(0).error, ErrorCode::none);
  EXPECT_EQ(taken<JoinGroupAnswer>(joining).error, ErrorCode::unknown_member_id);
  driver.advance(100s);
  EXPECT_EQ(state(), "PreparingRebalance");
  const auto back = send_join(a);
  EXPECT_EQ(end_join(a, back).generation, 2);
}

TEST_F(StaticMembersTest, AnAdministratorRemovesThemByTheirInstanceIds) {
  make_stable({&a, &b});
  const auto answer = ask<LeaveGroupAnswer>(
      "g",
      LeaveGroupRequest{"g", {{"", "one", ""}, {"", "nobody", ""}, {"", "two", ""}, {"", {}, ""}}});
  EXPECT_EQ(answer.error, ErrorCode::none);
  ASSERT_EQ(answer.members.size(), 4U);
  EXPECT_EQ(answer.members[0].error, ErrorCode::none);
  EXPECT_EQ(answer.members[0].instance_id, "one");
  EXPECT_EQ(answer.members[1].error, ErrorCode::unknown_member_id);
  EXPECT_EQ(answer.members[2].error, ErrorCode::none);
  EXPECT_EQ(answer.members[3].error, ErrorCode::unknown_member_id);
  EXPECT_EQ(state(), "Empty");
}

TEST_F(StaticMembersTest, OneThatLeavesUnderAnotherMemberIdIsFenced) {
  make_stable({&a, &b});
  auto other = a;
  other.member_id = b.member_id;
  EXPECT_EQ(leave(other).members.at(0).error, ErrorCode::fenced_instance_id);
  other.instance_id = "nobody";
  EXPECT_EQ(leave(other).members.at(0).error, ErrorCode::unknown_member_id);
}

}  // namespace
}  // namespace millrace::consumer_groups::testing
