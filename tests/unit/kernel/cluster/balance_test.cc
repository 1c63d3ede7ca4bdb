// Plans on states made by hand and by chance: they end, leave nothing to plan, and what they reach
// is even.
#include "kernel/cluster/balance.h"

#include <algorithm>
#include <map>
#include <random>
#include <ranges>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace millrace::kernel {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

using Ids = std::vector<std::int32_t>;
using Lists = std::vector<Ids>;

struct Situation {
  ClusterState cluster;
  BalanceTerms terms;

  void broker(std::int32_t id, const std::string& rack = "") {
    cluster.brokers[id] = {.id = id, .rack = rack};
    terms.willing.insert(id);
  }
  void brokers(std::int32_t count) {
    for (std::int32_t id = 1; id <= count; ++id) broker(id);
  }
  void topic(const std::string& name, const Lists& lists) {
    TopicState topic;
    topic.name = name;
    for (std::size_t at = 0; at < topic.id.bytes.size(); ++at) {
      topic.id.bytes[at] = static_cast<std::uint8_t>(at < name.size() ? name[at] : 7);
    }
    for (const auto& list : lists) {
      topic.partitions.push_back({.leader = list.front(), .replicas = list, .in_sync = list});
    }
    cluster.put(std::move(topic));
  }
  void drain(std::int32_t id) {
    terms.willing.erase(id);
    terms.unwanted.insert(id);
  }
  void die(std::int32_t id, bool for_long) {
    terms.willing.erase(id);
    cluster.brokers.erase(id);
    if (for_long) terms.unwanted.insert(id);
  }
  const Ids& list(const std::string& topic, std::size_t at) const {
    return cluster.find(std::string_view(topic))->partitions[at].replicas;
  }
  void carry_out(const BalanceMove& move) {
    auto topic = *cluster.find(std::string_view(move.id.topic));
    auto& partition = topic.partitions[static_cast<std::size_t>(move.id.partition)];
    partition.replicas = move.replicas;
    partition.in_sync = move.replicas;
    partition.leader = move.replicas.front();
    cluster.put(std::move(topic));
  }
  void carry_out(const std::vector<BalanceMove>& moves) {
    for (const auto& move : moves) carry_out(move);
  }
};

using Counts = std::map<std::int32_t, std::int64_t>;

Counts counts_of(const Situation& situation, bool leaders, const TopicState* only = nullptr) {
  Counts counts;
  for (const auto id : situation.terms.willing) counts[id] = 0;
  for (const auto& [name, topic] : situation.cluster.topics) {
    if (only && only->name != name) continue;
    for (const auto& partition : topic->partitions) {
      const auto& list = partition.replicas;
      for (const auto id : leaders ? Ids{list.front()} : list) {
        if (counts.contains(id)) ++counts[id];
      }
    }
  }
  return counts;
}

std::int64_t spread(const Counts& counts) {
  const auto [least, most] =
      std::ranges::minmax_element(counts, {}, [](const auto& entry) { return entry.second; });
  return counts.empty() ? 0 : most->second - least->second;
}

std::size_t racks_of(const Situation& situation, const Ids& list) {
  std::set<std::string> racks;
  for (const auto id : list) {
    const auto found = situation.cluster.brokers.find(id);
    racks.insert(found == situation.cluster.brokers.end() ? "?" : found->second.rack);
  }
  return racks.size();
}

std::size_t replicas_moved(const std::vector<BalanceMove>& moves) {
  std::size_t count = 0;
  for (const auto& move : moves) count += move.getting.size();
  return count;
}

TEST(BalanceTest, ABrokerThatJoinsGetsItsShareOfReplicasAndLeaders) {
  Situation now;
  now.brokers(3);
  Lists lists;
  for (std::int32_t n = 0; n < 12; ++n) {
    lists.push_back({n % 3 + 1, (n + 1) % 3 + 1, (n + 2) % 3 + 1});
  }
  now.topic("orders", lists);
  EXPECT_FALSE(is_uneven(now.cluster, now.terms));
  EXPECT_THAT(plan_balance(now.cluster, now.terms, true).moves, IsEmpty());

  now.broker(4);
  EXPECT_TRUE(is_uneven(now.cluster, now.terms));
  const auto plan = plan_balance(now.cluster, now.terms, true);
  EXPECT_EQ(replicas_moved(plan.moves), 9u) << "no more than its share moves";
  now.carry_out(plan.moves);
  for (const auto& [id, count] : counts_of(now, false)) EXPECT_EQ(count, 9) << id;
  for (const auto& [id, count] : counts_of(now, true)) EXPECT_EQ(count, 3) << id;
  EXPECT_FALSE(is_uneven(now.cluster, now.terms));
}

