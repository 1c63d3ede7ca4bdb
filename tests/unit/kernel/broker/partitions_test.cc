#include "kernel/broker/partitions.h"

#include <gtest/gtest.h>

#include <millrace/testing/sim_environment.h>

namespace millrace::kernel {
namespace {

TEST(PartitionMapTest, NeighboursLiveOnDifferentShards) {
  testing::SimWorld world(1);
  auto& node = world.add_node("b1", 3);
  PartitionMap map(node, 3 << 20);
  for (std::int32_t number = 0; number < 30; ++number) {
    const auto here = map.owner_of("orders", number).shard().index();
    EXPECT_NE(here, map.owner_of("orders", number + 1).shard().index());
    EXPECT_EQ(here, map.owner_of("orders", number + 3).shard().index());
  }
}

TEST(PartitionMapTest, FirstPartitionsOfManyTopicsSpread) {
  testing::SimWorld world(1);
  auto& node = world.add_node("b1", 4);
  PartitionMap map(node, 4 << 20);
  std::array<int, 4> counts{};
  for (int n = 0; n < 400; ++n) {
    ++counts.at(map.owner_of("topic-" + std::to_string(n), 0).shard().index());
  }
  for (const auto count : counts) EXPECT_GT(count, 60);
}

TEST(PartitionMapTest, EachShardHasItsShareOfTheMemory) {
  testing::SimWorld world(1);
  auto& node = world.add_node("b1", 2);
  PartitionMap map(node, 100);
  EXPECT_EQ(map.shards()[0]->memory().bytes_max(), 50u);
  EXPECT_EQ(map.shards()[1]->memory().bytes_max(), 50u);
}

}  // namespace
}  // namespace millrace::kernel
