// Groups that change their protocol while their members go on.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "consumer.h"
#include "plugins/operators/consumer_groups/consumer/classic_protocol.h"

namespace millrace::consumer_groups::testing {
namespace {

class MigrationTest : public ConsumerBench {
 public:
  /// A subscription of version 3, as cooperative clients send it.
  Buffer owning(const std::set<Place>& owned) {
    kafka::ConsumerProtocolSubscription content;
    content.topics = {"orders"};
    for (const auto& [id, partitions] : topics_of(owned)) {
      content.owned_partitions.push_back(
          {.topic = driver.cluster().find(id)->name, .partitions = partitions});
    }
    content.generation_id = 1;
    return *encode_value(content, 3);
  }
  Buffer assignment(const std::vector<std::int32_t>& partitions) {
    Owned owned;
    for (const auto p : partitions) owned[topic("orders")][p] = 0;
    return *write_assignment(owned, 1, driver.cluster());
  }

  /// Two classic members with two partitions each.
  void make_classic() {
    const std::vector tokens{begin_join(one), begin_join(two)};
    driver.advance(6s);
    end_join(one, tokens[0]);
    end_join(two, tokens[1]);
    const auto& leader = one.leads() ? one : two;
    const auto& follower = one.leads() ? two : one;
    send_sync(follower);
    send_sync(leader, {{one.member_id, assignment({0, 1})}, {two.member_id, assignment({2, 3})}});
    ASSERT_EQ(state(), "Stable");
  }

  /// Heartbeat, and when that says so JoinGroup with what is still owned, and SyncGroup.
  void beat_classic(Client& client, std::set<Place>& owned) {
    if (heartbeat(client) != ErrorCode::rebalance_in_progress) return;
    client.protocols.front().metadata = owning(owned);
    const auto joined = taken<JoinGroupAnswer>(send_join(client));
    ASSERT_EQ(joined.error, ErrorCode::none);
    client.generation = joined.generation;
    const auto synced = taken<SyncGroupAnswer>(send_sync(client));
    ASSERT_EQ(synced.error, ErrorCode::none);
    const auto assigned = read_assignment(synced.assignment, driver.cluster());
    ASSERT_TRUE(assigned);
    owned.clear();
    for (const auto& [id, partitions] : assigned->partitions) {
      for (const auto p : partitions) owned.emplace(id, p);
    }
  }

  void settle_all(std::vector<std::pair<Client*, std::set<Place>*>> classic,
                  std::vector<Consumer*> consumers) {
    for (int round = 0; round < 8; ++round) {
      for (auto& [client, owned] : classic) beat_classic(*client, *owned);
      for (auto* consumer : consumers) {
        EXPECT_EQ(beat(*consumer).error, ErrorCode::none);
        settle(*consumer);
      }
    }
  }

  ErrorCode leave_one(const Client& client) { return Bench::leave(client).members.at(0).error; }

  std::string type() {
    const auto groups = list();
    return groups.empty() ? "" : groups.front().type;
  }