TEST(BalanceTest, TopicsOfOnePartitionAreEvenTogether) {
  Situation now;
  now.brokers(3);
  for (int n = 0; n < 40; ++n) now.topic("t" + std::to_string(n), {{n % 3 + 1, (n + 1) % 3 + 1}});
  now.broker(4);
  now.carry_out(plan_balance(now.cluster, now.terms, true).moves);
  for (const auto& [id, count] : counts_of(now, false)) EXPECT_EQ(count, 20) << id;
  for (const auto& [id, count] : counts_of(now, true)) EXPECT_EQ(count, 10) << id;
}

TEST(BalanceTest, WhereOnlyLeadersAreUnevenNothingIsCopied) {
  Situation now;
  now.brokers(3);
  now.topic("orders", {{1, 2, 3}, {1, 2, 3}, {1, 3, 2}, {1, 2, 3}, {1, 2, 3}, {1, 2, 3}});
  const auto plan = plan_balance(now.cluster, now.terms, true);
  EXPECT_EQ(replicas_moved(plan.moves), 0u);
  EXPECT_EQ(plan.moves.size(), 4u);
  now.carry_out(plan.moves);
  for (const auto& [id, count] : counts_of(now, true)) EXPECT_EQ(count, 2) << id;
}

// 1 leads all of "a" and can hand over only to 2, which then has to hand over to 3.
TEST(BalanceTest, LeadersArePassedOnOverSeveralPartitions) {
  Situation now;
  now.brokers(3);
  now.topic("orders", {{1, 2}, {1, 2}, {2, 3}, {3, 1}, {1, 2}, {2, 3}});
  now.terms.fixed = {{"orders", 3}};
  now.carry_out(plan_balance(now.cluster, now.terms, true).moves);
  EXPECT_EQ(spread(counts_of(now, true)), 0);
}

TEST(BalanceTest, ADrainedBrokerIsEmptied) {
  Situation now;
  now.brokers(4);
  now.topic("orders", {{1, 2, 3}, {2, 3, 4}, {3, 4, 1}, {4, 1, 2}});
  now.drain(1);
  const auto plan = plan_balance(now.cluster, now.terms, false);
  EXPECT_THAT(plan.stuck, IsEmpty());
  EXPECT_EQ(replicas_moved(plan.moves), 3u);
  EXPECT_EQ(plan.moves.size(), 3u) << "what is not on it stays as it is";
  now.carry_out(plan.moves);
  for (std::size_t at = 0; at < 4; ++at)
    EXPECT_THAT(now.list("orders", at), testing::Not(testing::Contains(1)));
  EXPECT_LE(spread(counts_of(now, true)), 1);
  EXPECT_THAT(plan_balance(now.cluster, now.terms, true).moves, IsEmpty());
}

TEST(BalanceTest, ADrainedBrokerKeepsWhatNobodyElseCanTakeAndIsElectedLast) {
  Situation now;
  now.brokers(3);
  now.topic("orders", {{1, 2, 3}, {2, 1, 3}, {3, 2, 1}});
  now.topic("two", {{1, 2}});
  now.drain(1);
  const auto plan = plan_balance(now.cluster, now.terms, true);
  EXPECT_EQ(plan.stuck.at(1), 3u);
  now.carry_out(plan.moves);
  for (std::size_t at = 0; at < 3; ++at) EXPECT_EQ(now.list("orders", at).back(), 1);
  EXPECT_THAT(now.list("two", 0), UnorderedElementsAre(2, 3));
  const auto again = plan_balance(now.cluster, now.terms, true);
  EXPECT_THAT(again.moves, IsEmpty());
  EXPECT_EQ(again.stuck.at(1), 3u);
}

