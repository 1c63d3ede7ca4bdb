// JoinGroup: who may join, as whom.
#include "bench.h"

namespace millrace::consumer_groups::testing {
namespace {

class JoinTest : public Bench {
 public:
  JoinGroupAnswer join_refused(const Client& client) {
    return taken<JoinGroupAnswer>(send_join(client));
  }
};

TEST_F(JoinTest, ANewMemberIsToldItsIdFirst) {
  Client client{.client_id = "app"};
  const auto told = join_refused(client);
  EXPECT_EQ(told.error, ErrorCode::member_id_required);
  EXPECT_TRUE(told.member_id.starts_with("app-"));
  EXPECT_EQ(told.member_id.size(), 4U + 36U);  // a UUID as Java writes it
  EXPECT_EQ(told.generation, -1);
  EXPECT_EQ(state(), "Empty");  // the id is not a member yet

  client.member_id = told.member_id;
  const auto joining = send_join(client);
  EXPECT_TRUE(waits(joining));
  driver.advance(3s);
  const auto joined = end_join(client, joining);
  EXPECT_EQ(joined.error, ErrorCode::none);
  EXPECT_EQ(joined.member_id, told.member_id);
  EXPECT_EQ(joined.generation, 1);
}

TEST_F(JoinTest, ASessionOutOfBoundsIsRefusedAndLeavesNoGroup) {
  for (const Duration session : {Duration(1ms), Duration(24h)}) {
    Client client{.session = session};
    EXPECT_EQ(join_refused(client).error, ErrorCode::invalid_session_timeout);
  }
  EXPECT_TRUE(list().empty());
}

TEST_F(JoinTest, AnOlderClientJoinsAtOnce) {
  Client client{.known_id = false};
  const auto joining = send_join(client);
  driver.advance(3s);
  EXPECT_EQ(end_join(client, joining).error, ErrorCode::none);
  EXPECT_TRUE(client.member_id.starts_with("c-"));
}

TEST_F(JoinTest, AnIdThatIsNotUsedIsForgottenAfterItsSession) {
  Client client;
  client.member_id = join_refused(client).member_id;
  driver.advance(client.session);
  EXPECT_EQ(join_refused(client).error, ErrorCode::unknown_member_id);
  EXPECT_TRUE(list().empty());
}

TEST_F(JoinTest, TheFirstMemberLeadsAndSeesTheOthers) {
  Client a{.client_id = "a"};
  Client b{.client_id = "b"};
  const auto joining_a = begin_join(a);
  const auto joining_b = begin_join(b);
  driver.advance(7s);
  const auto joined_a = end_join(a, joining_a);
  const auto joined_b = end_join(b, joining_b);
  EXPECT_EQ(joined_a.leader, a.member_id);
  EXPECT_EQ(joined_b.leader, a.member_id);
  EXPECT_EQ(joined_a.protocol, "range");
  EXPECT_EQ(joined_a.protocol_type, "consumer");
  ASSERT_EQ(joined_a.members.size(), 2U);
  EXPECT_EQ(joined_a.members[1].member_id, b.member_id);
  EXPECT_EQ(joined_a.members[1].metadata.text(), b.protocols[0].metadata.text());
  EXPECT_TRUE(joined_b.members.empty());
}

TEST_F(JoinTest, AMemberIdThatNobodyHasIsUnknown) {
  EXPECT_EQ(join_refused({.member_id = "who"}).error, ErrorCode::unknown_member_id);
  Client a;
  make_stable({&a});
  const auto answer = join_refused({.member_id = "who"});
  EXPECT_EQ(answer.error, ErrorCode::unknown_member_id);
  EXPECT_EQ(answer.member_id, "who");
}

TEST_F(JoinTest, ASessionIsNeitherTooShortNorTooLong) {
  EXPECT_EQ(join_refused({.session = 5999ms}).error, ErrorCode::invalid_session_timeout);
  EXPECT_EQ(join_refused({.session = 1801s}).error, ErrorCode::invalid_session_timeout);
  EXPECT_EQ(join_refused({.member_id = "m", .session = 1s}).member_id, "m");
  EXPECT_EQ(join_refused({.session = 6s}).error, ErrorCode::member_id_required);
  driver.set("group.min.session.timeout.ms", "100");
  driver.advance(1s);
  EXPECT_EQ(join_refused({.session = 100ms}).error, ErrorCode::member_id_required);
}

TEST_F(JoinTest, ProtocolsMustBeNamedAndSharedByAll) {
  EXPECT_EQ(join_refused({.protocols = {}}).error, ErrorCode::inconsistent_group_protocol);
  EXPECT_EQ(join_refused({.type = ""}).error, ErrorCode::inconsistent_group_protocol);
  Client a;
  make_stable({&a});
  EXPECT_EQ(join_refused({.protocols = {{"sticky", {}}}}).error,
            ErrorCode::inconsistent_group_protocol);
  EXPECT_EQ(join_refused({.type = "connect"}).error, ErrorCode::inconsistent_group_protocol);
  EXPECT_EQ(heartbeat(a), ErrorCode::none);
}

TEST_F(JoinTest, TheProtocolThatMostPreferOfThoseThatAllSpeakIsChosen) {
  Client a{.client_id = "a", .protocols = {{"range", {}}, {"sticky", {}}, {"own", {}}}};
  Client b{.client_id = "b", .protocols = {{"sticky", {}}, {"range", {}}}};
  Client c{.client_id = "c", .protocols = {{"other", {}}, {"sticky", {}}, {"range", {}}}};
  const auto joining_a = begin_join(a);
  const auto joining_b = begin_join(b);
  const auto joining_c = begin_join(c);
  driver.advance(10s);
  EXPECT_EQ(end_join(a, joining_a).protocol, "sticky");
  (void)end_join(b, joining_b);
  (void)end_join(c, joining_c);
}

TEST_F(JoinTest, AProtocolThatIsNamedTwiceCountsOnce) {
  Client a{.client_id = "a", .protocols = {{"range", {}}, {"range", {}}}};
  Client b{.client_id = "b", .protocols = {{"sticky", {}}, {"range", {}}}};
  const auto joining_a = begin_join(a);
  const auto joining_b = begin_join(b);
  driver.advance(10s);
  EXPECT_EQ(end_join(a, joining_a).protocol, "range");
  EXPECT_EQ(end_join(b, joining_b).protocol, "range");
}

TEST_F(JoinTest, AFollowerThatHasNotChangedGetsItsGenerationAgain) {
  Client a{.client_id = "a"};
  Client b{.client_id = "b"};
  make_stable({&a, &b});
  const auto again = taken<JoinGroupAnswer>(send_join(b));
  EXPECT_EQ(again.error, ErrorCode::none);
  EXPECT_EQ(again.generation, 1);
  EXPECT_EQ(again.leader, a.member_id);
  EXPECT_TRUE(again.members.empty());
  EXPECT_EQ(state(), "Stable");
}

TEST_F(JoinTest, AFollowerThatHasChangedStartsARebalance) {
  Client a{.client_id = "a"};
  Client b{.client_id = "b"};
  make_stable({&a, &b});
  b.protocols = {{"range", subscription({"orders", "bills"})}};
  const auto joining = send_join(b);
  EXPECT_TRUE(waits(joining));
  EXPECT_EQ(heartbeat(a), ErrorCode::rebalance_in_progress);
  const auto joining_a = send_join(a);
  EXPECT_EQ(end_join(a, joining_a).generation, 2);
  EXPECT_EQ(end_join(b, joining).generation, 2);
  sync_all({&a, &b});
}

TEST_F(JoinTest, ALeaderThatJoinsAgainWantsANewGeneration) {
  Client a;
  make_stable({&a});
  const auto joining = send_join(a);
  EXPECT_EQ(end_join(a, joining).generation, 2);
  EXPECT_EQ(state(), "CompletingRebalance");
}

TEST_F(JoinTest, WhoMissedTheAnswerOfTheGenerationGetsItAgain) {
  Client a{.client_id = "a"};
  Client b{.client_id = "b"};
  const auto joining_a = begin_join(a);
  const auto joining_b = begin_join(b);
  driver.advance(10s);
  (void)end_join(a, joining_a);
  (void)end_join(b, joining_b);
  const auto leader = taken<JoinGroupAnswer>(send_join(a));
  EXPECT_EQ(leader.generation, 1);
  EXPECT_EQ(leader.members.size(), 2U);
  EXPECT_EQ(taken<JoinGroupAnswer>(send_join(b)).generation, 1);
  b.protocols = {{"range", subscription({"bills"})}};
  EXPECT_TRUE(waits(send_join(b)));  // but not with other metadata
  EXPECT_EQ(state(), "PreparingRebalance");
}

TEST_F(JoinTest, ARetryTakesThePlaceOfTheRequestBefore) {
  Client a{.client_id = "a"};
  Client b{.client_id = "b"};
  make_stable({&a, &b});
  const auto first = send_join(a);
  const auto second = send_join(a);
  EXPECT_EQ(taken<JoinGroupAnswer>(first).error, ErrorCode::rebalance_in_progress);
  EXPECT_TRUE(waits(second));
  const auto joining_b = send_join(b);
  EXPECT_EQ(end_join(a, second).error, ErrorCode::none);
  EXPECT_EQ(end_join(b, joining_b).error, ErrorCode::none);
}

// G03: a limit is never passed, however many come at once.
TEST_F(JoinTest, OfFiftyAtOnceFiveAreLetIn) {
  driver.set("group.max.size", "5");
  driver.advance(2s);
  std::vector<Client> clients(50);
  std::vector<ReplyTo> joins;
  for (auto& client : clients) {
    client.known_id = false;
    joins.push_back(send_join(client));
  }
  driver.advance(7s);
  std::vector<Client*> in;
  for (std::size_t at = 0; at < clients.size(); ++at) {
    const auto answer = taken<JoinGroupAnswer>(joins[at]);
    if (answer.error == ErrorCode::group_max_size_reached) {
      EXPECT_EQ(answer.member_id, "");
      continue;
    }
    (void)end_join(clients[at], joins[at]);
    in.push_back(&clients[at]);
  }
  EXPECT_EQ(in.size(), 5U);
  sync_all(in);
  Client late;
  EXPECT_EQ(join_refused(late).error, ErrorCode::group_max_size_reached);
  EXPECT_EQ(describe("g").members.size(), 5U);
}

TEST_F(JoinTest, AGroupAboveANewLimitShrinksInARebalance) {
  Client a{.client_id = "a"};
  Client b{.client_id = "b"};
  Client c{.client_id = "c"};
  make_stable({&a, &b, &c});
  driver.set("group.max.size", "2");
  driver.advance(2s);
  ASSERT_TRUE(driver.reload());
  EXPECT_EQ(heartbeat(a), ErrorCode::rebalance_in_progress);
  const auto joining_a = send_join(a);
  const auto joining_b = send_join(b);
  const auto joining_c = send_join(c);
  EXPECT_EQ(taken<JoinGroupAnswer>(joining_c).error, ErrorCode::group_max_size_reached);
  EXPECT_EQ(end_join(a, joining_a).error, ErrorCode::none);
  EXPECT_EQ(end_join(b, joining_b).error, ErrorCode::none);
}

// ---- what members say of themselves ----

GroupProtocol of_bytes(std::size_t bytes, const std::string& name = "range") {
  return {name, Buffer::copy_of(std::string(bytes, 'x'))};
}

TEST_F(JoinTest, AMemberThatFitsNoRecordIsRefused) {
  driver.set("message.max.bytes", "10000");
  driver.advance(2s);
  Client large{.protocols = {of_bytes(5'000), of_bytes(5'000, "sticky")}};
  EXPECT_EQ(join_refused(large).error, ErrorCode::invalid_request);
  EXPECT_TRUE(list().empty());
  Client fits{.protocols = {of_bytes(4'000), of_bytes(4'000, "sticky")}};
  make_stable({&fits});
  ASSERT_EQ(log.lines().size(), 1U);
  EXPECT_TRUE(log.contains("a member is refused; raise message.max.bytes"));
  EXPECT_TRUE(log.contains("group=g"));
}

TEST_F(JoinTest, AGroupTakesNoMoreThanItCanKeep) {
  driver.set("message.max.bytes", "10000");
  driver.advance(2s);
  std::vector<Client> clients(40, Client{.protocols = {of_bytes(4'000)}, .known_id = false});
  std::vector<Client*> in;
  std::vector<ReplyTo> joins;
  for (auto& client : clients) {
    const auto join = send_join(client);
    if (waits(join)) {
      in.push_back(&client);
      joins.push_back(join);
    } else {
      EXPECT_EQ(taken<JoinGroupAnswer>(join).error, ErrorCode::group_max_size_reached);
    }
  }
  EXPECT_EQ(in.size(), 18U);  // 8 records of 10,000 bytes
  EXPECT_EQ(log.lines().size(), 1U);
  driver.advance(10s);
  for (std::size_t at = 0; at < in.size(); ++at) (void)end_join(*in[at], joins[at]);
  // Those who are in may join again as large as they are, and no larger.
  const auto again = send_join(*in[1]);
  in[2]->protocols = {of_bytes(6'000), of_bytes(3'000, "sticky")};
  EXPECT_EQ(taken<JoinGroupAnswer>(send_join(*in[2])).error, ErrorCode::group_max_size_reached);
  EXPECT_TRUE(waits(again) || taken<JoinGroupAnswer>(again).error == ErrorCode::none);
  // Whoever leaves makes room.
  EXPECT_EQ(leave(*in[3]).error, ErrorCode::none);
  Client next{.protocols = {of_bytes(4'000)}, .known_id = false};
  EXPECT_TRUE(waits(send_join(next)));
}

}  // namespace
}  // namespace millrace::consumer_groups::testing
