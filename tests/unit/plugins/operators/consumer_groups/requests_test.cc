// SyncGroup, Heartbeat, LeaveGroup and DescribeGroups: every answer that they may get.
#include "bench.h"

namespace millrace::consumer_groups::testing {
namespace {

class RequestsTest : public Bench {
 public:
  Client a{.client_id = "a"};
  Client b{.client_id = "b"};
};

TEST_F(RequestsTest, OfAGroupThatIsNotThereNothingIsKnown) {
  EXPECT_EQ(heartbeat(a), ErrorCode::unknown_member_id);
  EXPECT_EQ(taken<SyncGroupAnswer>(send_sync(a)).error, ErrorCode::unknown_member_id);
  EXPECT_EQ(leave(a).error, ErrorCode::unknown_member_id);
  EXPECT_TRUE(list().empty());
}

TEST_F(RequestsTest, AnotherGenerationIsIllegal) {
  make_stable({&a});
  auto old = a;
  old.generation = 0;
  EXPECT_EQ(heartbeat(old), ErrorCode::illegal_generation);
  EXPECT_EQ(taken<SyncGroupAnswer>(send_sync(old)).error, ErrorCode::illegal_generation);
  EXPECT_EQ(commit_error(old, 1), ErrorCode::illegal_generation);
}

TEST_F(RequestsTest, AMemberThatIsNotThereIsUnknown) {
  make_stable({&a});
  auto other = a;
  other.member_id = "other";
  EXPECT_EQ(heartbeat(other), ErrorCode::unknown_member_id);
  EXPECT_EQ(taken<SyncGroupAnswer>(send_sync(other)).error, ErrorCode::unknown_member_id);
  EXPECT_EQ(commit_error(other, 1), ErrorCode::unknown_member_id);
  EXPECT_EQ(leave(other).members.at(0).error, ErrorCode::unknown_member_id);
  EXPECT_EQ(state(), "Stable");
}

TEST_F(RequestsTest, ASyncInARebalanceComesTooLate) {
  make_stable({&a});
  const auto joining = begin_join(b);
  EXPECT_EQ(taken<SyncGroupAnswer>(send_sync(a)).error, ErrorCode::rebalance_in_progress);
  EXPECT_TRUE(waits(joining));
}

TEST_F(RequestsTest, ASyncOfAnotherProtocolIsInconsistent) {
  make_stable({&a});
  SyncGroupRequest request{.group = "g",
                           .generation = a.generation,
                           .member_id = a.member_id,
                           .protocol_type = "connect"};
  EXPECT_EQ(ask<SyncGroupAnswer>("g", request).error, ErrorCode::inconsistent_group_protocol);
  request.protocol_type = "consumer";
  request.protocol = "sticky";
  EXPECT_EQ(ask<SyncGroupAnswer>("g", request).error, ErrorCode::inconsistent_group_protocol);
  request.protocol = "range";
  const auto answer = ask<SyncGroupAnswer>("g", request);
  EXPECT_EQ(answer.error, ErrorCode::none);
  EXPECT_EQ(answer.protocol, "range");
  EXPECT_EQ(answer.protocol_type, "consumer");
}

TEST_F(RequestsTest, WhomTheLeaderForgetsGetsNothing) {
  const auto joining_a = begin_join(a);
  const auto joining_b = begin_join(b);
  driver.advance(7s);
  (void)end_join(a, joining_a);
  (void)end_join(b, joining_b);
  const auto waiting = send_sync(b, {{b.member_id, Buffer::copy_of("not the leader's")}});
  EXPECT_TRUE(waits(waiting));
  const auto led = send_sync(
      a, {{a.member_id, Buffer::copy_of("all")}, {"somebody else", Buffer::copy_of("some")}});
  EXPECT_EQ(taken<SyncGroupAnswer>(led).assignment.text(), "all");
  EXPECT_EQ(taken<SyncGroupAnswer>(waiting).assignment.text(), "");
  EXPECT_EQ(describe("g").members.size(), 2U);
}

TEST_F(RequestsTest, AMemberThatJoinsWhileOthersWaitForTheirAssignmentStartsOver) {
  const auto joining_a = begin_join(a);
  const auto joining_b = begin_join(b);
  driver.advance(7s);
  (void)end_join(a, joining_a);
  (void)end_join(b, joining_b);
  const auto waiting = send_sync(b);
  EXPECT_EQ(heartbeat(a), ErrorCode::none);
  Client c{.client_id = "c"};
  (void)begin_join(c);
  EXPECT_EQ(taken<SyncGroupAnswer>(waiting).error, ErrorCode::rebalance_in_progress);
  EXPECT_EQ(heartbeat(a), ErrorCode::rebalance_in_progress);
}

TEST_F(RequestsTest, AMemberLeavesAndTheOthersGoOn) {
  make_stable({&a, &b});
  EXPECT_EQ(leave(b).members.at(0).error, ErrorCode::none);
  EXPECT_EQ(heartbeat(b), ErrorCode::unknown_member_id);
  EXPECT_EQ(heartbeat(a), ErrorCode::rebalance_in_progress);
  rebalance({&a});
  EXPECT_EQ(describe("g").members.size(), 1U);
}

TEST_F(RequestsTest, AMemberThatLeavesIsNotWaitedForAnyMore) {
  make_stable({&a, &b});
  const auto joining = send_join(a);
  EXPECT_TRUE(waits(joining));
  (void)leave(b);
  EXPECT_EQ(end_join(a, joining).members.size(), 1U);
}

TEST_F(RequestsTest, AnIdThatIsNotUsedYetMayBeGivenBack) {
  make_stable({&a});
  b.member_id = taken<JoinGroupAnswer>(send_join(b)).member_id;
  EXPECT_EQ(leave(b).members.at(0).error, ErrorCode::none);
  EXPECT_EQ(state(), "Stable");
  EXPECT_EQ(taken<JoinGroupAnswer>(send_join(b)).error, ErrorCode::unknown_member_id);
}

TEST_F(RequestsTest, ASettledGroupIsDescribedWithWhatItsMembersSay) {
  make_stable({&a});
  const auto settled = describe("g");
  EXPECT_EQ(settled.error, ErrorCode::none);
  EXPECT_EQ(settled.state, "Stable");
  EXPECT_EQ(settled.protocol, "range");
  ASSERT_EQ(settled.members.size(), 1U);
  EXPECT_EQ(settled.members[0].client_id, "a");
  EXPECT_EQ(settled.members[0].client_host, "/10.0.0.1");
  EXPECT_EQ(settled.members[0].metadata.text(), a.protocols[0].metadata.text());
  EXPECT_EQ(settled.members[0].assignment.text(), "for a");

  (void)begin_join(b);
  const auto moving = describe("g");
  EXPECT_EQ(moving.state, "PreparingRebalance");
  EXPECT_EQ(moving.protocol, "");
  ASSERT_EQ(moving.members.size(), 2U);
  EXPECT_TRUE(moving.members[0].assignment.empty());
}

// G13: nothing here reads what another kind of client means.
TEST_F(RequestsTest, AGroupOfAnotherKindIsDescribedAtOnce) {
  Client connect{.type = "connect", .protocols = {{"compatible", Buffer::copy_of("\xff\x00?")}}};
  make_stable({&connect});
  EXPECT_EQ(describe("g").protocol_type, "connect");
  EXPECT_EQ(list().at(0).protocol_type, "connect");
  EXPECT_EQ(ask<GroupDeleted>("g", Remove{}).error, ErrorCode::non_empty_group);
  EXPECT_EQ(ask<OffsetsDeleted>("g", OffsetDeletion{"g", {{"orders", {0}}}}).error,
            ErrorCode::non_empty_group);
  EXPECT_EQ(leave(connect).members.at(0).error, ErrorCode::none);
  EXPECT_EQ(ask<GroupDeleted>("g", Remove{}).error, ErrorCode::none);
  EXPECT_TRUE(list().empty());
}

TEST_F(RequestsTest, AnUnknownGroupIsDead) {
  const auto unknown = describe("nobody");
  EXPECT_EQ(unknown.error, ErrorCode::group_id_not_found);
  EXPECT_EQ(unknown.message, "Group nobody not found.");
  EXPECT_EQ(unknown.state, "Dead");
}

TEST_F(RequestsTest, GroupsAreListedByStateAndType) {
  Client other{.group = "h"};
  make_stable({&a});
  make_stable({&other});
  EXPECT_EQ(commit_error({.group = "simple"}, 1), ErrorCode::none);
  (void)leave(a);
  const auto names = [this](GroupFilter filter) {
    std::vector<std::string> out;
    for (const auto& group : list(std::move(filter))) out.push_back(group.group);
    return out;
  };
  EXPECT_EQ(names({}), (std::vector<std::string>{"g", "h", "simple"}));
  EXPECT_EQ(names({.states = {"stable"}}), (std::vector<std::string>{"h"}));
  EXPECT_EQ(names({.states = {"EMPTY"}}), (std::vector<std::string>{"g", "simple"}));
  EXPECT_EQ(names({.states = {"Stable"}, .types = {"consumer"}}), (std::vector<std::string>{}));
  EXPECT_EQ(names({.types = {"Classic"}}).size(), 3U);
  EXPECT_EQ(list({.states = {"Stable"}}).at(0).type, "classic");
}

TEST_F(RequestsTest, WhoAsksAsAnyAggregateIsAskedIsTurnedAway) {
  const auto answer = driver.query("g", BytesMessage(Buffer()));
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, Errc::invalid_argument);
  EXPECT_EQ(answer.error().detail, "groups take requests of the protocol alone");
  EXPECT_EQ(driver.error(driver.send("g", "text")), ErrorCode::invalid_request);
}

}  // namespace
}  // namespace millrace::consumer_groups::testing
