// The table of a broker's settings: those of Kafka 4 that do something here, or that tools look for
// and have a true answer. Sorted by name.
#include <algorithm>
#include <string_view>

#include "kernel/partition/config_rows.h"

namespace millrace::kernel {

namespace {

using namespace config_rows;

constexpr BrokerOption broker_table[] = {
    {text("advertised.listeners", nullptr, nullptr,
          "Where clients find this broker; set as transport.NAME.advertise.",
          config_list | config_fact)},
    {flag("auto.create.topics.enable", "true",
          "Whether a topic that a client names and nobody has is created.", config_reread)},
    {flag("auto.leader.rebalance.enable", "true",
          "Whether leaders move back to the first of their replicas by themselves.",
          config_reread)},
    {number("broker.id", nullptr, "-1", -1, int32_max, "This broker's number; set as broker.id.",
            config_fact)},
    {text("broker.rack", nullptr, nullptr, "Where this broker stands; set as broker.rack.",
          config_fact)},
    {flag("cluster.balance.enable", "true",
          "Whether replicas and leaders move by themselves: a fair share to a broker that joins, "
          "away from those that are drained, and from those that are gone for too long. false: no "
          "further move begins. Set it for all brokers.",
          config_dynamic | config_of_all)},
    {number("cluster.balance.moves.max", "partitions", "10", 1, int32_max,
            "Partitions whose replicas move by themselves at a time. Set it for all brokers.",
            config_dynamic | config_of_all)},
    {number(
        "cluster.balance.rate.max", "bytes/s", "104857600", 1, int64_max,
        "Bytes per second that replicas which move to or from this broker take at most; they "
        "take less while requests wait. Tools that set a rate of their own are not bound by it.",
        config_dynamic | config_only_when_set)},
    {number("cluster.balance.replace.after.ms", "ms", "900000", -1, int64_max,
            "The replicas of a broker that is gone for so long are made anew on others; -1: never. "
            "Set it for all brokers.",
            config_dynamic | config_of_all)},
    {text("cluster.drain.brokers", "", nullptr,
          "Numbers of brokers that are emptied: their replicas move to others, they lead what "
          "nobody else can and get no new replicas. Set it for all brokers.",
          config_list | config_dynamic | config_of_all)},
    {number("compression.gzip.level", nullptr, "-1", -1, 9, "Default of the topics' setting.",
            config_dynamic)},
    {number("compression.lz4.level", nullptr, "9", 1, 17, "Default of the topics' setting.",
            config_dynamic)},
    {text("compression.type", "producer", codec_choices, "Default of the topics' setting.",
          config_dynamic)},
    {number("compression.zstd.level", nullptr, "3", -131072, 22, "Default of the topics' setting.",
            config_dynamic)},
    {flag("controlled.shutdown.enable", "true",
          "Whether a broker that stops lets others lead first.", config_reread)},
    {number("controlled.shutdown.max.retries", "tries", "3", 1, int32_max,
            "How often a broker that stops asks the controller to let others lead.",
            config_only_when_set | config_reread)},
    {number("controlled.shutdown.retry.backoff.ms", "ms", "500", 0, int32_max,
            "What lies between two of these tries, and so, with their number, how long a broker "
            "stays for it at most: up to 30 s. Kafka's default is 5000.",
            config_only_when_set | config_reread)},
    {number("default.replication.factor", "replicas", "1", 1, int32_max,
            "Replicas of a topic that does not say how many.", config_reread)},
    {flag("delete.topic.enable", "true", "Whether topics may be deleted.", config_reread)},
    {number("fetch.max.bytes", "bytes", "57671680", 1024, int32_max,
            "The most that one fetch answers, whatever its client asks for.", config_reread)},
    {number("follower.replication.throttled.rate", "bytes/s", forever, 0, int64_max,
            "Bytes per second that throttled replicas fetch; set by tools that move replicas.",
            config_dynamic | config_only_when_set)},
    {number("group.consumer.assignment.interval.ms", "ms", "1000", 0, int32_max,
            "A group of the consumer protocol is assigned anew at most this often.",
            config_dynamic)},
    {text("group.consumer.assignors", "uniform,range", "uniform|range",
          "Assignors that groups of the consumer protocol may use; the first is the default.",
          config_list | config_reread)},
    {number("group.consumer.heartbeat.interval.ms", "ms", "5000", 1, int32_max,
            "How often members of the consumer protocol are told to send heartbeats.",
            config_reread)},
    {number("group.consumer.max.heartbeat.interval.ms", "ms", "15000", 1, int32_max,
            "The largest heartbeat interval of the consumer protocol.", config_reread)},
    {number("group.consumer.max.session.timeout.ms", "ms", "60000", 1, int32_max,
            "The largest session time-out of the consumer protocol.", config_reread)},
    {number("group.consumer.max.size", "members", "2147483647", 1, int32_max,
            "Members that a group of the consumer protocol may have.", config_reread)},
    {text("group.consumer.migration.policy", "bidirectional",
          "disabled|downgrade|upgrade|bidirectional",
          "In which direction a group with members may change between the classic and the consumer "
          "protocol.",
          config_reread)},
    {number("group.consumer.min.heartbeat.interval.ms", "ms", "5000", 1, int32_max,
            "The smallest heartbeat interval of the consumer protocol.", config_reread)},
    {number("group.consumer.min.session.timeout.ms", "ms", "45000", 1, int32_max,
            "The smallest session time-out of the consumer protocol.", config_reread)},
    {number("group.consumer.regex.refresh.interval.ms", "ms", "600000", 10000, int32_max,
            "Subscriptions by regular expression are matched against new topics at least this "
            "often.",
            config_reread)},
    {number("group.consumer.session.timeout.ms", "ms", "45000", 1, int32_max,
            "A member of the consumer protocol that is not heard of for this long is gone.",
            config_reread)},
    {text("group.coordinator.rebalance.protocols", "classic,consumer", "classic|consumer",
          "The group protocols that are spoken.", config_list)},
    {number("group.initial.rebalance.delay.ms", "ms", "3000", 0, int32_max,
            "How long a new group waits for more members before its first rebalance.",
            config_reread)},
    {number("group.max.session.timeout.ms", "ms", "1800000", 0, int32_max,
            "The largest session time-out that a member of a classic group may ask for.",
            config_reread)},
    {number("group.max.size", "members", "2147483647", 1, int32_max,
            "Members that a classic group may have.", config_reread)},
    {number("group.min.session.timeout.ms", "ms", "6000", 0, int32_max,
            "The smallest session time-out that a member of a classic group may ask for.",
            config_reread)},
    {number("leader.imbalance.check.interval.seconds", "s", "300", 1, int32_max,
            "How often the controller looks for leaders that could move back.", config_reread)},
    {number("leader.imbalance.per.broker.percentage", "%", "10", 0, 100,
            "Leaders move back to a broker of which so much of what it should lead is led by "
            "others, or more.",
            config_only_when_set | config_reread)},
    {number("leader.replication.throttled.rate", "bytes/s", forever, 0, int64_max,
            "Bytes per second that leaders send to throttled replicas; set by tools that move "
            "replicas.",
            config_dynamic | config_only_when_set)},
    {text("listeners", nullptr, nullptr, "Where this broker listens; set as transport.NAME.listen.",
          config_list | config_fact)},
    {number("log.cleaner.backoff.ms", "ms", "15000", 0, int64_max,
            "How long compaction rests when there is nothing to compact.", config_dynamic)},
    {number("log.cleaner.dedupe.buffer.size", "bytes", "134217728", 0, int64_max,
            "Memory for the keys of the logs that are compacted, shared by log.cleaner.threads; "
            "taken while it is needed.",
            config_dynamic)},
    {number("log.cleaner.delete.retention.ms", "ms", "86400000", 0, int64_max,
            "Default of delete.retention.ms.", config_dynamic)},
    {flag("log.cleaner.enable", "true", "Whether compacted topics are compacted.")},
    {ratio("log.cleaner.io.buffer.load.factor", "0.9",
           "How much of its memory for keys compaction fills.", config_dynamic)},
    {number("log.cleaner.io.buffer.size", "bytes", "524288", 0, int32_max,
            "How much compaction reads at once.", config_dynamic)},
    {real("log.cleaner.io.max.bytes.per.second", "bytes/s", "1.7976931348623157E308",
          "Bytes per second that compaction reads and writes at most.", config_dynamic)},
    {number("log.cleaner.max.compaction.lag.ms", "ms", forever, 1, int64_max,
            "Default of max.compaction.lag.ms.", config_dynamic)},
    {ratio("log.cleaner.min.cleanable.ratio", "0.5", "Default of min.cleanable.dirty.ratio.",
           config_dynamic)},
    {number("log.cleaner.min.compaction.lag.ms", "ms", "0", 0, int64_max,
            "Default of min.compaction.lag.ms.", config_dynamic)},
    {number("log.cleaner.threads", nullptr, "1", 0, int32_max,
            "How many logs are compacted at once.", config_dynamic)},
    {text("log.cleanup.policy", "delete", cleanup_choices, "Default of cleanup.policy.",
          config_list | config_dynamic)},
    {text("log.dirs", nullptr, nullptr, "Where logs are kept; set as broker.data.",
          config_list | config_fact)},
    {number("log.flush.interval.messages", "records", forever, 1, int64_max,
            "Default of flush.messages.", config_dynamic)},
    {number("log.flush.interval.ms", "ms", nullptr, 0, int64_max, "Default of flush.ms.",
            config_dynamic),
     "log.flush.scheduler.interval.ms"},
    {number("log.flush.scheduler.interval.ms", "ms", forever, 0, int64_max,
            "Default of flush.ms where log.flush.interval.ms is not set.", config_reread)},
    {number("log.index.interval.bytes", "bytes", "4096", 0, int32_max,
            "Default of index.interval.bytes.", config_dynamic)},
    {number("log.index.size.max.bytes", "bytes", "10485760", 4, int32_max,
            "Default of segment.index.bytes.", config_dynamic)},
    {number("log.local.retention.bytes", "bytes", "-2", -2, int64_max,
            "Default of local.retention.bytes.", config_dynamic)},
    {number("log.local.retention.ms", "ms", "-2", -2, int64_max, "Default of local.retention.ms.",
            config_dynamic)},
    {flag("log.message.downconversion.enable", "true",
          "Accepted for old configurations; has no effect.", config_only_when_set)},
    {text("log.message.format.version", "3.0-IV1", nullptr, "Default of message.format.version.",
          config_only_when_set | config_reread)},
    {number("log.message.timestamp.after.max.ms", "ms", "3600000", 0, int64_max,
            "Default of message.timestamp.after.max.ms.", config_dynamic)},
    {number("log.message.timestamp.before.max.ms", "ms", forever, 0, int64_max,
            "Default of message.timestamp.before.max.ms.", config_dynamic)},
    {number("log.message.timestamp.difference.max.ms", "ms", forever, 0, int64_max,
            "Default of message.timestamp.difference.max.ms.",
            config_only_when_set | config_reread)},
    {text("log.message.timestamp.type", "CreateTime", timestamp_choices,
          "Default of message.timestamp.type.", config_dynamic)},
    {flag("log.preallocate", "false", "Default of preallocate.", config_dynamic)},
    {number("log.remote.copy.lag.bytes", "bytes", "-1", -1, int64_max,
            "Default of remote.copy.lag.bytes.", config_dynamic)},
    {number("log.remote.copy.lag.ms", "ms", "0", -1, int64_max, "Default of remote.copy.lag.ms.",
            config_dynamic)},
    {number("log.retention.bytes", "bytes", "-1", -1, int64_max, "Default of retention.bytes.",
            config_dynamic)},
    {number("log.retention.check.interval.ms", "ms", "300000", 1, int64_max,
            "How often the broker looks for segments to remove.")},
    {number("log.retention.hours", "hours", "168", -1, int32_max,
            "Default of retention.ms where neither log.retention.ms nor .minutes is set.",
            config_reread)},
    {number("log.retention.minutes", "minutes", nullptr, -1, int32_max,
            "Default of retention.ms where log.retention.ms is not set.", config_reread),
     "log.retention.hours"},
    {number("log.retention.ms", "ms", nullptr, -1, int64_max, "Default of retention.ms.",
            config_dynamic),
     "log.retention.minutes"},
    {number("log.roll.hours", "hours", "168", 1, int32_max,
            "Default of segment.ms where log.roll.ms is not set.", config_reread)},
    {number("log.roll.jitter.hours", "hours", "0", 0, int32_max,
            "Default of segment.jitter.ms where log.roll.jitter.ms is not set.", config_reread)},
    {number("log.roll.jitter.ms", "ms", nullptr, 0, int64_max, "Default of segment.jitter.ms.",
            config_dynamic),
     "log.roll.jitter.hours"},
    {number("log.roll.ms", "ms", nullptr, 1, int64_max, "Default of segment.ms.", config_dynamic),
     "log.roll.hours"},
    {number(
        "log.scrub.bytes.per.second", "bytes/s", "1048576", 0, int64_max,
        "How fast log files that nothing is appended to any more are read again, to find what a "
        "disk has spoilt; 0: never. What that finds is in the log, and counted by the metric "
        "millrace_log_corrupt_batches.")},
    {number("log.scrub.interval.ms", "ms", "604800000", 1, int64_max,
            "How long from one look at all of them to the next; the first begins at most ten "
            "minutes after the start.")},
    {number("log.segment.bytes", "bytes", "1073741824", 14, int32_max, "Default of segment.bytes.",
            config_dynamic)},
    {number("log.segment.delete.delay.ms", "ms", "60000", 0, int64_max,
            "Default of file.delete.delay.ms.", config_dynamic)},
    {number("max.decompressed.message.bytes", "bytes", "2147483639", 1, int32_max,
            "Default of the topics' setting.", config_dynamic)},
    {number("max.incremental.fetch.session.cache.slots", "sessions", "1000", 0, int32_max,
            "Fetch sessions that are kept, all shards together.")},
    {number("message.max.bytes", "bytes", "1048588", 0, int32_max, "Default of max.message.bytes.",
            config_dynamic)},
    {number("min.insync.replicas", "replicas", "1", 1, int32_max, "Default of the topics' setting.",
            config_dynamic)},
    {number("node.id", nullptr, "-1", -1, int32_max, "This broker's number, as in broker.id.",
            config_fact)},
    {number("num.partitions", "partitions", "1", 1, int32_max,
            "Partitions of a topic that does not say how many.", config_reread)},
    {number("num.replica.fetchers", "fetchers", "1", 1, 64,
            "Connections, of each shard, by which replicas are fetched from one other broker.")},
    {number("offset.metadata.max.bytes", "bytes", "4096", 0, int32_max,
            "The largest text that may go with a committed offset.", config_reread)},
    {number("offsets.retention.check.interval.ms", "ms", "600000", 1, int64_max,
            "How often the broker looks for committed offsets to forget.", config_reread)},
    {number("offsets.retention.minutes", "minutes", "10080", 1, int32_max,
            "How long committed offsets are kept once nobody uses them.", config_reread)},
    {number("offsets.topic.compression.codec", nullptr, "0", 0, 4,
            "What the records of groups are compressed with: 0 none, 1 gzip, 2 snappy, 3 lz4, "
            "4 zstd.",
            config_only_when_set)},
    {number("offsets.topic.num.partitions", "partitions", "50", 1, int32_max,
            "Partitions of __consumer_offsets, when it is made.")},
    {number("offsets.topic.replication.factor", "replicas", "3", 1, int16_max,
            "Replicas of __consumer_offsets, when it is made; fewer where there are fewer "
            "brokers.")},
    {number("offsets.topic.segment.bytes", "bytes", "104857600", 1, int32_max,
            "segment.bytes of __consumer_offsets, when it is made.")},
    {number("producer.id.expiration.ms", "ms", "86400000", 1, int32_max,
            "How long an idle idempotent producer is remembered.", config_dynamic)},
    {number(
        "replica.alter.log.dirs.io.max.bytes.per.second", "bytes/s", forever, 0, int64_max,
        "Bytes per second that a replica moves between folders; set by tools that move replicas.",
        config_dynamic | config_only_when_set)},
    {number("replica.fetch.backoff.ms", "ms", "1000", 0, int32_max,
            "The longest that a follower waits before it fetches again what it could not.")},
    {number("replica.fetch.max.bytes", "bytes", "1048576", 0, int32_max,
            "The most that a follower fetches of one partition at a time; a larger batch comes "
            "whole.")},
    {number("replica.fetch.min.bytes", "bytes", "1", 0, int32_max,
            "What a leader waits for before it answers a follower.")},
    {number("replica.fetch.response.max.bytes", "bytes", "10485760", 0, int32_max,
            "The most that a leader answers a follower at a time.")},
    {number("replica.fetch.wait.max.ms", "ms", "500", 0, int32_max,
            "How long a leader waits before it answers a follower that there is nothing new.")},
    {number("replica.high.watermark.checkpoint.interval.ms", "ms", "5000", 1, int64_max,
            "How often high watermarks are written to disk.")},
    {number("replica.lag.max.messages", "records", "0", 0, int64_max,
            "So far behind its leader a follower is out of sync; 0: as far as it may be.",
            config_only_when_set)},
    {number("replica.lag.time.max.ms", "ms", "30000", 1, int64_max,
            "A follower that has not caught up for so long is out of sync.")},
    {number("socket.send.buffer.bytes", "bytes", "262144", -1, int32_max,
            "SO_SNDBUF of clients' connections; -1: the system's choice. Kafka's default, 102400, "
            "costs more wake-ups; a far client needs what its line holds on the way.")},
    {flag("unclean.leader.election.enable", "false", "Default of the topics' setting.",
          config_dynamic)},
};

std::vector<MillraceOption> all_defaults() {
  std::vector<MillraceOption> all;
  for (const auto& broker : broker_table) {
    if (broker.has(config_fact)) continue;
    all.push_back(broker.option);
    // Texts of a list are checked one by one, when all settings are.
    if (broker.has(config_list)) all.back().choices = nullptr;
  }
  for (const auto& topic : topic_options()) {
    if (find_broker_option(topic.option.name)) continue;
    all.push_back(topic.option);
    const auto* broker =
        topic.synonyms[0].name ? find_broker_option(topic.synonyms[0].name) : nullptr;
    all.back().flags |= broker ? broker->option.flags : MILLRACE_OPTION_RELOADABLE;
    if (topic.synonyms[0].name) all.back().default_value = nullptr;  // absent, its synonyms decide
    if (topic.has(config_list)) all.back().choices = nullptr;
  }
  std::ranges::sort(all, {}, [](const MillraceOption& o) { return std::string_view(o.name); });
  all.push_back({});
  return all;
}

std::vector<MillraceOption> all_topic_settings() {
  std::vector<MillraceOption> all;
  for (const auto& topic : topic_options()) {
    all.push_back(topic.option);
    all.back().default_value = nullptr;  // absent, the broker's counts
    if (topic.has(config_list)) all.back().choices = nullptr;
  }
  all.push_back({});
  return all;
}

}  // namespace

std::span<const BrokerOption> broker_config_options() noexcept { return broker_table; }

const BrokerOption* find_broker_option(std::string_view name) noexcept {
  const auto* found = std::ranges::find(broker_table, name, [](const BrokerOption& broker) {
    return std::string_view(broker.option.name);
  });
  return found == std::end(broker_table) ? nullptr : found;
}

const MillraceOption* broker_defaults() noexcept {
  static const std::vector<MillraceOption> all = all_defaults();
  return all.data();
}

const MillraceOption* topic_table_settings() noexcept {
  static const std::vector<MillraceOption> all = all_topic_settings();
  return all.data();
}

}  // namespace millrace::kernel
