#include "kernel/daemon/heartbeat.h"

#include <chrono>
#include <future>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <millrace/testing/kept_log.h>

#include "kernel/env/real_environment.h"
#include "kernel/log/metrics_registry.h"

namespace millrace::kernel {
namespace {

using ::testing::ElementsAre;
using namespace std::chrono_literals;

class HeartbeatTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto started =
        RealEnvironment::start({.shards = 2, .workers = 1}, Log(log, "environment"), metrics);
    ASSERT_TRUE(started);
    environment = *std::move(started);
  }
  /// Looks until it holds, or for a time in which it surely would.
  template <class Condition>
  static bool comes(Condition condition) {
    const auto give_up_at = std::chrono::steady_clock::now() + 20s;
    while (!condition()) {
      if (std::chrono::steady_clock::now() > give_up_at) return false;
      std::this_thread::yield();
    }
    return true;
  }

  millrace::testing::KeptLog log;
  MetricsRegistry metrics;
  std::unique_ptr<RealEnvironment> environment;
};

TEST_F(HeartbeatTest, BeatsWhileAllTurn) {
  Heartbeat heartbeat(*environment);
  for (int beats = 0; beats < 100; ++beats) {
    ASSERT_TRUE(comes([&] { return heartbeat.beat(); }));
  }
}

TEST_F(HeartbeatTest, StopsWithAnyThatIsStuckAndNamesIt) {
  for (auto* stuck :
       {environment->shards()[0], environment->shards()[1], &environment->control()}) {
    std::promise<void> release;
    stuck->post([&release] { release.get_future().wait(); });
    Heartbeat heartbeat(*environment);
    EXPECT_TRUE(comes([&] { return heartbeat.missing().size() == 1; }));
    const bool control = stuck == &environment->control();
    EXPECT_THAT(heartbeat.missing(),
                ElementsAre(control ? "mr-control" : "mr-shard-" + std::to_string(stuck->index())));
    EXPECT_FALSE(heartbeat.beat());
    release.set_value();
    EXPECT_TRUE(comes([&] { return heartbeat.beat(); }));
  }
}

TEST_F(HeartbeatTest, MayEndBeforeItIsAnswered) {
  std::promise<void> release;
  environment->control().post([&release] { release.get_future().wait(); });
  {
    const Heartbeat heartbeat(*environment);
  }
  release.set_value();
  environment->stop();
}

}  // namespace
}  // namespace millrace::kernel
