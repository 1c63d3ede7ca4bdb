// The settings of one topic as they are used: typed, with what is inherited from the broker filled
// in.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include <millrace/result.h>
#include <millrace/storage.h>
#include <millrace/types.h>

#include "kernel/partition/config_options.h"

namespace millrace::kernel {

enum class TimestampType : std::uint8_t { create_time, log_append_time };

/// A topic's settings, checked. Field names are Kafka's, by rule; -1 is "unlimited" where Kafka
/// says so.
struct TopicConfig {
  static constexpr std::int64_t never_ms = std::numeric_limits<std::int64_t>::max();

  bool cleanup_compact = false;                   ///< cleanup.policy has "compact"
  bool cleanup_delete = true;                     ///< cleanup.policy has "delete"
  std::optional<CompressionId> compression_type;  ///< none: as the producer chose
  /// Where one is set for that type: compression.gzip.level, of lz4, of zstd. Not set, it is the
  /// codec's own, which its plugin's options say.
  std::optional<int> compression_level;
  std::int64_t delete_retention_ms = 86'400'000;
  std::int64_t file_delete_delay_ms = 60'000;
  std::int64_t flush_messages = std::numeric_limits<std::int64_t>::max();
  std::int64_t flush_ms = never_ms;
  std::int64_t index_interval_bytes = 4096;
  std::int64_t max_compaction_lag_ms = never_ms;
  std::int64_t max_decompressed_message_bytes = std::numeric_limits<std::int32_t>::max() - 8;
  std::int64_t max_message_bytes = 1'048'588;
  TimestampType message_timestamp_type = TimestampType::create_time;
  std::int64_t message_timestamp_after_max_ms = 3'600'000;
  std::int64_t message_timestamp_before_max_ms = never_ms;
  std::int8_t message_format = 2;  ///< of what is stored: message.format.version
  double min_cleanable_dirty_ratio = 0.5;
  std::int64_t min_compaction_lag_ms = 0;
  std::int64_t min_insync_replicas = 1;
  bool preallocate = false;
  std::int64_t retention_bytes = -1;
  std::int64_t retention_ms = 604'800'000;
  std::int64_t segment_bytes = 1'073'741'824;
  std::int64_t segment_index_bytes = 10'485'760;
  std::int64_t segment_jitter_ms = 0;
  std::int64_t segment_ms = 604'800'000;
  bool unclean_leader_election_enable = false;
  /// Broker-wide: how long an idle idempotent producer is remembered.
  std::int64_t producer_id_expiration_ms = 86'400'000;

  /// `defaults` are the broker's settings, `overrides` what is set for the topic.
  /// Errc::invalid_argument names setting, value and what is allowed.
  static Result<TopicConfig> parse(const ConfigMap& defaults, const ConfigMap& overrides);

  /// As parse(), but takes what cannot be used for not set: whatever is stored, a topic opens.
  static TopicConfig load(const ConfigMap& defaults, const ConfigMap& overrides);

  LogOptions log_options(const Uuid& topic_id) const;

  friend bool operator==(const TopicConfig&, const TopicConfig&) = default;
};

/// What cannot be used of `overrides` and of `defaults`: unknown names, values that are refused.
std::vector<Error> topic_config_problems(const ConfigMap& overrides);
std::vector<Error> broker_config_problems(const ConfigMap& defaults);

/// What is wrong with settings that are each right.
Result<> check_together(const TopicConfig& config);

/// The value of a topic setting that counts, in its own unit.
std::string effective_value(const TopicOption& topic, const ConfigMap& defaults,
                            const ConfigMap& overrides);

}  // namespace millrace::kernel