TEST(BalanceTest, LeadersLeaveADrainedBrokerAtOnce) {
  Situation now;
  now.brokers(4);
  now.topic("orders", {{1, 2, 3}, {1, 3, 2}, {2, 1, 3}, {1}});
  auto topic = *now.cluster.find(std::string_view("orders"));
  topic.partitions[1].in_sync = {1, 2};
  now.cluster.put(topic);
  now.drain(1);
  const auto moves = plan_leaders_off(now.cluster, now.terms);
  ASSERT_EQ(moves.size(), 2u);
  EXPECT_EQ(moves[0].id.partition, 0);
  EXPECT_THAT(moves[0].replicas, ElementsAre(3, 2, 1)) << "3 leads less than 2";
  EXPECT_THAT(moves[0].getting, IsEmpty());
  EXPECT_EQ(moves[1].replicas.front(), 2) << "3 is not in sync";
}

TEST(BalanceTest, WhoIsGoneForLongIsReplacedFirst) {
  Situation now;
  now.brokers(5);
  now.topic("a", {{1, 2, 3}});
  now.topic("b", {{2, 3, 4}});
  now.drain(3);
  now.die(4, true);
  const auto plan = plan_balance(now.cluster, now.terms, false);
  ASSERT_EQ(plan.moves.size(), 2u);
  EXPECT_EQ(plan.moves[0].id, (TopicPartition{"b", 0}));
  EXPECT_THAT(plan.moves[0].replicas, UnorderedElementsAre(2, 1, 5));
}

TEST(BalanceTest, WhoIsGoneForAWhileKeepsWhatItHas) {
  Situation now;
  now.brokers(4);
  now.topic("orders", {{1, 2, 3}, {2, 3, 1}});
  now.die(2, false);
  EXPECT_THAT(plan_balance(now.cluster, now.terms, false).moves, IsEmpty());
}

TEST(BalanceTest, ReplicasStayOnAsManyRacks) {
  Situation now;
  for (std::int32_t id = 1; id <= 6; ++id) now.broker(id, std::string(1, "abc"[id % 3]));
  now.topic("orders", {{1, 2, 3}, {1, 2, 3}, {1, 2, 3}, {1, 2, 3}});
  now.carry_out(plan_balance(now.cluster, now.terms, true).moves);
  for (std::size_t at = 0; at < 4; ++at) EXPECT_EQ(racks_of(now, now.list("orders", at)), 3u);
  for (const auto& [id, count] : counts_of(now, false)) EXPECT_EQ(count, 2) << id;
}

TEST(BalanceTest, ANewRackIsUsed) {
  Situation now;
  for (std::int32_t id = 1; id <= 4; ++id) now.broker(id, id < 3 ? "a" : "b");
  now.topic("orders", {{1, 2}, {2, 1}});
  EXPECT_TRUE(is_uneven(now.cluster, now.terms));
  now.carry_out(plan_balance(now.cluster, now.terms, true).moves);
  for (std::size_t at = 0; at < 2; ++at) EXPECT_EQ(racks_of(now, now.list("orders", at)), 2u);
}

TEST(BalanceTest, WhatMovesByHandStays) {
  Situation now;
  now.brokers(3);
  now.topic("orders", {{1, 2}, {1, 2}, {1, 2}, {1, 2}});
  now.terms.fixed = {{"orders", 0}, {"orders", 1}};
  for (const auto& move : plan_balance(now.cluster, now.terms, true).moves) {
    EXPECT_GE(move.id.partition, 2);
  }
}

TEST(BalanceTest, WhatMovesCountsWhereItGoes) {
  Situation now;
  now.brokers(3);
  now.topic("orders", {{1, 2}, {1, 2}, {1, 2}, {1, 2}});
  auto topic = *now.cluster.find(std::string_view("orders"));
  for (const std::size_t at : {0, 1}) {
    topic.partitions[at].replicas = {3, 2, 1};
    topic.partitions[at].adding = {3};
    topic.partitions[at].removing = {1};
  }
  now.cluster.put(topic);
  now.terms.fixed = {{"orders", 0}, {"orders", 1}};
  const auto plan = plan_balance(now.cluster, now.terms, true);
  EXPECT_EQ(replicas_moved(plan.moves), 1u) << "one of broker 2, which has all of them";
}

