#include "kernel/partition/topic_config.h"

#include <algorithm>
#include <string_view>

namespace millrace::kernel {

namespace {

constexpr std::string_view producer_expiration = "producer.id.expiration.ms";

// A broker's value in the topic's unit; "-1" hours stay -1.
std::string scaled(std::int64_t number, std::int64_t factor) {
  if (number < 0) return "-1";
  std::int64_t product = 0;
  if (__builtin_mul_overflow(number, factor, &product)) product = TopicConfig::never_ms;
  return std::to_string(product);
}

// The value under `name`, if it is set and can be used.
std::optional<std::string> usable(const ConfigOption& option, std::string_view name,
                                  const ConfigMap& values) {
  const auto found = values.find(std::string(name));
  if (found == values.end() || !check_value(option, found->second)) return std::nullopt;
  return normal_value(option, found->second);
}

std::optional<std::string> set_value(const TopicOption& topic, const ConfigMap& defaults,
                                     const ConfigMap& overrides) {
  if (auto own = usable(topic, topic.option.name, overrides)) return own;
  if (auto same = usable(topic, topic.option.name, defaults)) return same;
  for (const auto& synonym : topic.synonyms) {
    if (!synonym.name) break;
    auto value = usable(*find_broker_option(synonym.name), synonym.name, defaults);
    if (value && synonym.factor != 1) value = scaled(*integer_of(*value), synonym.factor);
    if (value) return value;
  }
  return std::nullopt;
}

std::optional<CompressionId> codec_named(std::string_view name) {
  using enum CompressionId;
  for (const auto id : {gzip, snappy, lz4, zstd}) {
    if (name == name_of(id)) return id;
  }
  if (name == "uncompressed") return none;
  return std::nullopt;  // "producer": the choices have been checked
}

/// Typed access to the settings of one topic.
class Values {
 public:
  Values(const ConfigMap& defaults, const ConfigMap& overrides)
      : defaults_(defaults), overrides_(overrides) {}

  std::optional<std::string> set(std::string_view name) const {
    return set_value(*find_topic_option(name), defaults_, overrides_);
  }
  std::string text(std::string_view name) const {
    return effective_value(*find_topic_option(name), defaults_, overrides_);
  }
  std::int64_t integer(std::string_view name) const { return *integer_of(text(name)); }
  double number(std::string_view name) const { return *number_of(text(name)); }
  bool yes(std::string_view name) const { return text(name) == "true"; }
  bool lists(std::string_view name, std::string_view value) const {
    const auto all = text(name);
    return std::ranges::count(list_of(all), value) > 0;
  }

