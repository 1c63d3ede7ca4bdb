#include "kernel/broker/config_sources.h"

#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace millrace::kernel {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Told = std::tuple<std::string, std::string, ConfigSource>;

class ConfigSourcesTest : public ::testing::Test {
 protected:
  static const ConfigEntry& find(const std::vector<ConfigEntry>& all, std::string_view name) {
    const auto found = std::ranges::find(all, name, &ConfigEntry::name);
    EXPECT_NE(found, all.end()) << name;
    return *found;
  }
  ConfigEntry of_topic(std::string_view name, const ConfigMap& overrides = {}) const {
    return find(ConfigSources(config, cluster).describe_topic(overrides), name);
  }
  ConfigEntry of_broker(std::string_view name) const {
    return find(ConfigSources(config, cluster).describe_broker(), name);
  }
  static std::vector<Told> synonyms(const ConfigEntry& entry) {
    std::vector<Told> told;
    for (const auto& one : entry.synonyms) told.emplace_back(one.name, *one.value, one.source);
    return told;
  }
  ConfigMap& this_broker() { return cluster.broker_configs["3"]; }
  ConfigMap& all_brokers() { return cluster.broker_configs[std::string(all_brokers_key)]; }

  BrokerConfig config{.id = 3, .rack = "", .data = "/data", .defaults = {}};
  ClusterState cluster;
};

TEST_F(ConfigSourcesTest, SynonymsStandInTheOrderInWhichTheyCount) {
  config.defaults = {{"log.retention.minutes", "10"}, {"log.retention.hours", "2"}};
  all_brokers() = {{"log.retention.ms", "7000"}};
  this_broker() = {{"log.retention.ms", "6000"}};
  const auto entry = of_topic("retention.ms", {{"retention.ms", "5000"}});
  EXPECT_EQ(entry.value, "5000");
  EXPECT_EQ(entry.source, ConfigSource::topic);
  EXPECT_THAT(synonyms(entry),
              ElementsAre(Told("retention.ms", "5000", ConfigSource::topic),
                          Told("log.retention.ms", "6000", ConfigSource::broker),
                          Told("log.retention.ms", "7000", ConfigSource::all_brokers),
                          Told("log.retention.minutes", "10", ConfigSource::static_broker),
                          Told("log.retention.hours", "2", ConfigSource::static_broker),
                          Told("log.retention.hours", "168", ConfigSource::fallback)));
}

TEST_F(ConfigSourcesTest, WhatIsTakenAwayUncoversTheNext) {
  config.defaults = {{"log.retention.minutes", "10"}};
  all_brokers() = {{"log.retention.ms", "7000"}};
  this_broker() = {{"log.retention.ms", "6000"}};
  EXPECT_EQ(of_topic("retention.ms").value, "6000");
  EXPECT_EQ(of_topic("retention.ms").source, ConfigSource::broker);
  this_broker().clear();
  EXPECT_EQ(of_topic("retention.ms").value, "7000");
  EXPECT_EQ(of_topic("retention.ms").source, ConfigSource::all_brokers);
  all_brokers().clear();
  EXPECT_EQ(of_topic("retention.ms").value, "600000");
  EXPECT_EQ(of_topic("retention.ms").source, ConfigSource::static_broker);
  config.defaults.clear();
  EXPECT_EQ(of_topic("retention.ms").value, "604800000");
  EXPECT_EQ(of_topic("retention.ms").source, ConfigSource::fallback);
  EXPECT_THAT(synonyms(of_topic("retention.ms")), IsEmpty());
}

TEST_F(ConfigSourcesTest, ATopicsNameInTheFileMeansTheBrokersStrongestName) {
  config.defaults = {{"retention.ms", "5"}, {"remote.log.copy.disable", "true"}};
  EXPECT_THAT(synonyms(of_topic("retention.ms")),
              ElementsAre(Told("log.retention.ms", "5", ConfigSource::static_broker),
                          Told("log.retention.hours", "168", ConfigSource::fallback)));
  EXPECT_EQ(of_broker("log.retention.ms").value, "5");
  EXPECT_EQ(of_topic("remote.log.copy.disable").value, "true");
  EXPECT_EQ(of_topic("remote.log.copy.disable").source, ConfigSource::static_broker);
  this_broker() = {{"log.retention.ms", "6"}};
  EXPECT_EQ(of_topic("retention.ms").value, "6");
}

TEST_F(ConfigSourcesTest, EntriesHaveKafkasTypes) {
  const std::pair<const char*, ConfigType> types[] = {
      {"cleanup.policy", ConfigType::list},
      {"compression.type", ConfigType::text},
      {"max.message.bytes", ConfigType::int32},
      {"retention.ms", ConfigType::int64},
      {"min.cleanable.dirty.ratio", ConfigType::number},
      {"preallocate", ConfigType::boolean}};
  for (const auto& [name, type] : types) EXPECT_EQ(of_topic(name).type, type) << name;
  EXPECT_FALSE(of_topic("retention.ms").read_only);
  EXPECT_FALSE(of_topic("retention.ms").documentation.empty());
}

TEST_F(ConfigSourcesTest, ABrokerTellsItsOwnValuesAndWhatMayChange) {
  config.defaults = {{"num.partitions", "4"}};
  EXPECT_EQ(of_broker("broker.id").value, "3");
  EXPECT_EQ(of_broker("log.dirs").value, "/data");
  EXPECT_EQ(of_broker("num.partitions").value, "4");
  EXPECT_TRUE(of_broker("num.partitions").read_only);
  EXPECT_FALSE(of_broker("log.retention.ms").read_only);
  EXPECT_EQ(of_broker("log.retention.ms").value, std::nullopt);
  EXPECT_EQ(of_broker("log.retention.hours").value, "168");
  this_broker() = {{"log.cleanup.policy", "compact, delete"}};
  EXPECT_EQ(of_broker("log.cleanup.policy").value, "compact,delete");
  EXPECT_EQ(of_broker("log.cleanup.policy").source, ConfigSource::broker);
}

TEST_F(ConfigSourcesTest, OfAllBrokersOnlyWhatIsSetIsTold) {
  EXPECT_THAT(ConfigSources(config, cluster).describe_all_brokers(), IsEmpty());
  all_brokers() = {{"log.retention.ms", "7000"}};
  const auto all = ConfigSources(config, cluster).describe_all_brokers();
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].source, ConfigSource::all_brokers);
  EXPECT_EQ(all[0].type, ConfigType::int64);
}

TEST_F(ConfigSourcesTest, WhatIsStoredIsShownAsItIs) {
  const ConfigMap stored{{"retention.ms", "soon"}, {"no.such", "1"}};
  EXPECT_EQ(of_topic("retention.ms", stored).value, "soon");
  EXPECT_EQ(of_topic("no.such", stored).value, "1");
  EXPECT_EQ(of_topic("no.such", stored).type, ConfigType::unknown);
}

TEST_F(ConfigSourcesTest, OldNamesAreShownWhereTheyAreSet) {
  const auto all = ConfigSources(config, cluster).describe_topic({});
  EXPECT_EQ(std::ranges::count(all, "message.format.version", &ConfigEntry::name), 0);
  EXPECT_EQ(of_topic("message.format.version", {{"message.format.version", "0.10.2"}}).value,
            "0.10.2");
}

}  // namespace
}  // namespace millrace::kernel
