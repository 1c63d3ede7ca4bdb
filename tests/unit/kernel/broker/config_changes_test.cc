#include "kernel/broker/config_changes.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace millrace::kernel {
namespace {

using enum ConfigOperation;

class ConfigChangesTest : public ::testing::Test {
 protected:
  static ConfigAlteration alteration(std::vector<ConfigChange> changes, bool replace_all = false) {
    return {.resource = {}, .changes = std::move(changes), .replace_all = replace_all};
  }
  ConfigMap topic(const ConfigAlteration& wanted, const ConfigMap& current = {}) const {
    auto changed = changed_topic_configs(wanted, current, ConfigSources(config, cluster));
    EXPECT_TRUE(changed) << changed.error().message;
    return changed ? *changed : ConfigMap{};
  }
  ConfigRefusal refused(const ConfigAlteration& wanted, const ConfigMap& current = {}) const {
    const auto changed = changed_topic_configs(wanted, current, ConfigSources(config, cluster));
    EXPECT_FALSE(changed);
    return changed ? ConfigRefusal{} : changed.error();
  }
  ConfigRefusal broker_refused(const ConfigAlteration& wanted) const {
    const auto changed = changed_broker_configs(wanted, {}, ConfigSources(config, cluster));
    EXPECT_FALSE(changed);
    return changed ? ConfigRefusal{} : changed.error();
  }

  BrokerConfig config;
  ClusterState cluster;
};

TEST_F(ConfigChangesTest, WhatIsNotNamedStaysUnlessAllIsReplaced) {
  const ConfigMap current{{"retention.ms", "1"}, {"segment.ms", "2"}};
  EXPECT_EQ(topic(alteration({{"retention.ms", set, "3"}}), current),
            (ConfigMap{{"retention.ms", "3"}, {"segment.ms", "2"}}));
  EXPECT_EQ(topic(alteration({{"retention.ms", remove, {}}}), current),
            (ConfigMap{{"segment.ms", "2"}}));
  EXPECT_EQ(topic(alteration({{"retention.ms", set, "3"}}, true), current),
            (ConfigMap{{"retention.ms", "3"}}));
  EXPECT_EQ(topic(alteration({}, true), current), ConfigMap{});
}

TEST_F(ConfigChangesTest, RemovingWhatIsNotThereIsNoError) {
  EXPECT_EQ(topic(alteration({{"no.such", remove, {}}})), ConfigMap{});
}

TEST_F(ConfigChangesTest, AListGrowsFromWhatItInherits) {
  EXPECT_EQ(topic(alteration({{"cleanup.policy", append, "compact"}})),
            (ConfigMap{{"cleanup.policy", "delete,compact"}}));
  config.defaults = {{"log.cleanup.policy", "compact"}};
  EXPECT_EQ(topic(alteration({{"cleanup.policy", append, "compact, delete"}})),
            (ConfigMap{{"cleanup.policy", "compact,delete"}}));
  EXPECT_EQ(topic(alteration({{"cleanup.policy", subtract, "compact"}})),
            (ConfigMap{{"cleanup.policy", ""}}));
}

TEST_F(ConfigChangesTest, AListShrinksByWhatItHas) {
  const ConfigMap current{{"cleanup.policy", "compact,delete"}};
  EXPECT_EQ(topic(alteration({{"cleanup.policy", subtract, "compact"}}), current),
            (ConfigMap{{"cleanup.policy", "delete"}}));
  EXPECT_EQ(refused(alteration({{"cleanup.policy", append, "keep"}})).error,
            ErrorCode::invalid_config);
}

TEST_F(ConfigChangesTest, OnlyListsGrowAndShrink) {
  const auto refusal = refused(alteration({{"retention.ms", append, "5"}}));
  EXPECT_EQ(refusal.error, ErrorCode::invalid_config);
  EXPECT_EQ(refusal.message, "Can't APPEND to key retention.ms because its type is not LIST.");
}

TEST_F(ConfigChangesTest, ValuesAreChecked) {
  const auto refusal = refused(alteration({{"retention.ms", set, "abc"}}));
  EXPECT_EQ(refusal.error, ErrorCode::invalid_config);
  EXPECT_EQ(refusal.message,
            "Invalid value abc for configuration retention.ms: Not a number of type LONG");
  EXPECT_EQ(refused(alteration({{"no.such", set, "1"}})).message,
            "Unknown topic config name: no.such");
  EXPECT_EQ(
      refused(alteration({{"max.compaction.lag.ms", set, "5"}}), {{"min.compaction.lag.ms", "10"}})
          .error,
      ErrorCode::invalid_config);
}

TEST_F(ConfigChangesTest, AStoredValueThatCannotBeUsedDoesNotHinderOthers) {
  const ConfigMap current{{"segment.ms", "soon"}, {"no.such", "1"}};
  EXPECT_EQ(topic(alteration({{"retention.ms", set, "3"}}), current).at("segment.ms"), "soon");
  EXPECT_EQ(topic(alteration({{"segment.ms", remove, {}}}), current),
            (ConfigMap{{"no.such", "1"}}));
}

TEST_F(ConfigChangesTest, AMalformedRequestIsRefusedAsSuch) {
  const auto twice = refused(alteration({{"retention.ms", set, "1"}, {"retention.ms", set, "1"}}));
  EXPECT_EQ(twice.error, ErrorCode::invalid_request);
  EXPECT_EQ(twice.message, "Error due to duplicate config keys");
  const auto null = refused(alteration({{"retention.ms", set, {}}, {"segment.ms", append, {}}}));
  EXPECT_EQ(null.error, ErrorCode::invalid_request);
  EXPECT_EQ(null.message, "Null value not supported for : retention.ms, segment.ms");
  EXPECT_EQ(refused(alteration({{"retention.ms", ConfigOperation{9}, "1"}})).error,
            ErrorCode::invalid_request);
}

TEST_F(ConfigChangesTest, OnlySomeSettingsOfABrokerChangeWhileItRuns) {
  const ConfigSources sources(config, cluster);
  EXPECT_TRUE(changed_broker_configs(alteration({{"log.retention.ms", set, "5"}}), {}, sources));
  const auto refusal =
      broker_refused(alteration({{"num.partitions", set, "3"}, {"log.retention.hours", set, "3"}}));
  EXPECT_EQ(refusal.error, ErrorCode::invalid_request);
  EXPECT_EQ(refusal.message,
            "Cannot update these configs dynamically: [num.partitions, log.retention.hours]");
  EXPECT_EQ(broker_refused(alteration({{"retention.ms", set, "3"}})).error,
            ErrorCode::invalid_config);
  EXPECT_EQ(broker_refused(alteration({{"message.max.bytes", set, "-1"}})).error,
            ErrorCode::invalid_config);
}

}  // namespace
}  // namespace millrace::kernel
