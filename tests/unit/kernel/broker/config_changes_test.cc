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
    const auto changed =
        changed_broker_configs(wanted, {}, ConfigSources(config, cluster), cluster);
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
  EXPECT_TRUE(
      changed_broker_configs(alteration({{"log.retention.ms", set, "5"}}), {}, sources, cluster));
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

// Set for one, it would hide there what is set for all.
TEST_F(ConfigChangesTest, WhatHoldsForAllBrokersIsNotSetForOne) {
  auto wanted = alteration({{"cluster.balance.enable", set, "true"}});
  wanted.resource = {ConfigResourceType::broker, "1"};
  const auto refusal = broker_refused(wanted);
  EXPECT_EQ(refusal.error, ErrorCode::invalid_config);
  EXPECT_THAT(refusal.message, ::testing::HasSubstr("--entity-default"));
  for (const auto* name : {"cluster.balance.moves.max", "cluster.balance.replace.after.ms"}) {
    wanted.changes = {{name, set, "1"}};
    EXPECT_EQ(broker_refused(wanted).error, ErrorCode::invalid_config) << name;
  }
  wanted.changes = {{"cluster.drain.brokers", append, "1"}};
  EXPECT_EQ(broker_refused(wanted).error, ErrorCode::invalid_config);

  const ConfigSources sources(config, cluster);
  wanted.changes = {{"cluster.balance.enable", remove, {}}};
  const ConfigMap of_an_earlier_version{{"cluster.balance.enable", "true"}};
  EXPECT_EQ(changed_broker_configs(wanted, of_an_earlier_version, sources, cluster), ConfigMap{});
  wanted.changes = {{"cluster.balance.rate.max", set, "1000"}};
  EXPECT_TRUE(changed_broker_configs(wanted, {}, sources, cluster)) << "each has its own";
  wanted.resource.name.clear();
  wanted.changes = {{"cluster.balance.enable", set, "false"}};
  EXPECT_TRUE(changed_broker_configs(wanted, {}, sources, cluster));
}

TEST_F(ConfigChangesTest, OnlyBrokersThatAreKnownAreDrained) {
  cluster.brokers[1] = {.id = 1};
  cluster.brokers[2] = {.id = 2};
  TopicState topic;
  topic.name = "orders";
  topic.partitions.push_back({.leader = 1, .replicas = {1, 3}, .in_sync = {1}});
  cluster.put(std::move(topic));
  const ConfigSources sources(config, cluster);
  const auto drained = [&](ConfigOperation operation, const std::string& brokers,
                           const ConfigMap& current = {}) {
    return changed_broker_configs(alteration({{"cluster.drain.brokers", operation, brokers}}),
                                  current, sources, cluster);
  };
  EXPECT_TRUE(drained(append, "2"));
  EXPECT_TRUE(drained(append, "3")) << "it is down, and has replicas";
  const auto unknown = drained(set, "2,99");
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().error, ErrorCode::invalid_config);
  EXPECT_THAT(unknown.error().message, ::testing::HasSubstr("there is no broker 99"));
  EXPECT_THAT(unknown.error().message, ::testing::HasSubstr("1, 2, 3"));
  EXPECT_TRUE(drained(append, "2", {{"cluster.drain.brokers", "7"}})) << "7 was there, and is gone";
  EXPECT_EQ(drained(subtract, "7", {{"cluster.drain.brokers", "7"}}),
            (ConfigMap{{"cluster.drain.brokers", ""}}));
}

TEST_F(ConfigChangesTest, WhatIsTooLongIsNotSaidInFull) {
  const std::string name(20'000, 'x');
  EXPECT_LT(refused(alteration({{name, set, "1"}})).message.size(), 400U);
  EXPECT_LT(refused(alteration({{"retention.ms", set, name}})).message.size(), 400U);
}

}  // namespace
}  // namespace millrace::kernel
