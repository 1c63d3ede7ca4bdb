// What `millrace config` knows without a broker.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernel/cli/config_check.h"
#include "kernel/cli/config_client.h"
#include "kernel/cli/config_reference.h"

namespace millrace::kernel::cli {
namespace {

using testing::HasSubstr;

std::vector<std::string> meanings_of(const std::string& key) {
  const auto found = explain_setting({}, key);
  std::vector<std::string> lines;
  if (!found) return {found.error().detail};
  for (const auto& one : *found) lines.push_back(one.key + " of " + one.of);
  return lines;
}

TEST(ConfigReferenceTest, AKeyIsExplainedByEverybodyWhoDeclaresIt) {
  using testing::ElementsAre;
  EXPECT_THAT(meanings_of("broker.data"), ElementsAre("broker.data of millrace.toml"));
  EXPECT_THAT(meanings_of("retention.ms"), ElementsAre("retention.ms of a topic"));
  EXPECT_THAT(meanings_of("compression.type"),
              ElementsAre("compression.type of a topic", "compression.type of a broker"));
  EXPECT_THAT(meanings_of("consumer.session.timeout.ms"),
              ElementsAre("consumer.session.timeout.ms of a group"));
}

TEST(ConfigReferenceTest, NamesOfOthersStandForTheirPlaceholder) {
  using testing::Contains;
  using testing::ElementsAre;
  EXPECT_THAT(meanings_of("stream.clean.on-error"),
              ElementsAre("stream.NAME.on-error of millrace.toml"));
  EXPECT_THAT(meanings_of("stream.NAME.on-error"),
              ElementsAre("stream.NAME.on-error of millrace.toml"));
  EXPECT_THAT(meanings_of("log.levels.storage.filelog"),
              ElementsAre("log.levels.SUBSYSTEM of millrace.toml"));
  EXPECT_THAT(meanings_of("topic.orders.retention.ms"),
              ElementsAre("topic.NAME.\"retention.ms\" of millrace.toml"));
  // With and without the quotes that TOML asks for.
  EXPECT_EQ(meanings_of("defaults.\"num.partitions\""), meanings_of("defaults.num.partitions"));
  EXPECT_THAT(meanings_of("defaults.num.partitions"),
              ElementsAre("defaults.\"num.partitions\" of millrace.toml"));
}

TEST(ConfigReferenceTest, ASlipNamesTheNearest) {
  EXPECT_THAT(meanings_of("broker.dta").front(), HasSubstr("nearest known: broker.data"));
  EXPECT_THAT(meanings_of("retention.mss").front(), HasSubstr("nearest known: retention.ms"));
  EXPECT_THAT(meanings_of("stream.clean.").front(), HasSubstr("no option stream.clean."));
  EXPECT_THAT(meanings_of("stream.clean").front(), HasSubstr("no option"));
  EXPECT_THAT(meanings_of("").front(), HasSubstr("no option"));
}

TEST(ConfigReferenceTest, EverySettingIsFoundByItsOwnKey) {
  const auto all = all_settings({});
  EXPECT_GT(all.size(), 150U);
  for (const auto& setting : all) {
    const auto found = explain_setting({}, setting.key);
    ASSERT_TRUE(found) << setting.key;
    EXPECT_TRUE(std::ranges::any_of(*found, [&](const ExplainedSetting& one) {
      return one.option == setting.option;
    })) << setting.key;
  }
}

TEST(ConfigCheckTest, APlaceIsTakenFromWhatIsSaid) {
  const auto text = [](const std::string& line) {
    const auto place = place_of_wrong(line);
    return place.source + "|" + std::to_string(place.line) + "|" + std::to_string(place.column) +
           "|" + place.message;
  };
  EXPECT_EQ(text("/etc/millrace.toml:3:14: log.level: expected x"),
            "/etc/millrace.toml|3|14|log.level: expected x");
  EXPECT_EQ(text("a: b.toml:3:1: x: y"), "a: b.toml|3|1|x: y");
  EXPECT_EQ(text("--set broker.id=…: broker.id: expected"),
            "--set broker.id=…|0|0|broker.id: expected");
  EXPECT_EQ(text("cannot: read"), "|0|0|cannot: read");
  EXPECT_EQ(text("nothing"), "|0|0|nothing");
  EXPECT_EQ(text("12:30: late"), "|0|0|12:30: late");
}

ShownSetting policy() {
  return {.name = "cleanup.policy",
          .value = "delete,compact",
          .source = SettingSource::topic,
          .layers = {{"cleanup.policy", "delete,compact", SettingSource::topic},
                     {"log.cleanup.policy", "compact", SettingSource::all_brokers},
                     {"log.cleanup.policy", "delete", SettingSource::fallback}}};
}

TEST(ConfigChangeTest, WhatIsThereAfterwardsIsToldWithoutDoingIt) {
  const auto after = [](ConfigOperation operation, const std::string& value,
                        const ConfigTarget& target = {.topic = "orders"},
                        const std::string& name = "cleanup.policy") {
    return value_after(policy(), {name, operation, value}, target).value_or("-");
  };
  EXPECT_EQ(after(ConfigOperation::set, "compact"), "compact");
  EXPECT_EQ(after(ConfigOperation::append, "compact"), "delete,compact");
  EXPECT_EQ(after(ConfigOperation::append, "new"), "delete,compact,new");
  EXPECT_EQ(after(ConfigOperation::subtract, "delete"), "compact");
  EXPECT_EQ(after(ConfigOperation::remove, ""), "compact");
}

TEST(ConfigChangeTest, WhatATopicInheritsIsInItsOwnUnit) {
  const ShownSetting retention{
      .name = "retention.ms",
      .value = "5",
      .source = SettingSource::topic,
      .layers = {{"retention.ms", "5", SettingSource::topic},
                 {"log.retention.ms", std::nullopt, SettingSource::fallback},
                 {"log.retention.hours", "168", SettingSource::fallback}}};
  const ConfigStep taken{"retention.ms", ConfigOperation::remove, ""};
  EXPECT_EQ(value_after(retention, taken, {.topic = "orders"}), "604800000");
  auto alone = retention;
  alone.layers.resize(2);
  EXPECT_EQ(value_after(alone, taken, {.topic = "orders"}), "604800000");
}

TEST(ConfigChangeTest, ABrokersOwnUncoversThatOfAll) {
  const ShownSetting retention{.name = "log.retention.ms",
                               .value = "5",
                               .source = SettingSource::broker,
                               .layers = {{"log.retention.ms", "5", SettingSource::broker},
                                          {"log.retention.ms", "6", SettingSource::all_brokers},
                                          {"log.retention.hours", "168", SettingSource::fallback}}};
  const ConfigStep taken{"log.retention.ms", ConfigOperation::remove, ""};
  EXPECT_EQ(value_after(retention, taken, {.broker = "1"}), "6");
  EXPECT_EQ(value_after(retention, taken, {.all_brokers = true}), "5");
  auto alone = retention;
  alone.layers.erase(alone.layers.begin() + 1);
  EXPECT_EQ(value_after(alone, taken, {.broker = "1"}), std::nullopt);
}

}  // namespace
}  // namespace millrace::kernel::cli
