#include "plugins/transport/kafka/turns.h"

#include <chrono>
#include <vector>

#include <gtest/gtest.h>

#include "fakes.h"

namespace millrace::kafka_transport::testing {
namespace {

using namespace std::chrono_literals;

TEST(TurnsTest, AreShorterWhereManyHaveMuchToDo) {
  ManualShard shard;
  Turns turns;
  EXPECT_FALSE(turns.over(999us));
  EXPECT_TRUE(turns.over(1ms));

  std::vector<Pending<>> others;
  for (int other = 0; other < 39; ++other) others.push_back(start(shard, turns.yield()));
  EXPECT_FALSE(turns.over(99us));
  EXPECT_TRUE(turns.over(100us));

  shard.run();
  for (auto& other : others) EXPECT_TRUE(other.is_ready());
  EXPECT_FALSE(turns.over(999us));
}

}  // namespace
}  // namespace millrace::kafka_transport::testing
