// The table of a topic's settings: Kafka 4's, and the old names that stored settings still have.
// Sorted by name.
#include <algorithm>
#include <string_view>

#include "kernel/partition/config_rows.h"

namespace millrace::kernel {

namespace {

using namespace config_rows;

constexpr TopicOption topic_table[] = {
    {text("cleanup.policy", "delete", cleanup_choices,
          "What happens to old records: \"delete\" by age and size, \"compact\" to the newest of "
          "each key, or both, separated by a comma.",
          config_list),
     {{"log.cleanup.policy"}}},
    {number("compression.gzip.level", nullptr, "-1", -1, 9,
            "Level used where the broker compresses with gzip; not set, or -1: the codec's own."),
     {{"compression.gzip.level"}}},
    {number("compression.lz4.level", nullptr, "9", 1, 17,
            "Level used where the broker compresses with lz4; not set, or 9: the codec's own, as "
            "Kafka's 9 is its fast one."),
     {{"compression.lz4.level"}}},
    {text("compression.type", "producer", codec_choices,
          "How batches are stored; \"producer\" keeps what the producer chose."),
     {{"compression.type"}}},
    {number("compression.zstd.level", nullptr, "3", -131072, 22,
            "Level used where the broker compresses with zstd; not set: the codec's own."),
     {{"compression.zstd.level"}}},
    {number("delete.retention.ms", "ms", "86400000", 0, int64_max,
            "How long compaction keeps a tombstone for readers that are behind."),
     {{"log.cleaner.delete.retention.ms"}}},
    {flag("errors.deadletterqueue.group.enable", "false",
          "Accepted for tools; share groups have no dead letter queue."),
     {}},
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
          "Replicas throttled on the follower's side: \"partition:broker,...\" or \"*\".",
          config_list),
     {}},
    {number("index.interval.bytes", "bytes", "4096", 0, int32_max,
            "Bytes of log between two entries of the offset index."),
     {{"log.index.interval.bytes"}}},
    {text("leader.replication.throttled.replicas", "", nullptr,
          "Replicas throttled on the leader's side: \"partition:broker,...\" or \"*\".",
          config_list),
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
    {number("max.decompressed.message.bytes", "bytes", "2147483639", 1, int32_max,
            "The most that the records of a batch may take when they are decompressed. Beyond "
            "134217728, and 33554432 in the old formats, the broker's own limit counts."),
     {{"max.decompressed.message.bytes"}}},
    {number("max.message.bytes", "bytes", "1048588", 0, int32_max,
            "The largest batch accepted, in bytes as stored."),
     {{"message.max.bytes"}}},
    {flag("message.downconversion.enable", "true",
          "Accepted for old tools; what old clients can read is always converted.",
          config_only_when_set),
     {{"log.message.downconversion.enable"}}},
    {text("message.format.version", "3.0-IV1", nullptr,
          "The release of Kafka whose record format is stored: V0 below 0.10, V1 below 0.11.",
          config_only_when_set),
     {{"log.message.format.version"}}},
    {number("message.timestamp.after.max.ms", "ms", "3600000", 0, int64_max,
            "How far a record's timestamp may be ahead of the broker's clock."),
     {{"log.message.timestamp.after.max.ms"}}},
    {number("message.timestamp.before.max.ms", "ms", forever, 0, int64_max,
            "How far a record's timestamp may be behind the broker's clock."),
     {{"log.message.timestamp.before.max.ms"}}},
    {number("message.timestamp.difference.max.ms", "ms", forever, 0, int64_max,
            "What message.timestamp.after.max.ms and .before.max.ms are where neither is set; its "
            "name "
            "until Kafka 3.",
            config_only_when_set),
     {{"log.message.timestamp.difference.max.ms"}}},
    {text("message.timestamp.type", "CreateTime", timestamp_choices,
          "Whose clock gives records their timestamp: the producer's or the broker's."),
     {{"log.message.timestamp.type"}}},
    {ratio("min.cleanable.dirty.ratio", "0.5",
           "Share of uncompacted bytes from which a log is compacted."),
     {{"log.cleaner.min.cleanable.ratio"}}},
    {number("min.compaction.lag.ms", "ms", "0", 0, int64_max,
            "The shortest that a record stays uncompacted."),
     {{"log.cleaner.min.compaction.lag.ms"}}},
    {number("min.insync.replicas", "replicas", "1", 1, int32_max,
            "In-sync replicas without which acks=all is refused."),
     {{"min.insync.replicas"}}},
    {flag("preallocate", "false", "Whether a new segment's file is allocated at once."),
     {{"log.preallocate"}}},
    {number("remote.copy.lag.bytes", "bytes", "-1", -1, int64_max,
            "Accepted for tools; tiered storage is not available."),
     {{"log.remote.copy.lag.bytes"}}},
    {number("remote.copy.lag.ms", "ms", "0", -1, int64_max,
            "Accepted for tools; tiered storage is not available."),
     {{"log.remote.copy.lag.ms"}}},
    {flag("remote.log.copy.disable", "false",
          "Accepted for tools; tiered storage is not available."),
     {}},
    {flag("remote.log.delete.on.disable", "false",
          "Accepted for tools; tiered storage is not available."),
     {}},
    {flag("remote.storage.enable", "false", "Tiered storage is not available."), {}},
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

}  // namespace

std::span<const TopicOption> topic_options() noexcept { return topic_table; }

const TopicOption* find_topic_option(std::string_view name) noexcept {
  const auto* found = std::ranges::find(topic_table, name, [](const TopicOption& topic) {
    return std::string_view(topic.option.name);
  });
  return found == std::end(topic_table) ? nullptr : found;
}

}  // namespace millrace::kernel