TEST(BalanceTest, AClusterOfManyPartitionsIsPlannedForAtOnce) {
  Situation now;
  now.brokers(3);
  for (int n = 0; n < 100; ++n) {
    Lists lists;
    for (int at = 0; at < 100; ++at)
      lists.push_back({at % 3 + 1, (at + 1) % 3 + 1, (at + 2) % 3 + 1});
    now.topic("t" + std::to_string(n), lists);
  }
  now.broker(4);
  const auto plan = plan_balance(now.cluster, now.terms, true);
  EXPECT_EQ(replicas_moved(plan.moves), 7500u);
  now.carry_out(plan.moves);
  EXPECT_EQ(spread(counts_of(now, false)), 0);
  EXPECT_LE(spread(counts_of(now, true)), 1);
}

TEST(BalanceTest, ATopicBesideAnotherGoesWhereThatGoes) {
  Situation now;
  now.brokers(3);
  now.topic("orders", {{1, 2}, {2, 1}, {1, 2}, {2, 1}});
  const auto id = now.cluster.find(std::string_view("orders"))->id;
  const auto beside = "__state." + to_string(id);
  now.topic(beside, {{1, 2}, {2, 1}, {1, 2}, {2, 1}});
  const auto plan = plan_balance(now.cluster, now.terms, true);
  EXPECT_FALSE(plan.moves.empty());
  now.carry_out(plan.moves);
  for (std::size_t at = 0; at < 4; ++at) EXPECT_EQ(now.list("orders", at), now.list(beside, at));
}

TEST(BalanceTest, SmallDifferencesAreLeftAlone) {
  Situation now;
  now.brokers(4);
  now.topic("orders", {{1, 2}, {2, 3}, {3, 4}, {4, 1}});
  EXPECT_FALSE(is_uneven(now.cluster, now.terms));
  now.topic("more", {{1, 2}});
  EXPECT_FALSE(is_uneven(now.cluster, now.terms));
  now.topic("by-hand", {{1, 2}, {1, 2}, {1, 2}, {1, 2}});
  EXPECT_TRUE(is_uneven(now.cluster, now.terms));
}

TEST(BalanceTest, AListOfBrokersIsRead) {
  EXPECT_THAT(brokers_in("1, 3,x,-1,"), ElementsAre(1, 3));
  EXPECT_THAT(brokers_in(""), IsEmpty());
}

// ---- by chance ----

enum class Racks { none, even, uneven };

class Chance {
 public:
  explicit Chance(unsigned seed) : random_(seed) {}
  std::int32_t below(std::size_t bound) { return static_cast<std::int32_t>(random_() % bound); }
  bool one_in(std::size_t n) { return below(n) == 0; }

  Situation situation(Racks racks) {
    Situation made;
    const auto per_rack = 1 + below(3);
    const auto count = racks == Racks::even ? 3 * per_rack : 2 + below(7);
    for (std::int32_t id = 1; id <= count; ++id) {
      const auto rack = racks == Racks::even ? id % 3 : below(4);
      made.broker(id, racks == Racks::none ? "" : "r" + std::to_string(rack));
    }
    const auto topics = 1 + below(8);
    for (int n = 0; n < topics; ++n) {
      Lists lists;
      const auto factor =
          racks == Racks::even
              ? 3U
              : static_cast<std::size_t>(1 + below(static_cast<std::size_t>(count)));
      const auto partitions = 1 + below(24);
      const auto skew = 1 + below(static_cast<std::size_t>(count));
      for (std::int32_t at = 0; at < partitions; ++at) lists.push_back(list(count, skew, factor));
      made.topic("topic-" + std::to_string(n), lists);
    }
    return made;
  }

 private:
  // Mostly of the first `skew` brokers.
  Ids list(std::int32_t count, std::int32_t skew, std::size_t factor) {
    Ids chosen;
    while (chosen.size() < factor) {
      const auto bound =
          one_in(4) || chosen.size() >= static_cast<std::size_t>(skew) ? count : skew;
      const auto id = 1 + below(static_cast<std::size_t>(bound));
      if (!std::ranges::count(chosen, id)) chosen.push_back(id);
    }
    return chosen;
  }

  std::mt19937 random_;
};

