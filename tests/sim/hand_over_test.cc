// A broker whose storage takes no more, of a cluster under load: another one leads what it led,
// nobody waits for it where it follows, and it is in sync again once its storage is.
#include <chrono>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim_cluster.h"

namespace millrace::testing {
namespace {

using std::chrono::seconds;
using ::testing::IsEmpty;

class SimHandOverTest : public ::testing::Test {
 protected:
  SimHandOverTest() {
    const auto started = cluster.start();
    EXPECT_TRUE(started) << to_string(started.error());
    victim = cluster.leader();
  }
  bool is_led_by_another(Duration limit) {
    const auto until = cluster.world().now() + limit;
    while (cluster.leader() == victim && cluster.world().now() < until) {
      cluster.world().run_for(std::chrono::milliseconds(100));
    }
    return cluster.leader() != victim;
  }
  void expect_heals() {
    const auto healed = cluster.heals();
    EXPECT_TRUE(healed) << to_string(healed.error());
    EXPECT_THAT(cluster.verdict(), IsEmpty());
  }

  SimCluster cluster{5, 3};
  std::size_t victim = 0;
};

TEST_F(SimHandOverTest, AFullDiskMovesTheLeaderAfterAWhile) {
  cluster.node(victim).files().limit_bytes(1);
  EXPECT_TRUE(is_led_by_another(seconds(8)));
  EXPECT_TRUE(cluster.goes_on(20, seconds(30)));
  cluster.node(victim).files().limit_bytes({});
  expect_heals();
}

TEST_F(SimHandOverTest, ABadDiskMovesTheLeaderUntilItsLogIsOpenedAgain) {
  cluster.node(victim).files().fail_below("/data/orders-0");
  EXPECT_TRUE(is_led_by_another(seconds(8)));
  EXPECT_TRUE(cluster.goes_on(20, seconds(30)));
  cluster.node(victim).files().fail_below("");
  cluster.world().run_for(seconds(20));
  EXPECT_NE(cluster.leader(), victim);
  EXPECT_TRUE(cluster.broker(victim).stop());
  const auto started = cluster.broker(victim).start();
  ASSERT_TRUE(started) << to_string(started.error());
  expect_heals();
}

// Who lags is out of sync only after a minute here.
class SimFollowersDiskTest : public ::testing::Test {
 protected:
  SimFollowersDiskTest() {
    const auto started = cluster.start();
    EXPECT_TRUE(started) << to_string(started.error());
    victim = (cluster.leader() + 1) % cluster.size();
  }
  void expect_goes_on() {
    cluster.world().run_for(seconds(4));
    EXPECT_TRUE(cluster.goes_on(20, seconds(3)));
    EXPECT_NE(cluster.leader(), victim);
  }
  void expect_heals() {
    const auto healed = cluster.heals();
    EXPECT_TRUE(healed) << to_string(healed.error());
    EXPECT_THAT(cluster.verdict(), IsEmpty());
  }

  SimCluster cluster{6, 3, {R"(defaults."replica.lag.time.max.ms"=60000)"}};
  std::size_t victim = 0;
};

TEST_F(SimFollowersDiskTest, OfAFollowerWithAFullDiskNobodyWaits) {
  cluster.node(victim).files().limit_bytes(1);
  expect_goes_on();
  cluster.node(victim).files().limit_bytes({});
  expect_heals();
}

TEST_F(SimFollowersDiskTest, OfAFollowerWithABadDiskNobodyWaits) {
  cluster.node(victim).files().fail_below("/data/orders-0");
  expect_goes_on();
  cluster.node(victim).files().fail_below("");
  EXPECT_TRUE(cluster.broker(victim).stop());
  const auto started = cluster.broker(victim).start();
  ASSERT_TRUE(started) << to_string(started.error());
  expect_heals();
}

}  // namespace
}  // namespace millrace::testing
