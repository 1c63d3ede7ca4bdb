// The level of a cluster, as its first broker makes it and others find it.
#include "kernel/cluster/cluster_level.h"

#include <gtest/gtest.h>

#include <millrace/testing/sim_coordination.h>

namespace millrace::kernel {
namespace {

using testing::SimCoordination;
using testing::SimEnvironment;
using testing::SimWorld;

class ClusterLevelTest : public ::testing::Test {
 protected:
  ClusterLevelTest() {
    auto joined =
        world_.run(node_.control(), [this] { return coordination_->join({.broker_id = 1}); });
    if (joined) lease_ = *std::move(joined);
  }

  Result<> check() {
    return world_.run(node_.control(), [this] { return check_level(*coordination_); });
  }
  std::string stored() { return service_.value(std::string(level_key)).value_or("none"); }
  void store(std::string value) {
    const Write write{.key = std::string(level_key), .value = std::move(value)};
    const auto done = world_.run(node_.control(), [&] { return coordination_->commit({write}); });
    ASSERT_TRUE(done) << to_string(done.error());
  }

  SimWorld world_{1};
  SimEnvironment& node_ = world_.add_node("b1");
  SimCoordination service_{world_};
  std::unique_ptr<Coordination> coordination_ = service_.connect(node_);
  std::unique_ptr<Lease> lease_;
};

TEST_F(ClusterLevelTest, IsTheFirstWhereNothingSays) {
  ASSERT_TRUE(check());
  EXPECT_EQ(stored(), R"({"version":1,"level":1})");
  EXPECT_TRUE(check());
}

TEST_F(ClusterLevelTest, OfALaterVersionIsRefusedAndStays) {
  store(encode_level(level_known_max + 1));
  const auto refused = check();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::incompatible);
  EXPECT_EQ(
      refused.error().detail,
      "/millrace/level: the cluster is at level 2, and this broker knows levels 1 to 1; start a "
      "version of Millrace that knows it, as those that have used this cluster last do");
  EXPECT_EQ(stored(), encode_level(level_known_max + 1));
}

TEST_F(ClusterLevelTest, IsNotGuessedFromWhatCannotBeRead) {
  store(R"({"version":2,"level":1})");
  EXPECT_EQ(check().error().code, Errc::incompatible);
  for (const auto* text : {"", "{}", R"({"level":"1"})"}) {
    store(text);
    EXPECT_EQ(check().error().code, Errc::corrupt) << text;
  }
}

}  // namespace
}  // namespace millrace::kernel
