#include "kernel/daemon/service_reports.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <millrace/testing/kept_log.h>
#include <millrace/testing/sim_environment.h>

#include "tests/unit/kernel/daemon/notify_socket.h"

namespace millrace::kernel {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::StartsWith;
using namespace std::chrono_literals;

/// A broker on a simulated machine, whose watchdog waits for 20 s.
class ServiceReportsTest : public ::testing::Test {
 protected:
  millrace::testing::SimWorld world{1};
  millrace::testing::SimEnvironment& node = world.add_node("b1", 2);
  millrace::testing::KeptLog log;
  NotifySocket socket;
  ServiceManager manager{{socket.name(), "20000000", ""}, 1, Log(log, "broker")};
  ServiceReports reports{manager, node, Log(log, "broker")};
};

TEST_F(ServiceReportsTest, AStartThatGetsOnIsGivenMoreTime) {
  const std::string more = "EXTEND_TIMEOUT_USEC=300000000";
  reports.report("recovering 1 of 2 logs");
  EXPECT_THAT(socket.told(), ElementsAre(more, "STATUS=recovering 1 of 2 logs"));
  reports.report("recovering 1 of 2 logs");
  EXPECT_THAT(socket.told(), IsEmpty());
  reports.report("recovering 2 of 2 logs");
  EXPECT_THAT(socket.told(), ElementsAre(more, "STATUS=recovering 2 of 2 logs"));
}

TEST_F(ServiceReportsTest, ReadyIsToldWithWhatItServesAndStoppingIsNotProlonged) {
  reports.ready("serving 2 partitions");
  EXPECT_THAT(socket.told(), ElementsAre("STATUS=serving 2 partitions", "READY=1"));
  reports.stopping("handing over leaders");
  EXPECT_THAT(socket.told(), ElementsAre("STOPPING=1", "STATUS=handing over leaders"));
  reports.report("closing 2 partitions");
  EXPECT_THAT(socket.told(), ElementsAre("STATUS=closing 2 partitions"));
}

TEST_F(ServiceReportsTest, AReloadIsToldAroundIt) {
  reports.ready("serving");
  socket.told();
  reports.reloading();
  EXPECT_THAT(socket.told(), ElementsAre(StartsWith("RELOADING=1\nMONOTONIC_USEC=")));
  reports.reloaded({});
  EXPECT_THAT(socket.told(), ElementsAre("READY=1"));
}

TEST_F(ServiceReportsTest, WhatAReloadLeavesUndoneIsShownUntilTheNext) {
  reports.ready("serving 1 partitions");
  socket.told();
  reports.reloaded("reload refused: no");
  EXPECT_THAT(socket.told(),
              ElementsAre("STATUS=serving 1 partitions; reload refused: no", "READY=1"));
  reports.report("serving 2 partitions");
  EXPECT_THAT(socket.told(), Contains("STATUS=serving 2 partitions; reload refused: no"));
  reports.reloaded({});
  EXPECT_THAT(socket.told(), ElementsAre("STATUS=serving 2 partitions", "READY=1"));
}

TEST_F(ServiceReportsTest, TheWatchdogHearsABeatOnlyWhenAllThreadsTurned) {
  reports.ready("serving");
  socket.told();
  for (int beats = 0; beats < 3; ++beats) {
    world.run_for(*reports.pause());
    reports.report("serving");
    EXPECT_THAT(socket.told(), ElementsAre("WATCHDOG=1"));
  }
  node.pause(1h);
  for (int looks = 0; looks < 4; ++looks) {
    world.run_for(*reports.pause());
    reports.report("serving");
  }
  EXPECT_THAT(socket.told(), IsEmpty());
}

TEST_F(ServiceReportsTest, AThreadThatDoesNotTurnIsLoggedBeforeTheWatchdogActs) {
  node.pause(11s);
  for (int looks = 0; looks < 2; ++looks) {
    world.run_for(5s);
    reports.report("serving");
  }
  ASSERT_THAT(log.lines(), ElementsAre(StartsWith("error broker: a thread does not turn")));
  EXPECT_TRUE(
      log.contains("threads=mr-shard-0, mr-shard-1, mr-control seconds=10 "
                   "watchdog_seconds=20"));
  world.run_for(5s);
  reports.report("serving");
  EXPECT_THAT(log.lines(), ElementsAre(StartsWith("error"), "info broker: all threads turn again"));
  EXPECT_THAT(socket.told(), Contains("WATCHDOG=1"));
}

TEST_F(ServiceReportsTest, ReportsAreDueOftenOnTheWayAndInTimeForTheWatchdog) {
  EXPECT_EQ(reports.pause(), 1s);
  reports.ready("serving");
  EXPECT_EQ(reports.pause(), 5s);
  reports.stopping("closing");
  EXPECT_EQ(reports.pause(), 1s);
}

TEST_F(ServiceReportsTest, WithoutAServiceManagerNoneIsDue) {
  ServiceManager nobody({}, 1, Log(log, "broker"));
  ServiceReports silent(nobody, node, Log(log, "broker"));
  EXPECT_EQ(silent.pause(), std::nullopt);
  silent.ready("serving");
  silent.report("serving");
  EXPECT_THAT(log.lines(), IsEmpty());
}

TEST_F(ServiceReportsTest, WhyAStartFailedStaysToBeSeen) {
  reports.failed("broker.data is locked");
  EXPECT_THAT(socket.told(), ElementsAre("STATUS=could not start: broker.data is locked"));
}

}  // namespace
}  // namespace millrace::kernel