// Every replica list is of different brokers, as many as before.
void expect_sound(const Situation& before, const std::vector<BalanceMove>& moves) {
  std::set<TopicPartition> moved;
  for (const auto& move : moves) {
    EXPECT_TRUE(moved.insert(move.id).second) << "one partition is moved twice";
    EXPECT_EQ(std::set(move.replicas.begin(), move.replicas.end()).size(), move.replicas.size());
    const auto& list = before.list(move.id.topic, static_cast<std::size_t>(move.id.partition));
    EXPECT_EQ(move.replicas.size(), list.size());
    EXPECT_NE(move.replicas, list);
    EXPECT_FALSE(before.terms.fixed.contains(move.id));
    for (const auto id : move.getting) EXPECT_TRUE(before.terms.willing.contains(id));
  }
}

void expect_racks_kept(const Situation& before, const Situation& after) {
  for (const auto& [name, topic] : before.cluster.topics) {
    for (std::size_t at = 0; at < topic->partitions.size(); ++at) {
      EXPECT_GE(racks_of(before, after.list(name, at)), racks_of(before, before.list(name, at)));
    }
  }
}

class BalanceChanceTest : public ::testing::TestWithParam<unsigned> {};

TEST_P(BalanceChanceTest, SharesEndEvenAndNothingIsLeftToMove) {
  for (const auto racks : {Racks::none, Racks::even, Racks::uneven}) {
    Chance chance(GetParam());
    auto now = chance.situation(racks);
    const auto before = now;
    const auto plan = plan_balance(now.cluster, now.terms, true);
    expect_sound(now, plan.moves);
    now.carry_out(plan.moves);
    EXPECT_THAT(plan_balance(now.cluster, now.terms, true).moves, IsEmpty());
    if (racks != Racks::none) expect_racks_kept(before, now);
    for (const auto& [name, topic] : now.cluster.topics) {
      // Whether uneven racks allow it depends on them.
      if (racks != Racks::uneven) {
        EXPECT_LE(spread(counts_of(now, false, topic.get())), 1) << name;
        EXPECT_LE(spread(counts_of(now, true, topic.get())), 1) << name;
      }
    }
    if (racks == Racks::none) EXPECT_LE(spread(counts_of(now, false)), 1);
  }
}

// However much of a plan is carried out before the next one is made, it ends.
TEST_P(BalanceChanceTest, PlansThatAreInterruptedEnd) {
  Chance chance(GetParam());
  auto now = chance.situation(Racks::even);
  std::size_t moves = 0;
  for (int plans = 0;; ++plans) {
    ASSERT_LT(plans, 2000) << "no end";
    const auto plan = plan_balance(now.cluster, now.terms, true);
    if (plan.moves.empty()) break;
    const auto count = 1 + static_cast<std::size_t>(chance.below(plan.moves.size()));
    for (std::size_t at = 0; at < count; ++at) now.carry_out(plan.moves[at]);
    moves += count;
  }
  EXPECT_LT(moves, 3000u);
}

TEST_P(BalanceChanceTest, UnwantedBrokersAreEmptiedWhereTheyCanBe) {
  Chance chance(GetParam());
  auto now = chance.situation(chance.one_in(2) ? Racks::none : Racks::uneven);
  const auto count = static_cast<std::size_t>(now.terms.willing.size());
  for (int n = 0; n < 2; ++n) {
    const auto id = 1 + chance.below(count);
    if (!now.terms.willing.contains(id) || now.terms.willing.size() < 2) continue;
    if (chance.one_in(2)) {
      now.drain(id);
    } else {
      now.die(id, true);
    }
  }
  const auto plan = plan_balance(now.cluster, now.terms, chance.one_in(2));
  expect_sound(now, plan.moves);
  now.carry_out(plan.moves);
  for (const auto& [name, topic] : now.cluster.topics) {
    for (const auto& partition : topic->partitions) {
      const auto& list = partition.replicas;
      const auto kept = static_cast<std::size_t>(std::ranges::count_if(
          list, [&](std::int32_t id) { return now.terms.unwanted.contains(id); }));
      const auto room = now.terms.willing.size();
      EXPECT_EQ(kept, list.size() > room ? list.size() - room : 0);
      if (kept < list.size()) {
        EXPECT_FALSE(now.terms.unwanted.contains(list.front())) << name;
      }
    }
  }
  const auto even = plan_balance(now.cluster, now.terms, true);
  now.carry_out(even.moves);
  EXPECT_THAT(plan_balance(now.cluster, now.terms, true).moves, IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(Seeds, BalanceChanceTest, ::testing::Range(1U, 201U));

}  // namespace
}  // namespace millrace::kernel
