// What moves by itself, of controllers whose brokers' replicas catch up when the test says so.
#include <algorithm>
#include <chrono>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernel/cluster/reassignment.h"
#include "tests/unit/kernel/cluster/controller_fixture.h"

namespace millrace::kernel {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::UnorderedElementsAre;

class ControllerBalanceTest : public ControllerFixture {
 protected:
  ControllerBalanceTest() { defaults_["cluster.balance.moves.max"] = "2"; }

  void add(Member& on, const std::string& name, const std::vector<Ids>& lists) {
    TopicState topic;
    topic.name = name;
    topic.id.bytes.fill(static_cast<std::uint8_t>(name.size()));
    for (const auto& list : lists) {
      topic.partitions.push_back({.leader = list.front(), .replicas = list, .in_sync = list});
    }
    ControllerFixture::add(on, std::move(topic));
  }
  void set(Member& on, std::map<std::string, std::string> configs) {
    const auto written = run(on, [&] {
      const znodes::ConfigEntity entity{znodes::ConfigEntity::Kind::broker,
                                        std::string(all_brokers_key)};
      std::vector<Write> writes;
      writes.push_back(
          {.key = znodes::configs_of(entity), .value = znodes::encode_configs(configs)});
      writes.push_back({.key = znodes::config_change(++changes_),
                        .value = znodes::encode_config_change(entity)});
      return on.coordination->commit(std::move(writes));
    });
    ASSERT_TRUE(written) << to_string(written.error());
    world_.run_for(seconds(1));
  }

  static std::vector<PartitionState> partitions(Member& on, const std::string& topic) {
    return on.controller->state().find(std::string_view(topic))->partitions;
  }
  static std::vector<TopicPartition> moving(Member& on) {
    std::vector<TopicPartition> moving;
    for (const auto& [name, topic] : on.controller->state().topics) {
      for (std::size_t at = 0; at < topic->partitions.size(); ++at) {
        if (!is_reassigning(topic->partitions[at])) continue;
        moving.push_back({name, static_cast<std::int32_t>(at)});
      }
    }
    return moving;
  }
  // Every replica of the partition that lives is in sync, as its leader finds out.
  void catch_up(Member& on, const TopicPartition& id) {
    const auto& topic = *on.controller->state().find(std::string_view(id.topic));
    const auto state = topic.partitions[static_cast<std::size_t>(id.partition)];
    auto in_sync = state.replicas;
    std::erase_if(in_sync, [&on](std::int32_t broker) {
      return !on.controller->state().brokers.contains(broker);
    });
    const auto answer = change(on, state.leader,
                               {.partition = id,
                                .topic_id = topic.id,
                                .leader_epoch = state.leader_epoch,
                                .partition_epoch = state.partition_epoch,
                                .in_sync = in_sync});
    EXPECT_EQ(answer.error, ErrorCode::none);
    world_.run_for(seconds(1));
  }
  // Until nothing moves; how many partitions have moved.
  std::size_t catch_up_all(Member& on) {
    std::size_t moved = 0;
    while (moved < 100) {
      const auto now = moving(on);
      EXPECT_LE(now.size(), 2U) << "more move at a time than may";
      if (now.empty()) break;
      catch_up(on, now.front());
      ++moved;
    }
    return moved;
  }
  static std::map<std::int32_t, int> replicas(Member& on, const std::string& topic) {
    std::map<std::int32_t, int> counts;
    for (const auto& one : partitions(on, topic)) {
      for (const auto broker : one.replicas) ++counts[broker];
    }
    return counts;
  }
  static std::map<std::int32_t, int> leaders(Member& on, const std::string& topic) {
    std::map<std::int32_t, int> counts;
    for (const auto& one : partitions(on, topic)) ++counts[one.leader];
    return counts;
  }
  // Who is the controller now.
  Member& active() {
    world_.run_for(seconds(2));
    for (auto& [id, member] : members_) {
      if (member->controller->active()) return *member;
    }
    ADD_FAILURE() << "nobody is the controller";
    return *members_.begin()->second;
  }
  std::int64_t gauge(Member& on, const std::string& name) {
    return on.metrics.gauge("millrace_balance_" + name, "").value();
  }

  static std::vector<Ids> rotating(int count) {
    std::vector<Ids> lists;
    for (int n = 0; n < count; ++n) lists.push_back({n % 3 + 1, (n + 1) % 3 + 1, (n + 2) % 3 + 1});
    return lists;
  }

