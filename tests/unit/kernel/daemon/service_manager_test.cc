#include "kernel/daemon/service_manager.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <millrace/testing/kept_log.h>

#include "tests/unit/kernel/daemon/notify_socket.h"

namespace millrace::kernel {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using namespace std::chrono_literals;

constexpr pid_t self = 4711;

class ServiceManagerTest : public ::testing::Test {
 protected:
  ServiceManager manager_of(const ServiceManager::Variables& variables) {
    return {variables, self, Log(log, "broker")};
  }

  millrace::testing::KeptLog log;
  NotifySocket socket;
};

TEST_F(ServiceManagerTest, IsToldInDatagramsOfLines) {
  auto manager = manager_of({.notify_socket = socket.name()});
  ASSERT_TRUE(manager.listens());
  manager.tell_status("recovering 412 of 900 logs");
  manager.extend_start(90s);
  manager.tell_ready();
  manager.tell_beat();
  manager.tell_reloading(MonoTime(12345678ns));
  manager.tell_stopping();
  EXPECT_THAT(socket.told(), ElementsAre("STATUS=recovering 412 of 900 logs",
                                         "EXTEND_TIMEOUT_USEC=90000000", "READY=1", "WATCHDOG=1",
                                         "RELOADING=1\nMONOTONIC_USEC=12345", "STOPPING=1"));
  EXPECT_THAT(log.lines(), IsEmpty());
}

TEST_F(ServiceManagerTest, AStatusIsOneLineAndNoOther) {
  auto manager = manager_of({.notify_socket = socket.name()});
  manager.tell_status("could not start: bad\nREADY=1");
  EXPECT_THAT(socket.told(), ElementsAre("STATUS=could not start: bad"));
}

TEST_F(ServiceManagerTest, WithoutOneNobodyIsToldAndNothingIsAmiss) {
  auto manager = manager_of({.watchdog_usec = "1000000"});
  EXPECT_FALSE(manager.listens());
  EXPECT_EQ(manager.watchdog(), std::nullopt);
  manager.tell_ready();
  EXPECT_THAT(log.lines(), IsEmpty());
}

TEST_F(ServiceManagerTest, TheWatchdogIsThatOfThisProcess) {
  const auto watchdog = [&](std::string usec, std::string pid) {
    return manager_of({socket.name(), std::move(usec), std::move(pid)}).watchdog();
  };
  EXPECT_EQ(watchdog("30000000", "4711"), 30s);
  EXPECT_EQ(watchdog("30000000", ""), 30s);
  EXPECT_EQ(watchdog("30000000", "4712"), std::nullopt) << "of the process that started us";
  EXPECT_EQ(watchdog("", "4711"), std::nullopt);
  EXPECT_EQ(watchdog("0", "4711"), std::nullopt);
  EXPECT_EQ(watchdog("soon", "4711"), std::nullopt);
}

TEST_F(ServiceManagerTest, OneThatIsGoneIsLoggedOnce) {
  auto manager = manager_of({.notify_socket = socket.name()});
  socket.close();
  manager.tell_ready();
  manager.tell_beat();
  ASSERT_EQ(log.lines().size(), 1U);
  EXPECT_TRUE(log.contains("warning broker: the service manager could not be told what=READY=1"));
}

TEST_F(ServiceManagerTest, AnAddressThatIsNoneIsLogged) {
  auto manager = manager_of({.notify_socket = std::string(200, '/')});
  EXPECT_FALSE(manager.listens());
  EXPECT_TRUE(log.contains("too long"));
}

}  // namespace
}  // namespace millrace::kernel
