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

TEST(ReloadTest, TopicsAndDefaultsThatAreReadAgainNeedNoRestart) {
  auto wanted = running;
  wanted.push_back({"defaults.\"log.retention.ms\"", "1", "m.toml:1:1"});
  wanted.push_back({"defaults.\"num.partitions\"", "1", "m.toml:2:1"});
  wanted.push_back({"defaults.\"retention.ms\"", "1", "m.toml:3:1"});
  wanted.push_back({"defaults.\"socket.send.buffer.bytes\"", "1", "m.toml:4:1"});
  wanted.push_back({"topic.orders.partitions", "3", "conf.d/orders.toml:2:1"});
  EXPECT_THAT(changed_at_restart(running, wanted),
              ElementsAre("defaults.\"socket.send.buffer.bytes\""));
}

TEST(ReloadTest, DefaultsThatAreNotReadAgainStay) {
  using Defaults = std::map<std::string, std::string>;
  const Defaults before{{"log.retention.ms", "1"}, {"num.replica.fetchers", "2"}};
  EXPECT_EQ(defaults_after_reload(
                before, {{"log.retention.check.interval.ms", "5"}, {"num.partitions", "3"}}),
            (Defaults{{"num.partitions", "3"}, {"num.replica.fetchers", "2"}}));
}

TEST(ReloadTest, WhatThisOneTakesOverIsNamedOrBegun) {
  auto wanted = running;
  wanted.push_back({"transport.inner.listen", "1", "m.toml:1:1"});
  wanted.push_back({"transport.innermost.listen", "1", "m.toml:2:1"});
  wanted.push_back({"compression.plugins", "gzip", "m.toml:3:1"});
  const std::vector<std::string> more{"transport.inner.", "compression.plugins"};
  EXPECT_THAT(changed_at_restart(running, wanted, more), ElementsAre("transport.innermost.listen"));
  EXPECT_EQ(settings_after_reload(running, wanted, more).size(), running.size() + 2);
}

TEST(ReloadTest, TransportsThatComeAndGoAreKnownByTheirOptions) {
  const std::vector<SettingFact> before{{"transport.\"a.b\".listen", "1", "m.toml:1:1"},
                                        {"transport.kafka.listen", "2", "m.toml:2:1"},
                                        {"transport.kafka.plugin", "kafka", "default"}};
  const std::vector<SettingFact> after{{"transport.inner.listen", "1", "m.toml:1:1"},
                                       {"transport.kafka.listen", "3", "m.toml:2:1"}};
  EXPECT_THAT(transports_that_change(before, after),
              ElementsAre("transport.\"a.b\".", "transport.inner."));
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
  EXPECT_EQ(status_of({.done = {"stream a: started"}, .failed = {}, .left = {}, .at_restart = {}}),
            "");
  EXPECT_EQ(
      status_of(
          {.done = {}, .failed = {}, .left = {}, .at_restart = {"broker.id", "plugin x ends"}}),
      "from the next start: broker.id, plugin x ends");
  EXPECT_EQ(status_of({.done = {},
                       .failed = {},
                       .left = {"topic a stays as it is: partitions is 1, declared 2"},
                       .at_restart = {"broker.id"}}),
            "topic a stays as it is: partitions is 1, declared 2; from the next start: broker.id");
  EXPECT_EQ(status_of({.done = {},
                       .failed = {"stream a: started: not done: x"},
                       .left = {},
                       .at_restart = {"broker.id"}}),
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
