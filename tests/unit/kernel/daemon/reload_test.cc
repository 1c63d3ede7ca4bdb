#include "kernel/daemon/reload.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace millrace::kernel {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const std::vector<SettingFact> running{{"broker.memory", "1", "default"},
                                       {"broker.rack", "", "default"},
                                       {"log.format", "text", "default"},
                                       {"log.level", "info", "default"},
                                       {"log.levels.storage", "debug", "--set"}};

TEST(ReloadTest, LevelsOfTheLogNeedNoRestart) {
  auto wanted = running;
  wanted[3].value = "debug";
  wanted[4].key = "log.levels.broker";
  EXPECT_THAT(changed_at_restart(running, wanted), IsEmpty());
}

TEST(ReloadTest, OptionsThatDifferAreNamedOnce) {
  auto wanted = running;
  wanted[0].value = "2";
  wanted[2].value = "json";
  EXPECT_THAT(changed_at_restart(running, wanted), ElementsAre("broker.memory", "log.format"));
}

TEST(ReloadTest, WhereAValueComesFromIsNoDifference) {
  auto wanted = running;
  wanted[0].source = "/etc/millrace/millrace.toml:3:1";
  EXPECT_THAT(changed_at_restart(running, wanted), IsEmpty());
}

TEST(ReloadTest, OptionsThatComeAndGoAreNamed) {
  auto wanted = running;
  wanted[1] = {"stream.clicks.parallelism", "2", "--set"};
  EXPECT_THAT(changed_at_restart(running, wanted),
              ElementsAre("broker.rack", "stream.clicks.parallelism"));
}

}  // namespace
}  // namespace millrace::kernel
