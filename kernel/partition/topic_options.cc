// The tables of settings. Topic settings are Kafka 4's; broker settings are those that do something
// here. Sorted by name.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <string_view>
#include <vector>

#include "kernel/partition/topic_config.h"

namespace millrace::kernel {

namespace {

constexpr auto int32_max = std::numeric_limits<std::int32_t>::max();
constexpr auto int64_max = std::numeric_limits<std::int64_t>::max();
constexpr const char* forever = "9223372036854775807";

constexpr std::int64_t ms_per_second = 1000;
constexpr std::int64_t ms_per_minute = 60 * ms_per_second;
constexpr std::int64_t ms_per_hour = 60 * ms_per_minute;

constexpr MillraceOption number(const char* name, const char* unit, const char* fallback,
                                std::int64_t minimum, std::int64_t maximum, const char* help,
                                std::uint32_t flags = 0) {
  return {name, MILLRACE_OPTION_INTEGER, unit, fallback, minimum, maximum, nullptr, help, flags};
}
constexpr MillraceOption flag(const char* name, const char* fallback, const char* help) {
  return {
      name, MILLRACE_OPTION_BOOLEAN, nullptr, fallback, unbounded_min, unbounded_max, nullptr, help,
      0};
}
constexpr MillraceOption text(const char* name, const char* fallback, const char* choices,
                              const char* help) {
  return {
      name, MILLRACE_OPTION_TEXT, nullptr, fallback, unbounded_min, unbounded_max, choices, help,
      0};
}

constexpr const char* codec_choices = "uncompressed|zstd|lz4|snappy|gzip|producer";
constexpr const char* timestamp_choices = "CreateTime|LogAppendTime";

constexpr TopicOption topic_table[] = {
    {text("cleanup.policy", "delete", nullptr,
          "What happens to old records: \"delete\" by age and size, \"compact\" to the newest of "
          "each key, or both, separated by a comma."),
     {{"log.cleanup.policy"}}},
    {number("compression.gzip.level", nullptr, "-1", -1, 9,
            "Level used where the broker compresses with gzip; -1: the codec's own."),
     {{"compression.gzip.level"}}},
    {number("compression.lz4.level", nullptr, "9", 1, 17,
            "Level used where the broker compresses with lz4."),
     {{"compression.lz4.level"}}},
    {text("compression.type", "producer", codec_choices,
          "How batches are stored; \"producer\" keeps what the producer chose."),
     {{"compression.type"}}},
    {number("compression.zstd.level", nullptr, "3", -131072, 22,
            "Level used where the broker compresses with zstd."),
     {{"compression.zstd.level"}}},
    {number("delete.retention.ms", "ms", "86400000", 0, int64_max,
            "How long compaction keeps a tombstone for readers that are behind."),
     {{"log.cleaner.delete.retention.ms"}}},
    {number("file.delete.delay.ms", "ms", "60000", 0, int64_max,
            "How long a removed segment's file stays on disk."),
     {{"log.segment.delete.delay.ms"}}},
    {number("flush.messages", "records", forever, 1, int64_max,
            "Records after which the log is forced to stable storage."),
     {{"log.flush.interval.messages"}}},
    {number("flush.ms", "ms", forever, 0, int64_max,
            "Time after which the log is forced to stable storage."),
     {{"log.flush.interval.ms"}, {"log.flush.scheduler.interval.ms"}}},
    {text("follower.replication.throttled.replicas", "", nullptr,
          "Replicas throttled on the follower's side: \"partition:broker,...\" or \"*\"."),
     {}},
    {number("index.interval.bytes", "bytes", "4096", 0, int32_max,
            "Bytes of log between two entries of the offset index."),
     {{"log.index.interval.bytes"}}},
    {text("leader.replication.throttled.replicas", "", nullptr,
          "Replicas throttled on the leader's side: \"partition:broker,...\" or \"*\"."),
     {}},
    {number("local.retention.bytes", "bytes", "-2", -2, int64_max,
            "Bytes kept locally of a tiered partition; -2: as retention.bytes."),
     {{"log.local.retention.bytes"}}},
    {number("local.retention.ms", "ms", "-2", -2, int64_max,
            "Time kept locally of a tiered partition; -2: as retention.ms."),
     {{"log.local.retention.ms"}}},
    {number("max.compaction.lag.ms", "ms", forever, 1, int64_max,
            "The longest that a record stays uncompacted."),
     {{"log.cleaner.max.compaction.lag.ms"}}},
    {number("max.message.bytes", "bytes", "1048588", 0, int32_max,
            "The largest batch accepted, in bytes as stored."),
     {{"message.max.bytes"}}},
    {flag("message.downconversion.enable", "true",
          "Accepted for old tools; what old clients can read is always converted."),
     {{"log.message.downconversion.enable"}}},
    {text("message.format.version", "3.0-IV1", nullptr,
          "Accepted for old tools; batches are always stored in format V2."),
     {{"log.message.format.version"}}},
    {number("message.timestamp.after.max.ms", "ms", "3600000", 0, int64_max,
            "How far a record's timestamp may be ahead of the broker's clock."),
     {{"log.message.timestamp.after.max.ms"}}},
    {number("message.timestamp.before.max.ms", "ms", forever, 0, int64_max,
            "How far a record's timestamp may be behind the broker's clock."),
     {{"log.message.timestamp.before.max.ms"}}},
    {text("message.timestamp.type", "CreateTime", timestamp_choices,
          "Whose clock gives records their timestamp: the producer's or the broker's."),
     {{"log.message.timestamp.type"}}},
    {{"min.cleanable.dirty.ratio", MILLRACE_OPTION_NUMBER, nullptr, "0.5", 0, 1, nullptr,
      "Share of uncompacted bytes from which a log is compacted.", 0},
     {{"log.cleaner.min.cleanable.ratio"}}},
    {number("min.compaction.lag.ms", "ms", "0", 0, int64_max,
            "The shortest that a record stays uncompacted."),
     {{"log.cleaner.min.compaction.lag.ms"}}},
    {number("min.insync.replicas", "replicas", "1", 1, int32_max,
            "In-sync replicas without which acks=all is refused."),
     {{"min.insync.replicas"}}},
    {flag("preallocate", "false", "Whether a new segment's file is allocated at once."),
     {{"log.preallocate"}}},
    {flag("remote.log.copy.disable", "false",
          "Accepted for tools; tiered storage is not available."),
     {}},
    {flag("remote.log.delete.on.disable", "false",
          "Accepted for tools; tiered storage is not available."),
     {}},
    {text("remote.storage.enable", "false", "false", "Tiered storage is not available."), {}},
    {number("retention.bytes", "bytes", "-1", -1, int64_max,
            "Bytes of a partition beyond which its oldest segments go; -1: no limit."),
     {{"log.retention.bytes"}}},
    {number("retention.ms", "ms", "604800000", -1, int64_max,
            "Age from which segments go; -1: no limit."),
     {{"log.retention.ms"},
      {"log.retention.minutes", ms_per_minute},
      {"log.retention.hours", ms_per_hour}}},
    {number("segment.bytes", "bytes", "1073741824", 14, int32_max,
            "Size at which a new segment is begun."),
     {{"log.segment.bytes"}}},
    {number("segment.index.bytes", "bytes", "10485760", 4, int32_max,
            "The largest size of a segment's index."),
     {{"log.index.size.max.bytes"}}},
    {number(
         "segment.jitter.ms", "ms", "0", 0, int64_max,
         "Up to so much less than segment.ms, by chance, so that segments do not roll together."),
     {{"log.roll.jitter.ms"}, {"log.roll.jitter.hours", ms_per_hour}}},
    {number("segment.ms", "ms", "604800000", 1, int64_max, "Age at which a new segment is begun."),
     {{"log.roll.ms"}, {"log.roll.hours", ms_per_hour}}},
    {flag("unclean.leader.election.enable", "false",
          "Whether a replica that is not in sync may lead when no other can, losing records."),
     {{"unclean.leader.election.enable"}}},
};

constexpr MillraceOption broker_table[] = {
    flag("auto.create.topics.enable", "true",
         "Whether a topic that a client names and nobody has is created."),
    number("default.replication.factor", "replicas", "1", 1, 32767,
           "Replicas of a topic that does not say how many."),
    flag("delete.topic.enable", "true", "Whether topics may be deleted."),
    number("fetch.max.bytes", "bytes", "57671680", 1024, int32_max,
           "The most that one fetch answers, whatever its client asks for."),
    text("log.cleanup.policy", "delete", nullptr, "Default of cleanup.policy."),
    number("log.cleaner.delete.retention.ms", "ms", "86400000", 0, int64_max,
           "Default of delete.retention.ms."),
    number("log.cleaner.max.compaction.lag.ms", "ms", forever, 1, int64_max,
           "Default of max.compaction.lag.ms."),
    {"log.cleaner.min.cleanable.ratio", MILLRACE_OPTION_NUMBER, nullptr, "0.5", 0, 1, nullptr,
     "Default of min.cleanable.dirty.ratio.", 0},
    number("log.cleaner.min.compaction.lag.ms", "ms", "0", 0, int64_max,
           "Default of min.compaction.lag.ms."),
    number("log.flush.interval.messages", "records", forever, 1, int64_max,
           "Default of flush.messages."),
    number("log.flush.interval.ms", "ms", nullptr, 0, int64_max, "Default of flush.ms."),
    number("log.flush.scheduler.interval.ms", "ms", forever, 0, int64_max,
           "Default of flush.ms where log.flush.interval.ms is not set."),
    number("log.index.interval.bytes", "bytes", "4096", 0, int32_max,
           "Default of index.interval.bytes."),
    number("log.index.size.max.bytes", "bytes", "10485760", 4, int32_max,
           "Default of segment.index.bytes."),
    number("log.local.retention.bytes", "bytes", "-2", -2, int64_max,
           "Default of local.retention.bytes."),
    number("log.local.retention.ms", "ms", "-2", -2, int64_max, "Default of local.retention.ms."),
    flag("log.message.downconversion.enable", "true",
         "Accepted for old configurations; has no effect."),
    text("log.message.format.version", "3.0-IV1", nullptr,
         "Accepted for old configurations; has no effect."),
    number("log.message.timestamp.after.max.ms", "ms", "3600000", 0, int64_max,
           "Default of message.timestamp.after.max.ms."),
    number("log.message.timestamp.before.max.ms", "ms", forever, 0, int64_max,
           "Default of message.timestamp.before.max.ms."),
    text("log.message.timestamp.type", "CreateTime", timestamp_choices,
         "Default of message.timestamp.type."),
    flag("log.preallocate", "false", "Default of preallocate."),
    number("log.retention.bytes", "bytes", "-1", -1, int64_max, "Default of retention.bytes."),
    number("log.retention.check.interval.ms", "ms", "300000", 1, int64_max,
           "How often the broker looks for segments to remove."),
    number("log.retention.hours", "hours", "168", -1, int32_max,
           "Default of retention.ms where neither log.retention.ms nor .minutes is set."),
    number("log.retention.minutes", "minutes", nullptr, -1, int32_max,
           "Default of retention.ms where log.retention.ms is not set."),
    number("log.retention.ms", "ms", nullptr, -1, int64_max, "Default of retention.ms."),
    number("log.roll.hours", "hours", "168", 1, int32_max,
           "Default of segment.ms where log.roll.ms is not set."),
    number("log.roll.jitter.hours", "hours", "0", 0, int32_max,
           "Default of segment.jitter.ms where log.roll.jitter.ms is not set."),
    number("log.roll.jitter.ms", "ms", nullptr, 0, int64_max, "Default of segment.jitter.ms."),
    number("log.roll.ms", "ms", nullptr, 1, int64_max, "Default of segment.ms."),
    number("log.segment.bytes", "bytes", "1073741824", 14, int32_max, "Default of segment.bytes."),
    number("log.segment.delete.delay.ms", "ms", "60000", 0, int64_max,
           "Default of file.delete.delay.ms."),
    number("message.max.bytes", "bytes", "1048588", 0, int32_max, "Default of max.message.bytes."),
    number("num.partitions", "partitions", "1", 1, int32_max,
           "Partitions of a topic that does not say how many."),
    number("producer.id.expiration.ms", "ms", "86400000", 1, int32_max,
           "How long an idle idempotent producer is remembered."),
};

std::vector<MillraceOption> all_defaults() {
  std::vector<MillraceOption> all(std::begin(broker_table), std::end(broker_table));
  for (const auto& topic : topic_table) {
    all.push_back(topic.option);
    // Absent, its synonyms decide; those that share its name keep the default.
    const auto* same = topic.synonyms[0].name;
    if (!same || std::string_view(same) != topic.option.name) all.back().default_value = nullptr;
  }
  std::ranges::sort(all, {}, [](const MillraceOption& o) { return std::string_view(o.name); });
  all.push_back({});
  return all;
}

}  // namespace

const MillraceOption* broker_defaults() noexcept {
  static const std::vector<MillraceOption> all = all_defaults();
  return all.data();
}

std::span<const TopicOption> topic_options() noexcept { return topic_table; }

}  // namespace millrace::kernel
