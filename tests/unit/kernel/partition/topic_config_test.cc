#include "kernel/partition/topic_config.h"

#include <set>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace millrace::kernel {
namespace {

using ::testing::HasSubstr;

TopicConfig parsed(const ConfigMap& defaults, const ConfigMap& overrides) {
  auto config = TopicConfig::parse(defaults, overrides);
  EXPECT_TRUE(config) << config.error().detail;
  return config ? *config : TopicConfig{};
}

std::string refused(const ConfigMap& overrides, const ConfigMap& defaults = {}) {
  const auto config = TopicConfig::parse(defaults, overrides);
  EXPECT_FALSE(config);
  if (config) return {};
  EXPECT_EQ(config.error().code, Errc::invalid_argument);
  return config.error().detail;
}

const ConfigEntry& info_of(const std::vector<ConfigEntry>& all, std::string_view name) {
  const auto found = std::ranges::find(all, name, &ConfigEntry::name);
  EXPECT_NE(found, all.end()) << name;
  return *found;
}

// The struct's defaults and the table's are two statements of the same thing.
TEST(TopicConfigTest, DefaultsAreKafkas) {
  const auto config = parsed({}, {});
  const TopicConfig plain;
  EXPECT_EQ(config.cleanup_compact, plain.cleanup_compact);
  EXPECT_EQ(config.cleanup_delete, plain.cleanup_delete);
  EXPECT_EQ(config.compression_type, plain.compression_type);
  EXPECT_EQ(config.delete_retention_ms, plain.delete_retention_ms);
  EXPECT_EQ(config.file_delete_delay_ms, plain.file_delete_delay_ms);
  EXPECT_EQ(config.flush_messages, plain.flush_messages);
  EXPECT_EQ(config.flush_ms, plain.flush_ms);
  EXPECT_EQ(config.index_interval_bytes, plain.index_interval_bytes);
  EXPECT_EQ(config.max_compaction_lag_ms, plain.max_compaction_lag_ms);
  EXPECT_EQ(config.max_message_bytes, plain.max_message_bytes);
  EXPECT_EQ(config.message_timestamp_type, plain.message_timestamp_type);
  EXPECT_EQ(config.message_timestamp_after_max_ms, plain.message_timestamp_after_max_ms);
  EXPECT_EQ(config.message_timestamp_before_max_ms, plain.message_timestamp_before_max_ms);
  EXPECT_EQ(config.min_cleanable_dirty_ratio, plain.min_cleanable_dirty_ratio);
  EXPECT_EQ(config.min_compaction_lag_ms, plain.min_compaction_lag_ms);
  EXPECT_EQ(config.min_insync_replicas, plain.min_insync_replicas);
  EXPECT_EQ(config.preallocate, plain.preallocate);
  EXPECT_EQ(config.retention_bytes, plain.retention_bytes);
  EXPECT_EQ(config.retention_ms, plain.retention_ms);
  EXPECT_EQ(config.segment_bytes, plain.segment_bytes);
  EXPECT_EQ(config.segment_index_bytes, plain.segment_index_bytes);
  EXPECT_EQ(config.segment_jitter_ms, plain.segment_jitter_ms);
  EXPECT_EQ(config.segment_ms, plain.segment_ms);
  EXPECT_EQ(config.unclean_leader_election_enable, plain.unclean_leader_election_enable);
  EXPECT_EQ(config.producer_id_expiration_ms, plain.producer_id_expiration_ms);
}

TEST(TopicConfigTest, TheTopicsOwnSettingIsTheStrongest) {
  const ConfigMap broker{{"log.retention.hours", "2"},
                         {"log.retention.minutes", "30"},
                         {"log.retention.ms", "5000"},
                         {"retention.ms", "6000"}};
  EXPECT_EQ(parsed(broker, {{"retention.ms", "7"}}).retention_ms, 7);
  EXPECT_EQ(parsed(broker, {}).retention_ms, 6000);
  auto weaker = broker;
  weaker.erase("retention.ms");
  EXPECT_EQ(parsed(weaker, {}).retention_ms, 5000);
  weaker.erase("log.retention.ms");
  EXPECT_EQ(parsed(weaker, {}).retention_ms, 30 * 60 * 1000);
  weaker.erase("log.retention.minutes");
  EXPECT_EQ(parsed(weaker, {}).retention_ms, 2 * 3600 * 1000);
}

TEST(TopicConfigTest, CoarserUnitsKeepUnlimitedAndSaturate) {
  EXPECT_EQ(parsed({{"log.retention.hours", "-1"}}, {}).retention_ms, -1);
  EXPECT_EQ(parsed({{"log.roll.hours", "2147483647"}}, {}).segment_ms, 2147483647LL * 3'600'000);
}

TEST(TopicConfigTest, ReadsEveryKindOfValue) {
  const auto config = parsed({}, {{"cleanup.policy", "compact, delete"},
                                  {"compression.type", "zstd"},
                                  {"message.timestamp.type", "LogAppendTime"},
                                  {"min.cleanable.dirty.ratio", "0.25"},
                                  {"preallocate", "true"},
                                  {"segment.bytes", " 1048576 "}});
  EXPECT_TRUE(config.cleanup_compact);
  EXPECT_TRUE(config.cleanup_delete);
  EXPECT_EQ(config.compression_type, CompressionId::zstd);
  EXPECT_EQ(config.message_timestamp_type, TimestampType::log_append_time);
  EXPECT_EQ(config.min_cleanable_dirty_ratio, 0.25);
  EXPECT_TRUE(config.preallocate);
  EXPECT_EQ(config.segment_bytes, 1048576);
  EXPECT_FALSE(parsed({}, {{"cleanup.policy", "compact"}}).cleanup_delete);
  EXPECT_EQ(parsed({}, {{"compression.type", "uncompressed"}}).compression_type,
            CompressionId::none);
  EXPECT_EQ(parsed({}, {{"compression.type", "producer"}}).compression_type, std::nullopt);
}

TEST(TopicConfigTest, WhatIsWrongIsNamed) {
  EXPECT_EQ(refused({{"retention.ms", "soon"}}),
            "Invalid value soon for configuration retention.ms: a number from -1 to "
            "9223372036854775807 is expected");
  EXPECT_THAT(refused({{"retention.ms", "-2"}}), HasSubstr("retention.ms"));
  EXPECT_THAT(refused({{"retention.ms", "1e3"}}), HasSubstr("1e3"));
  EXPECT_THAT(refused({{"segment.bytes", "2147483648"}}), HasSubstr("to 2147483647"));
  EXPECT_THAT(refused({{"min.cleanable.dirty.ratio", "1.5"}}), HasSubstr("from 0 to 1"));
  EXPECT_THAT(refused({{"preallocate", "yes"}}), HasSubstr("\"true\" or \"false\""));
  EXPECT_THAT(refused({{"compression.type", "brotli"}}), HasSubstr("uncompressed|zstd|lz4"));
  EXPECT_THAT(refused({{"cleanup.policy", "compact,remove"}}), HasSubstr("compact,remove"));
  EXPECT_THAT(refused({{"cleanup.policy", ""}}), HasSubstr("cleanup.policy"));
  EXPECT_THAT(refused({{"remote.storage.enable", "true"}}), HasSubstr("remote.storage.enable"));
  EXPECT_EQ(refused({{"retention", "1"}}), "Unknown topic config name: retention");
  EXPECT_THAT(refused({}, {{"log.retention.hours", "week"}}), HasSubstr("log.retention.hours"));
  EXPECT_THAT(refused({}, {{"message.max.bytes", "-5"}}), HasSubstr("message.max.bytes"));
  EXPECT_THAT(refused({}, {{"producer.id.expiration.ms", "0"}}), HasSubstr("producer.id"));
}

TEST(TopicConfigTest, DescribesValuesAndWhereTheyComeFrom) {
  const auto all = TopicConfig::describe({{"log.roll.hours", "1"}, {"retention.bytes", "99"}},
                                         {{"retention.ms", "5"}});
  EXPECT_EQ(all.size(), topic_options().size());
  EXPECT_TRUE(std::ranges::is_sorted(all, {}, &ConfigEntry::name));
  EXPECT_EQ(info_of(all, "retention.ms").value, "5");
  EXPECT_EQ(info_of(all, "retention.ms").source, ConfigSource::topic);
  EXPECT_EQ(info_of(all, "segment.ms").value, "3600000");
  EXPECT_EQ(info_of(all, "segment.ms").source, ConfigSource::static_broker);
  EXPECT_EQ(info_of(all, "retention.bytes").value, "99");
  EXPECT_EQ(info_of(all, "max.message.bytes").value, "1048588");
  EXPECT_EQ(info_of(all, "max.message.bytes").source, ConfigSource::fallback);
}

TEST(TopicConfigTest, TheTablesFitTogether) {
  std::set<std::string> broker;
  for (const auto* option = broker_defaults(); option->name; ++option) {
    EXPECT_TRUE(broker.insert(option->name).second) << option->name << " is listed twice";
    EXPECT_NE(option->help, nullptr);
  }
  for (const auto& topic : topic_options()) {
    EXPECT_TRUE(broker.contains(topic.option.name));
    EXPECT_NE(topic.option.default_value, nullptr) << topic.option.name;
    for (const auto& synonym : topic.synonyms) {
      if (synonym.name) EXPECT_TRUE(broker.contains(synonym.name)) << synonym.name;
    }
  }
  for (const auto* name : {"num.partitions", "auto.create.topics.enable", "fetch.max.bytes"}) {
    EXPECT_TRUE(broker.contains(name));
  }
}

TEST(TopicConfigTest, LongTimesFitTheLogsClock) {
  const auto config = parsed({}, {{"segment.ms", "9223372036854775807"}});
  EXPECT_GT(config.log_options({}).segment_age, std::chrono::hours(24 * 365 * 200));
}

}  // namespace
}  // namespace millrace::kernel