 private:
  std::int64_t changes_ = 0;
};

TEST_F(ControllerBalanceTest, ABrokerThatJoinsGetsItsShareAFewPartitionsAtATime) {
  auto& first = start(1);
  for (const auto id : {2, 3}) start(id);
  add(first, "orders", rotating(12));
  world_.run_for(seconds(5));
  EXPECT_THAT(moving(first), ElementsAre());

  start(4);
  world_.run_for(seconds(1));
  EXPECT_EQ(moving(first).size(), 2U);
  EXPECT_EQ(gauge(first, "moves_in_flight"), 2);
  EXPECT_EQ(gauge(first, "moves_left"), 9);
  EXPECT_TRUE(log_.contains("a broker gets replicas of others"));
  EXPECT_EQ(catch_up_all(first), 9U);
  for (const auto& [broker, count] : replicas(first, "orders")) EXPECT_EQ(count, 9) << broker;
  for (const auto& [broker, count] : leaders(first, "orders")) EXPECT_EQ(count, 3) << broker;
  EXPECT_EQ(leaders(first, "orders").size(), 4U);
  EXPECT_TRUE(log_.contains("brokers have even shares of replicas and preferred leaders"));
  EXPECT_EQ(gauge(first, "moves_left"), 0);
  EXPECT_EQ(first.metrics.counter("millrace_balance_moves_total", "").value(), 9U);

  const auto before = partitions(first, "orders");
  world_.run_for(minutes(30));
  EXPECT_EQ(partitions(first, "orders"), before) << "what is even stays as it is";
}

TEST_F(ControllerBalanceTest, WhoHadLostItsLeadersHasThemAgainOnceSharesAreEven) {
  auto& first = start(1);
  for (const auto id : {2, 3}) start(id);
  add(first, "orders", rotating(12));
  die(member_of(3));
  join(member_of(3));
  world_.run_for(seconds(1));
  for (std::int32_t at = 0; at < 12; ++at) catch_up(first, {"orders", at});
  EXPECT_EQ(leaders(first, "orders").count(3), 0U);
  start(4);
  world_.run_for(seconds(1));
  EXPECT_EQ(catch_up_all(first), 9U);
  for (const auto& [broker, count] : leaders(first, "orders")) EXPECT_EQ(count, 3) << broker;
  EXPECT_EQ(leaders(first, "orders").size(), 4U);
}

TEST_F(ControllerBalanceTest, WhatIsPausedMovesNoFurtherUntilItGoesOn) {
  auto& first = start(1);
  for (const auto id : {2, 3}) start(id);
  add(first, "orders", rotating(12));
  start(4);
  world_.run_for(seconds(1));
  set(first, {{"cluster.balance.enable", "false"}});
  EXPECT_EQ(catch_up_all(first), 2U) << "what had begun";
  EXPECT_EQ(gauge(first, "paused"), 1);
  world_.run_for(minutes(5));
  EXPECT_THAT(moving(first), ElementsAre());

  set(first, {{"cluster.balance.enable", "true"}});
  EXPECT_EQ(gauge(first, "paused"), 0);
  EXPECT_EQ(catch_up_all(first), 7U);
  for (const auto& [broker, count] : replicas(first, "orders")) EXPECT_EQ(count, 9) << broker;
}

TEST_F(ControllerBalanceTest, ADrainedBrokerLeadsNoMoreAtOnceAndIsThenEmptied) {
  auto& first = start(1);
  for (const auto id : {2, 3, 4}) start(id);
  add(first, "orders", {{4, 1, 2}, {1, 4, 3}, {3, 2, 1}, {4, 3, 2}, {2, 4, 1}, {4, 2, 3}});
  world_.run_for(seconds(1));
  set(first, {{"cluster.drain.brokers", "4"}});
  EXPECT_EQ(leaders(first, "orders").count(4), 0U);
  EXPECT_EQ(moving(first).size(), 2U);
  EXPECT_EQ(catch_up_all(first), 5U);
  EXPECT_EQ(replicas(first, "orders").count(4), 0U);
  EXPECT_TRUE(log_.contains("a drained broker is empty: it can be stopped"));

  set(first, {{"cluster.drain.brokers", ""}});
  EXPECT_GT(catch_up_all(first), 0U) << "it gets its share again";
  EXPECT_EQ(replicas(first, "orders").at(4), 4);
}

TEST_F(ControllerBalanceTest, ADrainedBrokerKeepsWhatTooFewOthersAreLeftFor) {
  auto& first = start(1);
  for (const auto id : {2, 3}) start(id);
  add(first, "orders", rotating(3));
  set(first, {{"cluster.drain.brokers", "2"}});
  EXPECT_EQ(leaders(first, "orders").count(2), 0U);
  EXPECT_THAT(moving(first), ElementsAre());
  EXPECT_TRUE(log_.contains("a drained broker keeps replicas: too few other brokers are left"));
  // It leads what nobody else can; then what others can again.
  die(member_of(3));
  EXPECT_EQ(leaders(first, "orders").count(2), 0U);

  join(member_of(3));
  start(4);
  world_.run_for(seconds(1));
  EXPECT_EQ(moving(first).size(), 2U) << "now there is somebody";
}

TEST_F(ControllerBalanceTest, WhoIsDrainedAndGoneIsToldOfAsDrained) {
  auto& first = start(1);
  for (const auto id : {2, 3}) start(id);
  add(first, "orders", {{1, 2, 3}, {3, 1, 2}});
  die(member_of(3));
  set(first, {{"cluster.drain.brokers", "3"}});
  world_.run_for(minutes(1));
  EXPECT_TRUE(log_.contains("a drained broker keeps replicas: too few other brokers are left"));
  EXPECT_FALSE(log_.contains("cannot be replaced"));
  start(4);
  world_.run_for(seconds(30));
  EXPECT_TRUE(log_.contains("a drained broker is gone: its replicas are made anew on others"));
  catch_up_all(first);
  EXPECT_EQ(replicas(first, "orders")[3], 0);
  EXPECT_TRUE(log_.contains("a drained broker that is gone is empty"));
}

TEST_F(ControllerBalanceTest, WhoIsGoneForLongerThanTheSetTimeIsReplaced) {
  defaults_["cluster.balance.replace.after.ms"] = "60000";
  auto& first = start(1);
  for (const auto id : {2, 3, 4}) start(id);
  add(first, "orders", {{1, 2, 3}, {2, 3, 4}, {3, 4, 1}, {4, 1, 2}});
  die(member_of(3));
  world_.run_for(seconds(50));
  EXPECT_THAT(moving(first), ElementsAre());
  world_.run_for(seconds(10));
  EXPECT_EQ(moving(first).size(), 2U);
  EXPECT_TRUE(log_.contains("a broker is gone for too long"));
  EXPECT_EQ(catch_up_all(first), 3U);
  EXPECT_EQ(replicas(first, "orders").count(3), 0U);
  EXPECT_TRUE(log_.contains("a broker that is gone is replaced"));

  join(member_of(3));
  world_.run_for(seconds(1));
  EXPECT_EQ(catch_up_all(first), 3U) << "its share, as whoever joins";
  EXPECT_EQ(replicas(first, "orders").at(3), 3);
}

TEST_F(ControllerBalanceTest, WhileSomebodyIsAwayForAWhileNothingIsMadeEven) {
  auto& first = start(1);
  for (const auto id : {2, 3}) start(id);
  add(first, "orders", rotating(12));
  die(member_of(3));
  start(4);
  world_.run_for(minutes(5));
  EXPECT_THAT(moving(first), ElementsAre());
  join(member_of(3));
  world_.run_for(seconds(1));
  EXPECT_EQ(moving(first).size(), 2U);
}

TEST_F(ControllerBalanceTest, WhatSomebodyMovesByHandIsLeftAlone) {
  auto& first = start(1);
  for (const auto id : {2, 3, 4}) start(id);
  add(first, "orders", {{1, 2}, {2, 3}, {3, 4}, {4, 1}});
  ReassignmentRequest request;
  auto& topic = request.topics.emplace_back();
  topic.topic = "orders";
  topic.partitions.push_back({.partition = 0, .replicas = Ids{2, 3}});
  const auto asked = run(first, [&] { return first.controller->reassign(request); });
  ASSERT_TRUE(asked);
  world_.run_for(seconds(1));
  EXPECT_THAT(moving(first), ElementsAre(TopicPartition{"orders", 0}));
  EXPECT_EQ(gauge(first, "moves_in_flight"), 0) << "it is none of those that move by themselves";
  set(first, {{"cluster.drain.brokers", "3"}});
  EXPECT_THAT(partitions(first, "orders")[0].replicas, UnorderedElementsAre(1, 2, 3));
  catch_up(first, {"orders", 0});
  EXPECT_EQ(partitions(first, "orders")[0].leader, 2) << "it has come to its end";
  catch_up_all(first);
  EXPECT_EQ(replicas(first, "orders").count(3), 0U) << "and then 3 is emptied";
}

TEST_F(ControllerBalanceTest, WhatHadBegunGoesOnWithTheNextController) {
  auto& first = start(1);
  for (const auto id : {2, 3}) start(id);
  add(first, "orders", rotating(12));
  start(4);
  world_.run_for(seconds(1));
  service_.expire(first.node);
  world_.run_for(seconds(5));
  join(first);
  world_.run_for(seconds(5));
  Member* next = nullptr;
  for (const auto id : {2, 3, 4}) {
    if (member_of(id).controller->active()) next = &member_of(id);
  }
  ASSERT_TRUE(next);
  for (int tries = 0; tries < 100 && !moving(*next).empty(); ++tries) {
    catch_up(*next, moving(*next).front());
  }
  for (const auto& [broker, count] : replicas(*next, "orders")) EXPECT_EQ(count, 9) << broker;
}

TEST_F(ControllerBalanceTest, HowLongABrokerIsGoneIsKnownToTheNextController) {
  defaults_["cluster.balance.replace.after.ms"] = "60000";
  auto& first = start(1);
  for (const auto id : {2, 3, 4}) start(id);
  add(first, "orders", {{2, 3}, {3, 4}, {4, 2}});
  die(member_of(3));
  world_.run_for(seconds(40));
  die(first);
  auto& next = active();
  world_.run_for(seconds(10));
  EXPECT_THAT(moving(next), ElementsAre());
  world_.run_for(seconds(10));
  EXPECT_EQ(moving(next).size(), 2U) << "its minute is over";

  // Of who is replaced, or back, nothing is kept.
  EXPECT_EQ(catch_up_all(next), 2U);
  join(member_of(3));
  world_.run_for(seconds(1));
  EXPECT_EQ(*service_.value(std::string(znodes::gone_brokers)), znodes::encode_configs({}));
}

TEST_F(ControllerBalanceTest, NoMoreMoveThanMayWhoeverIsAwayMeanwhile) {
  auto& first = start(1);
  for (const auto id : {2, 3}) start(id);
  add(first, "orders", rotating(12));
  start(4);
  start(5);
  world_.run_for(seconds(1));
  const auto begun = moving(first);
  ASSERT_EQ(begun.size(), 2U);
  // Whom replicas move to is away, and somebody else is to be emptied.
  const auto state = partitions(first, "orders")[static_cast<std::size_t>(begun[0].partition)];
  const auto to = state.adding.front();
  die(member_of(to));
  set(first, {{"cluster.drain.brokers", "2"}});
  const auto now = moving(first);
  EXPECT_EQ(now.size(), 2U) << "who is away holds up nobody";
  EXPECT_NE(now, begun);
  join(member_of(to));
  world_.run_for(seconds(1));
  EXPECT_LE(moving(first).size(), 2U);
  EXPECT_GT(catch_up_all(first), 0U);
  EXPECT_EQ(replicas(first, "orders").count(2), 0U);
}

// Who takes over counts what somebody else has begun, also where it cannot end for now, and does
// not give it up; somebody else is to be emptied, to whom nobody is missing.
TEST_F(ControllerBalanceTest, NoMoreMoveThanMayAfterAFailOver) {
  auto& first = start(1);
  for (const auto id : {2, 3, 4}) start(id);
  auto lists = rotating(12);
  for (auto& list : lists) std::ranges::for_each(list, [](std::int32_t& id) { ++id; });
  add(first, "orders", lists);
  for (const auto id : {5, 6, 7}) start(id);
  world_.run_for(seconds(1));
  const auto begun = moving(first);
  ASSERT_EQ(begun.size(), 2U);
  std::set<std::int32_t> gone{1};
  for (const auto& id : begun) {
    const auto state = partitions(first, id.topic)[static_cast<std::size_t>(id.partition)];
    gone.insert(state.adding.begin(), state.adding.end());
  }
  for (const auto id : gone) service_.expire(member_of(id).node);
  auto& next = active();
  set(next, {{"cluster.drain.brokers", "2"}});
  EXPECT_EQ(moving(next), begun);
  for (const auto id : gone) join(member_of(id));
  world_.run_for(seconds(1));
  EXPECT_EQ(moving(next), begun);
  EXPECT_GT(catch_up_all(next), begun.size());
  EXPECT_EQ(replicas(next, "orders").count(2), 0U);
}

}  // namespace
}  // namespace millrace::kernel