  Client one{.client_id = "one"};
  Client two{.client_id = "two"};
  std::set<Place> ones{Place(topic("orders"), 0), Place(topic("orders"), 1)};
  std::set<Place> twos{Place(topic("orders"), 2), Place(topic("orders"), 3)};
};

TEST_F(MigrationTest, AGroupMovesWithItsFirstNewMemberAndBackWithItsLast) {
  make_classic();
  Consumer c{.id = "c"};
  const auto joined = join(c);
  EXPECT_EQ(joined.error, ErrorCode::none) << joined.message;
  EXPECT_EQ(type(), "consumer");
  EXPECT_TRUE(c.assigned.empty()) << "all are those of classic members";
  EXPECT_EQ(described().members.size(), 3U);
  EXPECT_EQ(described().members.front().type == 0 || described().members.back().type == 0, true);

  settle_all({{&one, &ones}, {&two, &twos}}, {&c});
  EXPECT_EQ(described().state, "Stable");
  EXPECT_EQ(ones.size() + twos.size() + c.owned.size(), 4U);
  EXPECT_FALSE(c.owned.empty());
  EXPECT_EQ(commit_error(one, 5, "orders", ones.begin()->second), ErrorCode::none);

  leave(c);
  EXPECT_EQ(type(), "classic");
  driver.advance(1s);
  EXPECT_EQ(state(), "PreparingRebalance");
  EXPECT_EQ(heartbeat(one), ErrorCode::rebalance_in_progress);
  rebalance({&one, &two});
  EXPECT_EQ(state(), "Stable");
  EXPECT_EQ(offset_of("g", "orders", ones.begin()->second), 5);
}

TEST_F(MigrationTest, NeverHasAPartitionTwoOwners) {
  make_classic();
  Consumer c{.id = "c"};
  Consumer d{.id = "d"};
  join(c);
  join(d);
  for (int round = 0; round < 12; ++round) {
    beat_classic(one, ones);
    beat_classic(two, twos);
    for (auto* consumer : {&c, &d}) {
      beat(*consumer);
      settle(*consumer);
    }
    std::multiset<Place> all;
    for (const auto* owned : {&ones, &twos, &c.owned, &d.owned}) {
      all.insert(owned->begin(), owned->end());
    }
    EXPECT_LE(all.size(), 4U);
    for (const auto& place : all) EXPECT_EQ(all.count(place), 1U) << place.second;
  }
  for (const auto* owned : {&ones, &twos, &c.owned, &d.owned}) EXPECT_EQ(owned->size(), 1U);
}

TEST_F(MigrationTest, ASilentClassicMemberIsOut) {
  make_classic();
  Consumer c{.id = "c"};
  join(c);
  for (int i = 0; i < 3; ++i) {
    driver.advance(4s);
    beat_classic(one, ones);
    beat(c);
    settle(c);
  }
  EXPECT_EQ(heartbeat(two), ErrorCode::unknown_member_id);
  settle_all({{&one, &ones}}, {&c});
  EXPECT_EQ(ones.size(), 2U);
  EXPECT_EQ(c.owned.size(), 2U);
}

TEST_F(MigrationTest, AClassicMemberMayJoinAndLeave) {
  Consumer c{.id = "c"};
  join(c);
  converge({&c});
  one.protocols.front().metadata = owning({});
  auto answer = taken<JoinGroupAnswer>(send_join(one));
  EXPECT_EQ(answer.error, ErrorCode::member_id_required);
  one.member_id = answer.member_id;
  answer = taken<JoinGroupAnswer>(send_join(one));
  EXPECT_EQ(answer.error, ErrorCode::none);
  EXPECT_EQ(answer.protocol, "range");
  EXPECT_TRUE(answer.members.empty()) << "nobody leads";
  one.generation = answer.generation;
  EXPECT_EQ(taken<SyncGroupAnswer>(send_sync(one)).error, ErrorCode::none);
  ones.clear();
  settle_all({{&one, &ones}}, {&c});
  EXPECT_EQ(ones.size(), 2U);

  Client strange{.client_id = "strange", .member_id = "s", .type = "connect"};
  EXPECT_EQ(taken<JoinGroupAnswer>(send_join(strange)).error,
            ErrorCode::inconsistent_group_protocol);
  Client broken{.client_id = "broken", .member_id = "b"};
  broken.protocols.front().metadata = Buffer::copy_of(std::string_view("x"));
  EXPECT_EQ(taken<JoinGroupAnswer>(send_join(broken)).error,
            ErrorCode::inconsistent_group_protocol);

  EXPECT_EQ(leave_one(one), ErrorCode::none);
  converge({&c});
  EXPECT_EQ(c.owned.size(), 4U);
}

TEST_F(MigrationTest, StaleGenerationsAndForeignMembersAreTold) {
  make_classic();
  Consumer c{.id = "c"};
  join(c);
  auto stale = one;
  stale.generation = 77;
  EXPECT_EQ(heartbeat(stale), ErrorCode::illegal_generation);
  EXPECT_EQ(taken<SyncGroupAnswer>(send_sync(stale)).error, ErrorCode::illegal_generation);
  EXPECT_EQ(commit_error(stale, 5), ErrorCode::illegal_generation);
  Client foreign{.member_id = "c", .generation = c.epoch};
  EXPECT_EQ(heartbeat(foreign), ErrorCode::unknown_member_id) << "speaks the other protocol";
}

TEST_F(MigrationTest, ThePolicyDecides) {
  set("group.consumer.migration.policy", "downgrade");
  make_classic();
  Consumer c{.id = "c"};
  EXPECT_EQ(join(c).error, ErrorCode::group_id_not_found);
  EXPECT_EQ(type(), "classic");
  set("group.consumer.migration.policy", "Upgrade");
  EXPECT_EQ(join(c).error, ErrorCode::none);
  EXPECT_EQ(type(), "consumer");
  leave(c);
  EXPECT_EQ(type(), "consumer") << "and stays it";
}

TEST_F(MigrationTest, AGroupThatIsNotOfConsumersStaysWhatItIs) {
  for (auto* client : {&one, &two}) client->type = "connect";
  make_classic();
  Consumer c{.id = "c"};
  EXPECT_EQ(join(c).error, ErrorCode::group_id_not_found);
  EXPECT_EQ(state(), "Stable");
}

TEST_F(MigrationTest, EmptyGroupsChangeWithWhoeverComes) {
  make_classic();
  leave_one(one);
  leave_one(two);
  Consumer c{.id = "c"};
  EXPECT_EQ(join(c).error, ErrorCode::none);
  EXPECT_EQ(type(), "consumer");
  driver.advance(40s);
  EXPECT_EQ(beat(c).error, ErrorCode::none);
  leave(c);
  one.member_id.clear();
  const auto token = begin_join(one);
  driver.advance(3s);
  end_join(one, token);
  EXPECT_EQ(type(), "classic");
}

TEST_F(MigrationTest, AnUpgradeWhoseRecordsAreLostChangesNothing) {
  make_classic();
  driver.fail_appends();
  MemberHeartbeat ask{.client = {"c", "/h"}, .request = {}};
  ask.request.group = "g";
  ask.request.member_id = "c";
  ask.request.rebalance_timeout = 1s;
  ask.request.subscribed_names = std::vector<std::string>{"orders"};
  ask.request.owned.emplace();
  Bench::send("g", ask);
  driver.advance(1s);
  EXPECT_EQ(type(), "classic");
  EXPECT_EQ(heartbeat(one), ErrorCode::none);
}

}  // namespace
}  // namespace millrace::consumer_groups::testing
