#include "kernel/partition/topic_config.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string_view>

namespace millrace::kernel {

namespace {

// Where a setting's value comes from, as KIP-226 numbers it.
enum class Source : std::int8_t { topic = 1, broker = 4, fallback = 5 };

struct Setting {
  std::string value;
  Source source = Source::fallback;
  std::string key;  // as the one who set it wrote it
};

Error refused(std::string_view key, std::string_view value, std::string_view allowed) {
  std::string detail = "Invalid value ";
  detail.append(value).append(" for configuration ").append(key).append(": ").append(allowed);
  return {Errc::invalid_argument, std::move(detail)};
}

std::string bounds_of(const MillraceOption& option) {
  return "a number from " + std::to_string(option.minimum) + " to " +
         std::to_string(option.maximum) + " is expected";
}

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

std::optional<std::int64_t> parse_integer(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<double> parse_number(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || !std::isfinite(value)) {
    return std::nullopt;
  }
  return value;
}

// Checks `value` against `option`, as which it was set under `key`.
Result<> check(const MillraceOption& option, std::string_view key, std::string_view value) {
  switch (option.type) {
    case MILLRACE_OPTION_INTEGER: {
      const auto number = parse_integer(value);
      if (!number || *number < option.minimum || *number > option.maximum) {
        return refused(key, value, bounds_of(option));
      }
      return {};
    }
    case MILLRACE_OPTION_NUMBER: {
      const auto number = parse_number(value);
      if (!number || *number < static_cast<double>(option.minimum) ||
          *number > static_cast<double>(option.maximum)) {
        return refused(key, value, bounds_of(option));
      }
      return {};
    }
    case MILLRACE_OPTION_BOOLEAN:
      if (value != "true" && value != "false") {
        return refused(key, value, "\"true\" or \"false\" is expected");
      }
      return {};
    default: break;
  }
  if (!option.choices) return {};
  for (std::string_view left = option.choices; !left.empty();) {
    const auto bar = left.find('|');
    if (left.substr(0, bar) == value) return {};
    left = bar == std::string_view::npos ? std::string_view() : left.substr(bar + 1);
  }
  return refused(key, value, std::string("one of ") + option.choices + " is expected");
}

// A broker-level value in the topic's unit; "-1" hours stay -1.
Result<std::string> scaled(const std::string& key, const std::string& value, std::int64_t factor) {
  if (factor == 1) return std::string(trimmed(value));
  const auto number = parse_integer(trimmed(value));
  if (!number) return refused(key, value, "a number is expected");
  if (*number < 0) return std::string("-1");
  std::int64_t product = 0;
  if (__builtin_mul_overflow(*number, factor, &product)) {
    return std::to_string(TopicConfig::never_ms);
  }
  return std::to_string(product);
}

Result<Setting> setting_of(const TopicOption& topic, const ConfigMap& defaults,
                           const ConfigMap& overrides) {
  const std::string name = topic.option.name;
  if (const auto own = overrides.find(name); own != overrides.end()) {
    return Setting{std::string(trimmed(own->second)), Source::topic, name};
  }
  if (const auto same = defaults.find(name); same != defaults.end()) {
    return Setting{std::string(trimmed(same->second)), Source::broker, name};
  }
  for (const auto& synonym : topic.synonyms) {
    if (!synonym.name) break;
    const auto found = defaults.find(synonym.name);
    if (found == defaults.end()) continue;
    MR_TRY(auto value, scaled(found->first, found->second, synonym.factor));
    return Setting{std::move(value), Source::broker, found->first};
  }
  return Setting{topic.option.default_value, Source::fallback, name};
}

// Values of all topic settings by name, each checked against its option.
Result<std::map<std::string_view, Setting>> settings(const ConfigMap& defaults,
                                                     const ConfigMap& overrides) {
  for (const auto& [name, value] : overrides) {
    const auto known = std::ranges::any_of(
        topic_options(), [&name](const TopicOption& topic) { return name == topic.option.name; });
    if (!known) return Error{Errc::invalid_argument, "Unknown topic config name: " + name};
  }
  std::map<std::string_view, Setting> all;
  for (const auto& topic : topic_options()) {
    MR_TRY(auto setting, setting_of(topic, defaults, overrides));
    MR_CHECK(check(topic.option, setting.key, setting.value));
    all.emplace(topic.option.name, std::move(setting));
  }
  return all;
}

Result<> parse_cleanup(const Setting& setting, TopicConfig& config) {
  config.cleanup_compact = false;
  config.cleanup_delete = false;
  std::string_view left = setting.value;
  while (true) {
    const auto comma = left.find(',');
    const auto policy = trimmed(left.substr(0, comma));
    if (policy == "compact") {
      config.cleanup_compact = true;
    } else if (policy == "delete") {
      config.cleanup_delete = true;
    } else {
      return refused(setting.key, setting.value,
                     "\"delete\", \"compact\" or \"compact,delete\" is expected");
    }
    if (comma == std::string_view::npos) return {};
    left.remove_prefix(comma + 1);
  }
}

std::optional<CompressionId> codec_named(std::string_view name) {
  using enum CompressionId;
  for (const auto id : {gzip, snappy, lz4, zstd}) {
    if (name == name_of(id)) return id;
  }
  if (name == "uncompressed") return none;
  return std::nullopt;  // "producer": the choices have been checked
}

}  // namespace

Result<TopicConfig> TopicConfig::parse(const ConfigMap& defaults, const ConfigMap& overrides) {
  MR_TRY(const auto all, settings(defaults, overrides));
  const auto integer = [&all](std::string_view name) { return *parse_integer(all.at(name).value); };
  const auto yes = [&all](std::string_view name) { return all.at(name).value == "true"; };

  TopicConfig config;
  MR_CHECK(parse_cleanup(all.at("cleanup.policy"), config));
  config.compression_type = codec_named(all.at("compression.type").value);
  config.delete_retention_ms = integer("delete.retention.ms");
  config.file_delete_delay_ms = integer("file.delete.delay.ms");
  config.flush_messages = integer("flush.messages");
  config.flush_ms = integer("flush.ms");
  config.index_interval_bytes = integer("index.interval.bytes");
  config.max_compaction_lag_ms = integer("max.compaction.lag.ms");
  config.max_message_bytes = integer("max.message.bytes");
  config.message_timestamp_type = all.at("message.timestamp.type").value == "LogAppendTime"
                                      ? TimestampType::log_append_time
                                      : TimestampType::create_time;
  config.message_timestamp_after_max_ms = integer("message.timestamp.after.max.ms");
  config.message_timestamp_before_max_ms = integer("message.timestamp.before.max.ms");
  config.min_cleanable_dirty_ratio = *parse_number(all.at("min.cleanable.dirty.ratio").value);
  config.min_compaction_lag_ms = integer("min.compaction.lag.ms");
  config.min_insync_replicas = integer("min.insync.replicas");
  config.preallocate = yes("preallocate");
  config.retention_bytes = integer("retention.bytes");
  config.retention_ms = integer("retention.ms");
  config.segment_bytes = integer("segment.bytes");
  config.segment_index_bytes = integer("segment.index.bytes");
  config.segment_jitter_ms = integer("segment.jitter.ms");
  config.segment_ms = integer("segment.ms");
  config.unclean_leader_election_enable = yes("unclean.leader.election.enable");

  constexpr std::string_view expiration = "producer.id.expiration.ms";
  if (const auto found = defaults.find(std::string(expiration)); found != defaults.end()) {
    const auto value = parse_integer(found->second);
    if (!value || *value < 1) return refused(expiration, found->second, "at least 1 is expected");
    config.producer_id_expiration_ms = *value;
  }
  return config;
}

std::vector<ConfigEntry> TopicConfig::describe(const ConfigMap& defaults,
                                              const ConfigMap& overrides) {
  std::vector<ConfigEntry> described;
  for (const auto& topic : topic_options()) {
    auto setting = setting_of(topic, defaults, overrides);
    if (!setting) continue;  // a broker value that start-up refuses
    described.push_back({.name = topic.option.name,
                         .value = std::move(setting->value),
                         .source = static_cast<ConfigSource>(setting->source)});
  }
  return described;
}

LogOptions TopicConfig::log_options(const Uuid& topic_id) const {
  // segment.ms may be as large as an int64 of milliseconds, which nanoseconds cannot say.
  constexpr std::int64_t longest_ms = std::numeric_limits<std::int64_t>::max() / 1'000'000;
  return {.segment_bytes = static_cast<std::uint64_t>(segment_bytes),
          .segment_age = std::chrono::milliseconds(std::min(segment_ms, longest_ms)),
          .index_interval_bytes = static_cast<std::uint64_t>(index_interval_bytes),
          .segment_index_bytes = static_cast<std::uint64_t>(segment_index_bytes),
          .topic_id = topic_id};
}

}  // namespace millrace::kernel
