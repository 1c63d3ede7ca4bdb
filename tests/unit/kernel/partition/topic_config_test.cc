#include "kernel/partition/topic_config.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

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

TEST(TopicConfigTest, WhatIsWrongIsToldInKafkasWords) {
  EXPECT_EQ(refused({{"retention.ms", "soon"}}),
            "Invalid value soon for configuration retention.ms: Not a number of type LONG");
  EXPECT_EQ(refused({{"retention.ms", "-2"}}),
            "Invalid value -2 for configuration retention.ms: Value must be at least -1");
  EXPECT_EQ(refused({{"segment.bytes", "2147483648"}}),
            "Invalid value 2147483648 for configuration segment.bytes: Not a number of type INT");
  EXPECT_EQ(refused({{"min.cleanable.dirty.ratio", "1.5"}}),
            "Invalid value 1.5 for configuration min.cleanable.dirty.ratio: "
            "Value must be no more than 1");
  EXPECT_EQ(refused({{"preallocate", "yes"}}),
            "Invalid value yes for configuration preallocate: "
            "Expected value to be either true or false");
  EXPECT_EQ(refused({{"compression.type", "brotli"}}),
            "Invalid value brotli for configuration compression.type: "
            "String must be one of: uncompressed, zstd, lz4, snappy, gzip, producer");
  EXPECT_EQ(refused({{"cleanup.policy", "compact,remove"}}),
            "Invalid value remove for configuration cleanup.policy: "
            "String must be one of: compact, delete");
  EXPECT_EQ(refused({{"retention", "1"}}), "Unknown topic config name: retention");
  EXPECT_EQ(refused({{"min.compaction.lag.ms", "10"}, {"max.compaction.lag.ms", "5"}}),
            "conflict topic config setting min.compaction.lag.ms (10) > max.compaction.lag.ms (5)");
  for (const auto* bad : {"", "1e3", "1 2", "0x10", "--1", "+-1"}) {
    EXPECT_THAT(refused({{"retention.ms", bad}}), HasSubstr("Not a number")) << bad;
  }
  EXPECT_THAT(refused({{"compression.gzip.level", "0"}}), HasSubstr("between 1 and 9"));
  EXPECT_THAT(refused({{"remote.storage.enable", "true"}}), HasSubstr("remote.storage.enable"));
  EXPECT_THAT(refused({{"message.format.version", "new"}}), HasSubstr("message.format.version"));
  EXPECT_THAT(refused({{"leader.replication.throttled.replicas", "1"}}), HasSubstr("partition"));
  EXPECT_THAT(refused({}, {{"log.retention.hours", "week"}}), HasSubstr("log.retention.hours"));
  EXPECT_THAT(refused({}, {{"message.max.bytes", "-5"}}), HasSubstr("message.max.bytes"));
  EXPECT_THAT(refused({}, {{"log.cleanup.policy", "keep"}}), HasSubstr("log.cleanup.policy"));
  EXPECT_THAT(refused({}, {{"producer.id.expiration.ms", "0"}}), HasSubstr("producer.id"));
}

TEST(TopicConfigTest, ALevelIsThatOfTheTopicsOwnCodec) {
  const auto level = [](const ConfigMap& defaults, const ConfigMap& topic) {
    return TopicConfig::load(defaults, topic).compression_level;
  };
  EXPECT_EQ(level({}, {{"compression.type", "zstd"}}), std::nullopt) << "the codec's own";
  EXPECT_EQ(level({}, {{"compression.type", "zstd"}, {"compression.zstd.level", "-7"}}), -7);
  EXPECT_EQ(level({{"compression.type", "gzip"}}, {{"compression.gzip.level", "1"}}), 1);
  EXPECT_EQ(level({{"compression.lz4.level", "12"}}, {{"compression.type", "lz4"}}), 12);
  EXPECT_EQ(level({{"compression.lz4.level", "12"}}, {{"compression.type", "gzip"}}), std::nullopt);
  EXPECT_EQ(level({}, {{"compression.gzip.level", "1"}}), std::nullopt) << "as the producer chose";
  EXPECT_EQ(level({}, {{"compression.type", "gzip"}, {"compression.gzip.level", "-1"}}),
            std::nullopt);
  EXPECT_EQ(level({}, {{"compression.type", "lz4"}, {"compression.lz4.level", "9"}}), std::nullopt)
      << "Kafka's fast one";
}

