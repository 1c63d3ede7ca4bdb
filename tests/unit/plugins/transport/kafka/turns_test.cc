#include "plugins/transport/kafka/turns.h"

#include <algorithm>
#include <chrono>
#include <functional>
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

// Between two of its rounds a shard serves whoever has little to do.
TEST(TurnsTest, FewOfALongLineGoOnInOneRound) {
  ManualShard shard;
  Turns turns;
  std::vector<Pending<>> others;
  for (int other = 0; other < 800; ++other) others.push_back(start(shard, turns.yield()));
  std::vector<std::ptrdiff_t> gone_on;  // in so many rounds
  std::function<void()> look = [&] {
    gone_on.push_back(std::ranges::count_if(others, &Pending<>::is_ready));
    if (gone_on.back() < 800 && gone_on.size() < 1000) shard.post([&] { look(); });
  };
  shard.post([&] { look(); });
  shard.run();
  EXPECT_EQ(gone_on.back(), 800);
  for (std::size_t round = 1; round < gone_on.size(); ++round) {
    EXPECT_LE(gone_on[round] - gone_on[round - 1], 20);
  }
}

}  // namespace
}  // namespace millrace::kafka_transport::testing
