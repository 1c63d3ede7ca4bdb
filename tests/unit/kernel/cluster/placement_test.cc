#include "kernel/cluster/placement.h"

#include <algorithm>
#include <map>
#include <set>

#include <gtest/gtest.h>

namespace millrace::kernel {
namespace {

ClusterState cluster_of(const std::map<std::int32_t, std::string>& racks) {
  ClusterState cluster;
  for (const auto& [id, rack] : racks) {
    cluster.brokers[id] = BrokerState{.id = id, .rack = rack};
  }
  return cluster;
}

struct Spread {
  std::size_t least = SIZE_MAX;
  std::size_t most = 0;
};
Spread spread(const ClusterState& cluster, const std::vector<std::vector<std::int32_t>>& placed,
              bool leaders) {
  std::map<std::int32_t, std::size_t> counts;
  for (const auto& [id, broker] : cluster.brokers) counts[id] = 0;
  for (const auto& replicas : placed) {
    for (std::size_t at = 0; at < (leaders ? 1 : replicas.size()); ++at) ++counts[replicas[at]];
  }
  Spread result;
  for (const auto& [id, count] : counts) {
    result.least = std::min(result.least, count);
    result.most = std::max(result.most, count);
  }
  return result;
}

TEST(PlacementTest, NeverTwiceOnOneBrokerAndEvenOverBrokers) {
  const auto cluster = cluster_of({{1, ""}, {2, ""}, {3, ""}, {4, ""}, {5, ""}});
  for (const std::size_t replication : {1, 2, 3, 5}) {
    for (const std::size_t count : {1, 7, 20, 33}) {
      const auto placed = place_replicas(cluster, {}, count, replication);
      ASSERT_EQ(placed.size(), count);
      for (const auto& replicas : placed) {
        EXPECT_EQ(std::set(replicas.begin(), replicas.end()).size(), replication);
      }
      const auto replicas = spread(cluster, placed, false);
      EXPECT_LE(replicas.most - replicas.least, 2u) << replication << ' ' << count;
      const auto leaders = spread(cluster, placed, true);
      EXPECT_LE(leaders.most - leaders.least, 1u) << replication << ' ' << count;
    }
  }
}

TEST(PlacementTest, OnAsManyRacksAsThereAre) {
  const auto cluster = cluster_of({{1, "a"}, {2, "a"}, {3, "b"}, {4, "b"}, {5, "c"}, {6, "c"}});
  for (const auto& replicas : place_replicas(cluster, {}, 24, 3)) {
    std::set<std::string> racks;
    for (const auto id : replicas) racks.insert(cluster.brokers.at(id).rack);
    EXPECT_EQ(racks.size(), 3u);
  }
}

TEST(PlacementTest, GrowthGoesWhereTheTopicHasLeast) {
  const auto cluster = cluster_of({{1, ""}, {2, ""}, {3, ""}});
  const std::vector<PartitionState> before{{.replicas = {1, 2}}, {.replicas = {2, 1}}};
  const auto placed = place_replicas(cluster, before, 1, 2);
  EXPECT_EQ(placed.at(0).front(), 3);
}

TEST(PlacementTest, AvoidedBrokersGetSomeOnlyWhereOthersAreTooFew) {
  const auto cluster = cluster_of({{1, "a"}, {2, "a"}, {3, "b"}, {4, "b"}});
  for (const auto& replicas : place_replicas(cluster, {}, 12, 2, {3})) {
    EXPECT_EQ(std::ranges::count(replicas, 3), 0);
  }
  for (const auto& replicas : place_replicas(cluster, {}, 12, 4, {3})) {
    EXPECT_EQ(replicas.back(), 3) << "it leads last";
  }
}

TEST(PlacementTest, SmallTopicsDoNotPileUpOnTheFirstBroker) {
  auto cluster = cluster_of({{1, ""}, {2, ""}, {3, ""}});
  std::vector<std::vector<std::int32_t>> all;
  for (int n = 0; n < 9; ++n) {
    const auto placed = place_replicas(cluster, {}, 1, 1);
    TopicState topic;
    topic.name = "t" + std::to_string(n);
    topic.id.bytes.fill(static_cast<std::uint8_t>(n + 1));
    topic.partitions.push_back({.replicas = placed[0]});
    cluster.put(topic);
    all.push_back(placed[0]);
  }
  const auto replicas = spread(cluster, all, false);
  EXPECT_EQ(replicas.least, 3u);
  EXPECT_EQ(replicas.most, 3u);
}

}  // namespace
}  // namespace millrace::kernel
