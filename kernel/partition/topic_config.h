// The settings of a topic, under Kafka's names and units, and the broker-wide settings of
// `[defaults]`. One table says name, type, default, bounds and help of each; parsing, checking,
// describing and the reference page are made from it.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <millrace/admin.h>
#include <millrace/options.h>
#include <millrace/result.h>
#include <millrace/storage.h>
#include <millrace/types.h>

namespace millrace::kernel {

/// Settings by name, values as text.
using ConfigMap = std::map<std::string, std::string>;

/// The keys allowed in `[defaults]`: broker settings, and every topic setting under its own name.
/// Ends with an entry whose name is null. Topic settings have no default here: where one is absent,
/// its broker-level synonyms count.  [any thread]
const MillraceOption* broker_defaults() noexcept;

/// A setting of one topic. What is not set for the topic comes from the broker: from the same name
/// in `[defaults]`, else from the first synonym that is set, else it has its default.
struct TopicOption {
  MillraceOption option;
  /// A broker-level name and how many of the topic's unit make one of its own.
  struct Synonym {
    const char* name = nullptr;
    std::int64_t factor = 1;
  };
  Synonym synonyms[3];  ///< strongest first; unused ones have no name
};
std::span<const TopicOption> topic_options() noexcept;

enum class TimestampType : std::uint8_t { create_time, log_append_time };

/// A topic's settings, checked. Field names are Kafka's, by rule; -1 is "unlimited" where Kafka
/// says so.
struct TopicConfig {
  static constexpr std::int64_t never_ms = std::numeric_limits<std::int64_t>::max();

  bool cleanup_compact = false;                   ///< cleanup.policy has "compact"
  bool cleanup_delete = true;                     ///< cleanup.policy has "delete"
  std::optional<CompressionId> compression_type;  ///< none: as the producer chose
  std::int64_t delete_retention_ms = 86'400'000;
  std::int64_t file_delete_delay_ms = 60'000;
  std::int64_t flush_messages = std::numeric_limits<std::int64_t>::max();
  std::int64_t flush_ms = never_ms;
  std::int64_t index_interval_bytes = 4096;
  std::int64_t max_compaction_lag_ms = never_ms;
  std::int64_t max_message_bytes = 1'048'588;
  TimestampType message_timestamp_type = TimestampType::create_time;
  std::int64_t message_timestamp_after_max_ms = 3'600'000;
  std::int64_t message_timestamp_before_max_ms = never_ms;
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

  /// `defaults` are what `[defaults]` sets, `overrides` what is set for the topic.
  /// Errc::invalid_argument names key, value and what is allowed.
  static Result<TopicConfig> parse(const ConfigMap& defaults, const ConfigMap& overrides);

  /// Every topic setting with its value and where that comes from, in the order of the names.
  static std::vector<ConfigEntry> describe(const ConfigMap& defaults, const ConfigMap& overrides);

  LogOptions log_options(const Uuid& topic_id) const;
};

}  // namespace millrace::kernel
