#include "plugins/coordination/standalone/standalone.h"

#include <optional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <millrace/testing/fake_host.h>
#include <millrace/testing/sim_environment.h>

namespace millrace::standalone {
namespace {

using millrace::testing::KeptLog;
using millrace::testing::SimEnvironment;
using millrace::testing::SimWorld;
using std::chrono::seconds;

/// A machine with one instance at a time.
class StandaloneFixture {
 public:
  template <class F>
  auto run(F make) {
    return world.run(node.control(), std::move(make));
  }

  explicit StandaloneFixture(std::uint64_t seed = 1) : world(seed) { begin(); }

  void begin() { standalone.emplace(node, Log(log, "coordination"), "/data/coordination"); }
  Result<std::unique_ptr<Lease>> join() {
    return run([this] { return standalone->join({.broker_id = 1}); });
  }
  Result<std::vector<Version>> put(std::string key, std::string value) {
    std::vector<Write> writes{{.key = std::move(key), .value = std::move(value)}};
    return run([this, writes = std::move(writes)] { return standalone->commit(writes); });
  }
  std::string value_of(std::string key) {
    const auto found = run([this, key = std::move(key)] { return standalone->get(key); });
    return found ? found->value : "";
  }
  /// The power goes at this moment; what was running unwinds, and another instance begins.
  void crash() {
    node.crash();
    world.run_for(seconds(1));
    standalone.reset();
    node.restart();
    begin();
  }

  SimWorld world;
  SimEnvironment& node = world.add_node("b1");
  KeptLog log;
  std::optional<Standalone> standalone;
};

TEST(StandaloneTest, AnotherBrokersJournalIsRefusedAndStaysAsItIs) {
  StandaloneFixture fixture;
  ASSERT_TRUE(fixture.join());
  ASSERT_TRUE(fixture.put("/a", "one"));
  fixture.crash();
  const auto refused = fixture.run([&] { return fixture.standalone->join({.broker_id = 7}); });
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::conflict);
  EXPECT_EQ(refused.error().detail,
            "/data/coordination/coordination.journal: expected broker.id = 7, found that of broker "
            "1; set broker.id to 1 or give this broker a directory of its own");
  fixture.crash();
  ASSERT_TRUE(fixture.join());
  EXPECT_EQ(fixture.value_of("/a"), "one");
}

TEST(StandaloneTest, IsClosedUntilItIsJoined) {
  StandaloneFixture fixture;
  EXPECT_EQ(fixture.put("/a", "one").error().code, Errc::closed);
  ASSERT_TRUE(fixture.join());
  EXPECT_TRUE(fixture.put("/a", "one"));
}

TEST(StandaloneTest, LetsOneInstanceUseAFolder) {
  StandaloneFixture fixture;
  ASSERT_TRUE(fixture.join());
  Standalone second(fixture.node, Log(fixture.log, "coordination"), "/data/coordination");
  const auto refused = fixture.run([&second] { return second.join({.broker_id = 1}); });
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::conflict);
}

TEST(StandaloneTest, LeavesTheTreeAsItWasWhenTheDiskFails) {
  StandaloneFixture fixture;
  ASSERT_TRUE(fixture.join() && fixture.put("/a", "one"));
  fixture.node.files().fail_syncs(true);
  EXPECT_EQ(fixture.put("/a", "two").error().code, Errc::io);
  EXPECT_EQ(fixture.value_of("/a"), "one");
}

TEST(StandaloneTest, ReplacesAJournalThatIsMostlyOutOfDate) {
  StandaloneFixture fixture;
  ASSERT_TRUE(fixture.join());
  const std::string large(100'000, 'x');
  for (int i = 0; i < 40; ++i) ASSERT_TRUE(fixture.put("/a", large + std::to_string(i)));
  EXPECT_LT(fixture.node.files().info("/data/coordination/coordination.journal")->size, 2U << 20);
  fixture.crash();
  ASSERT_TRUE(fixture.join());
  EXPECT_TRUE(fixture.value_of("/a") == large + "39");
}

/// Commits "/n/0", "/n/1", … two keys at a time, and counts what is done.
Task<> commit_many(Standalone& standalone, int& done) {
  for (int i = 0; i < 200; ++i) {
    const auto value = std::to_string(i);
    std::vector<Write> writes{{.key = "/n/" + value, .value = value},
                              {.key = "/latest", .value = value}};
    MR_CO_CHECK(co_await standalone.commit(std::move(writes)));
    done = i + 1;
  }
  co_return {};
}

TEST(StandaloneTest, KeepsWhatItCommittedWhenThePowerGoes) {
  int torn = 0;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    StandaloneFixture fixture(seed);
    ASSERT_TRUE(fixture.join());
    int done = 0;
    auto& control = fixture.node.control();
    control.post([&] { spawn(control, commit_many(*fixture.standalone, done), "commits"); });
    const auto enough = static_cast<int>(fixture.world.random().below(100));
    auto steps = fixture.world.random().below(8);
    fixture.world.run_until([&] { return done >= enough && steps-- == 0; }, seconds(60));
    const auto committed = done;
    fixture.crash();

    const auto lease = fixture.join();
    ASSERT_TRUE(lease) << to_string(lease.error());
    EXPECT_GT((*lease)->epoch(), 1);
    for (int i = 0; i < committed; ++i) {
      ASSERT_EQ(fixture.value_of("/n/" + std::to_string(i)), std::to_string(i));
    }
    // The commit that was under way is there as a whole or not at all.
    const auto next = std::to_string(committed);
    const auto latest = fixture.value_of("/latest");
    if (latest == next) {
      EXPECT_EQ(fixture.value_of("/n/" + next), next);
      ++torn;
    } else {
      EXPECT_EQ(latest, committed == 0 ? "" : std::to_string(committed - 1));
      EXPECT_EQ(fixture.value_of("/n/" + next), "");
    }
  }
  EXPECT_GT(torn, 0) << "no crash fell into a commit";
}

}  // namespace
}  // namespace millrace::standalone