 private:
  const ConfigMap& defaults_;
  const ConfigMap& overrides_;
};

// Kafka's lz4 at level 9, its default, is the fast one; so it is what a codec does by itself.
std::optional<int> level_for(const Values& values, std::optional<CompressionId> type) {
  if (!type || *type == CompressionId::none || *type == CompressionId::snappy) return std::nullopt;
  const auto set = values.set("compression." + std::string(name_of(*type)) + ".level");
  if (!set) return std::nullopt;
  const auto level = static_cast<int>(*integer_of(*set));
  constexpr int gzip_own = -1;
  constexpr int lz4_own = 9;
  const int own = *type == CompressionId::lz4 ? lz4_own : gzip_own;
  if (*type != CompressionId::zstd && level == own) return std::nullopt;
  return level;
}

// One setting until Kafka 3, which counts where its two successors are not set.
void read_timestamp_bounds(const Values& values, TopicConfig& config) {
  constexpr std::string_view after = "message.timestamp.after.max.ms";
  constexpr std::string_view before = "message.timestamp.before.max.ms";
  config.message_timestamp_after_max_ms = values.integer(after);
  config.message_timestamp_before_max_ms = values.integer(before);
  const auto difference = values.set("message.timestamp.difference.max.ms");
  if (!difference) return;
  if (!values.set(after)) config.message_timestamp_after_max_ms = *integer_of(*difference);
  if (!values.set(before)) config.message_timestamp_before_max_ms = *integer_of(*difference);
}

}  // namespace

Result<> check_together(const TopicConfig& config) {
  if (config.min_compaction_lag_ms <= config.max_compaction_lag_ms) return {};
  return Error{Errc::invalid_argument, "conflict topic config setting min.compaction.lag.ms (" +
                                           std::to_string(config.min_compaction_lag_ms) +
                                           ") > max.compaction.lag.ms (" +
                                           std::to_string(config.max_compaction_lag_ms) + ")"};
}

std::string effective_value(const TopicOption& topic, const ConfigMap& defaults,
                            const ConfigMap& overrides) {
  return set_value(topic, defaults, overrides).value_or(topic.option.default_value);
}

std::vector<Error> topic_config_problems(const ConfigMap& overrides) {
  std::vector<Error> problems;
  for (const auto& [name, value] : overrides) {
    const auto* option = find_topic_option(name);
    if (!option) {
      problems.push_back({Errc::invalid_argument, "Unknown topic config name: " + name});
    } else if (auto checked = check_value(*option, value); !checked) {
      problems.push_back(std::move(checked).error());
    }
  }
  return problems;
}

std::vector<Error> broker_config_problems(const ConfigMap& defaults) {
  std::vector<Error> problems;
  for (const auto& [name, value] : defaults) {
    const ConfigOption* option = find_broker_option(name);
    if (!option) option = find_topic_option(name);
    if (!option) {
      problems.push_back({Errc::invalid_argument, "Unknown broker config name: " + name});
    } else if (auto checked = check_value(*option, value); !checked) {
      problems.push_back(std::move(checked).error());
    }
  }
  return problems;
}

Result<TopicConfig> TopicConfig::parse(const ConfigMap& defaults, const ConfigMap& overrides) {
  auto problems = topic_config_problems(overrides);
  std::ranges::move(broker_config_problems(defaults), std::back_inserter(problems));
  if (!problems.empty()) return std::move(problems.front());
  const auto config = load(defaults, overrides);
  MR_CHECK(check_together(config));
  return config;
}

TopicConfig TopicConfig::load(const ConfigMap& defaults, const ConfigMap& overrides) {
  const Values values(defaults, overrides);
  TopicConfig config;
  config.cleanup_compact = values.lists("cleanup.policy", "compact");
  config.cleanup_delete = values.lists("cleanup.policy", "delete");
  config.compression_type = codec_named(values.text("compression.type"));
  config.compression_level = level_for(values, config.compression_type);
  config.delete_retention_ms = values.integer("delete.retention.ms");
  config.file_delete_delay_ms = values.integer("file.delete.delay.ms");
  config.flush_messages = values.integer("flush.messages");
  config.flush_ms = values.integer("flush.ms");
  config.index_interval_bytes = values.integer("index.interval.bytes");
  config.max_compaction_lag_ms = values.integer("max.compaction.lag.ms");
  config.max_decompressed_message_bytes = values.integer("max.decompressed.message.bytes");
  config.max_message_bytes = values.integer("max.message.bytes");
  config.message_timestamp_type = values.text("message.timestamp.type") == "LogAppendTime"
                                      ? TimestampType::log_append_time
                                      : TimestampType::create_time;
  read_timestamp_bounds(values, config);
  config.message_format = *record_format_of(values.text("message.format.version"));
  config.min_cleanable_dirty_ratio = values.number("min.cleanable.dirty.ratio");
  config.min_compaction_lag_ms = values.integer("min.compaction.lag.ms");
  config.min_insync_replicas = values.integer("min.insync.replicas");
  config.preallocate = values.yes("preallocate");
  config.retention_bytes = values.integer("retention.bytes");
  config.retention_ms = values.integer("retention.ms");
  config.segment_bytes = values.integer("segment.bytes");
  config.segment_index_bytes = values.integer("segment.index.bytes");
  config.segment_jitter_ms = values.integer("segment.jitter.ms");
  config.segment_ms = values.integer("segment.ms");
  config.unclean_leader_election_enable = values.yes("unclean.leader.election.enable");

  const auto expiration =
      usable(*find_broker_option(producer_expiration), producer_expiration, defaults);
  if (expiration) config.producer_id_expiration_ms = *integer_of(*expiration);
  return config;
}

LogOptions TopicConfig::log_options(const Uuid& topic_id) const {
  // segment.ms may be as large as an int64 of milliseconds, which nanoseconds cannot say.
  static constexpr std::int64_t longest_ms = std::numeric_limits<std::int64_t>::max() / 1'000'000;
  const auto duration = [](std::int64_t ms) {
    return std::chrono::milliseconds(std::min(ms, longest_ms));
  };
  return {.segment_bytes = static_cast<std::uint64_t>(segment_bytes),
          .segment_age =
              duration(cleanup_compact ? std::min(segment_ms, max_compaction_lag_ms) : segment_ms),
          .index_interval_bytes = static_cast<std::uint64_t>(index_interval_bytes),
          .segment_index_bytes = static_cast<std::uint64_t>(segment_index_bytes),
          .file_delete_delay = duration(file_delete_delay_ms),
          .preallocate = preallocate,
          .topic_id = topic_id};
}

}  // namespace millrace::kernel