TEST(TopicConfigTest, WhatIsStoredAndCannotBeUsedIsAsIfNotSet) {
  const ConfigMap broker{{"log.retention.ms", "soon"}, {"log.retention.hours", "2"}};
  const ConfigMap topic{{"retention.ms", "x"}, {"cleanup.policy", "keep"}, {"no.such", "1"}};
  const auto config = TopicConfig::load(broker, topic);
  EXPECT_EQ(config.retention_ms, 2 * 3'600'000);
  EXPECT_TRUE(config.cleanup_delete);
  EXPECT_EQ(topic_config_problems(topic).size(), 3U);
  EXPECT_EQ(broker_config_problems(broker).size(), 1U);
  EXPECT_EQ(TopicConfig::load(broker, {{"retention.ms", "5"}}).retention_ms, 5);
}

TEST(TopicConfigTest, OldTimestampBoundCountsWhereItsSuccessorsAreNotSet) {
  const ConfigMap old{{"message.timestamp.difference.max.ms", "7"}};
  EXPECT_EQ(parsed({}, old).message_timestamp_after_max_ms, 7);
  EXPECT_EQ(parsed({}, old).message_timestamp_before_max_ms, 7);
  auto both = old;
  both["message.timestamp.after.max.ms"] = "9";
  EXPECT_EQ(parsed({}, both).message_timestamp_after_max_ms, 9);
  EXPECT_EQ(parsed({}, both).message_timestamp_before_max_ms, 7);
}

TEST(TopicConfigTest, AReleaseNamesTheRecordFormatThatItStores) {
  const std::pair<const char*, int> releases[] = {{"0.8.2", 0},  {"0.9.0", 0},  {"0.10.0-IV1", 1},
                                                  {"0.10.2", 1}, {"0.11.0", 2}, {"1.1-IV0", 2},
                                                  {"2.8", 2},    {"3.0-IV1", 2}};
  for (const auto& [release, format] : releases) {
    EXPECT_EQ(record_format_of(release), format) << release;
    EXPECT_EQ(parsed({}, {{"message.format.version", release}}).message_format, format);
  }
  for (const auto* bad : {"", "2", "2.x", "latest", "-1.0", "1.2.3.4.5", "."}) {
    EXPECT_EQ(record_format_of(bad), std::nullopt) << bad;
  }
}

TEST(TopicConfigTest, ValuesAreShownInOneForm) {
  const auto shown = [](const char* name, const char* value) {
    return normal_value(*find_topic_option(name), value);
  };
  EXPECT_EQ(shown("retention.ms", " +007 "), "7");
  EXPECT_EQ(shown("preallocate", "TRUE"), "true");
  EXPECT_EQ(shown("cleanup.policy", " compact , delete"), "compact,delete");
  EXPECT_EQ(shown("compression.type", " lz4"), "lz4");
  EXPECT_EQ(shown("retention.ms", "soon"), "soon");
}

TEST(TopicConfigTest, TheTablesFitTogether) {
  std::set<std::string> broker;
  for (const auto* option = broker_defaults(); option->name; ++option) {
    EXPECT_TRUE(broker.insert(option->name).second) << option->name << " is listed twice";
    EXPECT_NE(option->help, nullptr);
  }
  const auto name_of = [](const ConfigOption& one) { return std::string_view(one.option.name); };
  EXPECT_TRUE(std::ranges::is_sorted(topic_options(), {}, name_of));
  EXPECT_TRUE(std::ranges::is_sorted(broker_config_options(), {}, name_of));
  for (const auto& topic : topic_options()) {
    EXPECT_TRUE(broker.contains(topic.option.name));
    ASSERT_NE(topic.option.default_value, nullptr) << topic.option.name;
    EXPECT_TRUE(check_value(topic, topic.option.default_value)) << topic.option.name;
    for (const auto& synonym : topic.synonyms) {
      if (synonym.name) EXPECT_TRUE(find_broker_option(synonym.name)) << synonym.name;
    }
  }
  for (const auto& option : broker_config_options()) {
    const auto* fallback = option.option.default_value;
    if (fallback) EXPECT_TRUE(check_value(option, fallback)) << option.option.name;
    if (option.weaker) EXPECT_TRUE(find_broker_option(option.weaker)) << option.weaker;
    EXPECT_EQ(broker.contains(option.option.name), !option.has(config_fact));
  }
}

TEST(TopicConfigTest, LongTimesFitTheLogsClock) {
  const auto config = parsed({}, {{"segment.ms", "9223372036854775807"}});
  EXPECT_GT(config.log_options({}).segment_age, std::chrono::hours(24 * 365 * 200));
}

}  // namespace
}  // namespace millrace::kernel
