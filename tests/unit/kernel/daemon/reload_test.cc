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

TEST(ReloadTest, StreamsNeedNoRestart) {
  auto wanted = running;
  wanted.push_back({"stream.views.sink", "views", "conf.d/views.toml:3:8"});
  EXPECT_THAT(changed_at_restart(running, wanted), IsEmpty());
}

TEST(ReloadTest, WhatCountsAfterItIsOfBoth) {
  auto wanted = running;
  wanted[0].value = "2";
  wanted[3] = {"log.level", "debug", "m.toml:2:1"};
  wanted.pop_back();
  wanted.push_back({"stream.views.sink", "views", "m.toml:5:1"});
  std::vector<std::string> told;
  for (const auto& one : settings_after_reload(running, wanted)) {
    told.push_back(one.key + "=" + one.value);
  }
  EXPECT_THAT(told, ElementsAre("broker.memory=1", "broker.rack=", "log.format=text",
                                "log.level=debug", "stream.views.sink=views"));
}

TEST(ReloadTest, TheStatusSaysWhatIsNotDone) {
  EXPECT_EQ(status_of({}), "");
  EXPECT_EQ(status_of({.done = {"stream a: started"}, .failed = {}, .at_restart = {}}), "");
  EXPECT_EQ(status_of({.done = {}, .failed = {}, .at_restart = {"broker.id", "plugin x ends"}}),
            "from the next start: broker.id, plugin x ends");
  EXPECT_EQ(
      status_of(
          {.done = {}, .failed = {"stream a: started: not done: x"}, .at_restart = {"broker.id"}}),
      "reloaded in part: stream a: started: not done: x");
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
  wanted[1] = {"transport.clicks.listen", "2", "--set"};
  EXPECT_THAT(changed_at_restart(running, wanted),
              ElementsAre("broker.rack", "transport.clicks.listen"));
}

}  // namespace
}  // namespace millrace::kernel
