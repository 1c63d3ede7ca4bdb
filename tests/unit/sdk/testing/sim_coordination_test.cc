#include <millrace/testing/sim_coordination.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace millrace::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

/// Two brokers and what they agree on.
struct SimCoordinationTest : ::testing::Test {
  struct Broker {
    explicit Broker(SimCoordinationTest& of, std::string name, std::int32_t number)
        : test(of), node(of.world.add_node(std::move(name))), id(number) {
      begin();
    }
    void begin() { coordination = test.service.connect(node); }
    Result<> join() {
      auto joined =
          test.world.run(node.control(), [this] { return coordination->join({.broker_id = id}); });
      if (!joined) return joined.error();
      lease = *std::move(joined);
      return {};
    }
    Result<std::vector<Version>> write(const Write& wanted) {
      return test.world.run(node.control(),
                            [this, wanted] { return coordination->commit({wanted}); });
    }
    Pending<> watch_lost() { return start(node.control(), lease->lost()); }
    bool lease_holds() const { return test.world.now() < lease->valid_until(); }

    SimCoordinationTest& test;
    SimEnvironment& node;
    std::int32_t id;
    std::unique_ptr<Coordination> coordination;
    std::unique_ptr<Lease> lease;
  };

  SimWorld world{7};
  SimCoordination service{world};
  Broker one{*this, "b1", 1};
  Broker two{*this, "b2", 2};
};

TEST_F(SimCoordinationTest, ALeaseIsOverBeforeOthersTakeTheBrokerForDead) {
  ASSERT_TRUE(one.join());
  ASSERT_TRUE(two.join());
  ASSERT_TRUE(one.write({.key = "/one", .value = "here", .ephemeral = true}));
  auto lost = one.watch_lost();
  service.cut_off(one.node);
  ASSERT_TRUE(world.run_until([&] { return !one.lease_holds(); }, seconds(10)));
  EXPECT_TRUE(service.value("/one"));
  ASSERT_TRUE(world.run_until([&] { return !service.value("/one"); }, seconds(10)));
  EXPECT_FALSE(lost.is_ready()) << "who is cut off is told nothing";
  EXPECT_TRUE(two.lease_holds());
  service.reach(one.node);
  EXPECT_TRUE(world.run_until([&] { return lost.is_ready(); }, seconds(1)));
  EXPECT_EQ(one.write({.key = "/a", .value = "x"}).error().code, Errc::fenced);
  const auto before = one.lease->epoch();
  ASSERT_TRUE(one.join());
  EXPECT_GT(one.lease->epoch(), before);
}

TEST_F(SimCoordinationTest, AShortCutCostsNothing) {
  ASSERT_TRUE(one.join());
  auto lost = one.watch_lost();
  service.cut_off(one.node);
  world.run_for(seconds(4));
  EXPECT_FALSE(one.lease_holds());
  service.reach(one.node);
  ASSERT_TRUE(world.run_until([&] { return one.lease_holds(); }, seconds(2)));
  EXPECT_FALSE(lost.is_ready());
  EXPECT_TRUE(one.write({.key = "/a", .value = "x"}));
}

TEST_F(SimCoordinationTest, NobodyExpiresWhileTheServiceIsAway) {
  ASSERT_TRUE(one.join());
  ASSERT_TRUE(one.write({.key = "/one", .value = "here", .ephemeral = true}));
  service.stop();
  world.run_for(seconds(30));
  EXPECT_FALSE(one.lease_holds());
  service.go_on();
  ASSERT_TRUE(world.run_until([&] { return one.lease_holds(); }, seconds(2)));
  EXPECT_TRUE(service.value("/one"));
}

TEST_F(SimCoordinationTest, ASessionOutlivesItsKilledBrokerUntilItExpires) {
  ASSERT_TRUE(one.join());
  ASSERT_TRUE(two.join());
  ASSERT_TRUE(one.write({.key = "/one", .value = "here", .ephemeral = true}));
  one.node.kill();
  one.lease.reset();
  one.coordination.reset();
  world.run_for(seconds(1));
  one.node.restart();
  one.begin();
  EXPECT_TRUE(service.value("/one"));
  const auto began = world.now();
  ASSERT_TRUE(one.join());
  EXPECT_GT(world.now() - began, seconds(3)) << "the id was taken until then";
  EXPECT_FALSE(service.value("/one"));
}

TEST_F(SimCoordinationTest, RefusesASecondBrokerOfTheSameId) {
  ASSERT_TRUE(one.join());
  two.id = 1;
  const auto joined = two.join();
  ASSERT_FALSE(joined);
  EXPECT_EQ(joined.error().code, Errc::conflict);
  EXPECT_TRUE(one.lease_holds());
}

TEST_F(SimCoordinationTest, TellsOthersOfKeysThatGoWithASession) {
  ASSERT_TRUE(one.join());
  ASSERT_TRUE(two.join());
  ASSERT_TRUE(one.write({.key = "/brokers/ids/1", .value = "here", .ephemeral = true}));
  const auto ids = [&](Seen seen) {
    return start(two.node.control(), two.coordination->next_change("/brokers/ids", seen));
  };
  auto first = ids({});
  ASSERT_TRUE(world.run_until([&] { return first.is_ready(); }, seconds(1)));
  auto second = ids(*first.await_resume());
  world.run_for(seconds(5));
  EXPECT_FALSE(second.is_ready());
  service.expire(one.node);
  EXPECT_TRUE(world.run_until([&] { return second.is_ready(); }, milliseconds(100)));
}

TEST_F(SimCoordinationTest, RefusesMoreThanEveryBackendTakes) {
  ASSERT_TRUE(one.join());
  EXPECT_EQ(one.write({.key = "/a", .value = std::string(commit_bytes_max, 'x')}).error().code,
            Errc::too_large);
}

}  // namespace
}  // namespace millrace::testing
