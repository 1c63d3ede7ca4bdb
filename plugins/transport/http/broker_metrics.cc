#include "broker_metrics.h"

#include <array>
#include <string>
#include <utility>

namespace millrace::http_transport {
namespace {

struct Memory {
  std::size_t used = 0;
  std::size_t max = 0;
  std::size_t waiting = 0;
};

Task<Memory> memory_of(Broker& broker, Shard& shard) {
  const auto& budget = broker.memory(shard);
  co_return Memory{budget.bytes_used(), budget.bytes_max(), budget.waiting()};
}

/// What is told of every partition.
struct PartitionFact {
  const char* name;
  const char* help;
  MetricType type;
  std::int64_t (*value)(const PartitionSize&);
};
constexpr std::array partition_facts = {
    PartitionFact{
        "millrace_partition_appended_bytes_total", "Bytes of records appended", MetricType::counter,
        [](const PartitionSize& of) { return static_cast<std::int64_t>(of.appended_bytes); }},
    PartitionFact{"millrace_partition_bytes", "Size of the log", MetricType::gauge,
                  [](const PartitionSize& of) { return static_cast<std::int64_t>(of.bytes); }},
    PartitionFact{"millrace_partition_end_offset", "Offset of the next record", MetricType::gauge,
                  [](const PartitionSize& of) { return of.end.value; }},
    PartitionFact{"millrace_partition_high_watermark",
                  "Offset below which records are on all replicas", MetricType::gauge,
                  [](const PartitionSize& of) { return of.high_watermark.value; }},
    PartitionFact{"millrace_partition_last_stable_offset",
                  "Offset below which transactions are decided", MetricType::gauge,
                  [](const PartitionSize& of) { return of.last_stable.value; }},
    PartitionFact{"millrace_partition_read_bytes_total", "Bytes of records read for clients",
                  MetricType::counter,
                  [](const PartitionSize& of) { return static_cast<std::int64_t>(of.read_bytes); }},
    PartitionFact{"millrace_partition_start_offset", "Offset of the oldest record",
                  MetricType::gauge, [](const PartitionSize& of) { return of.log_start.value; }},
};

/// What is told of those besides that are compacted. Times and shares are of one partition, and do
/// not add up.
struct CompactionFact : PartitionFact {
  bool adds_up = true;
};
constexpr std::array compaction_facts = {
    CompactionFact{
        {"millrace_partition_clean_bytes", "What compaction has cleaned", MetricType::gauge,
         [](const PartitionSize& of) { return static_cast<std::int64_t>(of.clean_bytes); }}},
    CompactionFact{
        {"millrace_partition_cleanable_bytes", "What compaction could clean now", MetricType::gauge,
         [](const PartitionSize& of) { return static_cast<std::int64_t>(of.cleanable_bytes); }}},
    CompactionFact{
        {"millrace_partition_cleaned_offset", "Offset below which compaction has cleaned",
         MetricType::gauge, [](const PartitionSize& of) { return of.cleaned_to.value; }},
        false},
    CompactionFact{{"millrace_partition_compacted_timestamp_seconds",
                    "When compaction was last done with it; -1: not since the log was opened",
                    MetricType::gauge,
                    [](const PartitionSize& of) {
                      constexpr std::int64_t ms_per_second = 1000;
                      return of.compacted_at.ms < 0 ? -1 : of.compacted_at.ms / ms_per_second;
                    }},
                   false},
    CompactionFact{{"millrace_partition_compacting_percent",
                    "How far compaction is with it; -1: it is not at it", MetricType::gauge,
                    [](const PartitionSize& of) { return std::int64_t{of.compacting_percent}; }},
                   false},
    CompactionFact{{"millrace_partition_uncleanable", "1: compaction failed the last time",
                    MetricType::gauge,
                    [](const PartitionSize& of) { return std::int64_t{of.uncleanable ? 1 : 0}; }}},
};

/// What a series stands for.
enum class Grain { partition, topic, everything };

Grain grain_of(std::size_t topics, std::size_t partitions, std::size_t series_max) {
  if (partitions * partition_facts.size() <= series_max) return Grain::partition;
  return topics * partition_facts.size() <= series_max ? Grain::topic : Grain::everything;
}

MetricLabels labels_of(Grain grain, const std::string& topic, std::int32_t partition) {
  switch (grain) {
    case Grain::partition: return {{"topic", topic}, {"partition", std::to_string(partition)}};
    case Grain::topic: return {{"topic", topic}};
    case Grain::everything: break;
  }
  return {};
}

/// Adds to the last series when that has the same labels: partitions come in the order of topics.
void add_up(MetricFamily& family, MetricLabels labels, double value) {
  auto& samples = family.samples;
  if (samples.empty() || samples.back().labels != labels) {
    samples.push_back({.labels = std::move(labels), .value = 0, .counts = {}});
  }
  samples.back().value += value;
}

MetricFamily gauge(const char* name, const char* help) {
  return {name, help, MetricType::gauge, {}};
}

void add_compaction(std::vector<MetricFamily>& families, const std::vector<LogFolder>& folders,
                    Grain grain) {
  for (const auto& fact : compaction_facts) {
    if (!fact.adds_up && grain != Grain::partition) continue;
    MetricFamily family{fact.name, fact.help, fact.type, {}};
    for (const auto& folder : folders) {
      for (const auto& topic : folder.topics) {
        for (const auto& size : topic.partitions) {
          if (size.cleaned_to == Offset{}) continue;
          add_up(family, labels_of(grain, topic.topic, size.partition),
                 static_cast<double>(fact.value(size)));
        }
      }
    }
    if (!family.samples.empty()) families.push_back(std::move(family));
  }
}

void add(MetricFamily& family, const std::string& shard, std::size_t value) {
  family.samples.push_back(
      {.labels = {{"shard", shard}}, .value = static_cast<double>(value), .counts = {}});
}

}  // namespace

Task<std::vector<MetricFamily>> memory_metrics(const Services& services) {
  auto limit = gauge("millrace_request_memory_limit_bytes",
                     "Memory that requests in flight may take; beyond it nothing is read");
  auto used = gauge("millrace_request_memory_used_bytes", "Memory that requests in flight take");
  auto waiting =
      gauge("millrace_request_memory_waiting", "Connections that wait for memory to read on");
  for (auto* shard : services.environment.shards()) {
    auto look = [broker = &services.broker, shard] { return memory_of(*broker, *shard); };
    auto looking = run_on(*shard, std::move(look));
    MR_CO_TRY(const auto memory, co_await std::move(looking));
    const auto name = std::to_string(shard->index());
    add(limit, name, memory.max);
    add(used, name, memory.used);
    add(waiting, name, memory.waiting);
  }
  std::vector<MetricFamily> families;
  families.push_back(std::move(limit));
  families.push_back(std::move(used));
  families.push_back(std::move(waiting));
  co_return families;
}

std::vector<MetricFamily> log_metrics(const std::vector<LogFolder>& folders,
                                      std::size_t series_max) {
  std::size_t topics = 0;
  std::size_t partitions = 0;
  auto total = gauge("millrace_log_folder_bytes", "Size of the file system of a folder of logs");
  auto usable = gauge("millrace_log_folder_usable_bytes", "What is free of it");
  for (const auto& folder : folders) {
    topics += folder.topics.size();
    for (const auto& topic : folder.topics) partitions += topic.partitions.size();
    if (folder.bytes_total < 0) continue;
    const MetricLabels path = {{"path", folder.path}};
    add_up(total, path, static_cast<double>(folder.bytes_total));
    add_up(usable, path, static_cast<double>(folder.bytes_usable));
  }
  auto count = gauge("millrace_partitions", "Partitions that this broker keeps");
  add_up(count, {}, static_cast<double>(partitions));

  const auto grain = grain_of(topics, partitions, series_max);
  std::vector<MetricFamily> families;
  for (const auto& fact : partition_facts) {
    MetricFamily family{fact.name, fact.help, fact.type, {}};
    for (const auto& folder : folders) {
      for (const auto& topic : folder.topics) {
        for (const auto& size : topic.partitions) {
          add_up(family, labels_of(grain, topic.topic, size.partition),
                 static_cast<double>(fact.value(size)));
        }
      }
    }
    families.push_back(std::move(family));
  }
  add_compaction(families, folders, grain);
  families.push_back(std::move(total));
  families.push_back(std::move(usable));
  families.push_back(std::move(count));
  return families;
}

Task<std::vector<MetricFamily>> log_metrics(Exchange& exchange) {
  const auto& services = exchange.services;
  auto asking = services.broker.admin().describe_log_folders(exchange.session, std::nullopt);
  MR_CO_TRY(const auto folders, co_await std::move(asking));
  auto families = log_metrics(folders, services.settings.partition_series_max);
  auto searching = find_trouble(exchange);
  MR_CO_TRY(const auto trouble, co_await std::move(searching));
  auto offline = gauge("millrace_partitions_offline", "Partitions whose log could not be opened");
  add_up(offline, {}, static_cast<double>(trouble.offline.size()));
  auto failing = gauge("millrace_partitions_failing", "Partitions that refused the last append");
  add_up(failing, {}, static_cast<double>(trouble.failing.size()));
  families.push_back(std::move(offline));
  families.push_back(std::move(failing));
  co_return families;
}

Task<Trouble> find_trouble(Exchange& exchange) {
  auto& broker = exchange.services.broker;
  Trouble trouble;
  auto asking = broker.metadata(exchange.session, {});
  MR_CO_TRY(const auto answer, co_await std::move(asking));
  for (const auto& topic : answer.topics) {
    for (const auto& partition : topic.partitions) {
      if (partition.leader >= 0) continue;
      trouble.offline.push_back(to_string(TopicPartition{topic.topic.name, partition.partition}));
    }
  }
  auto looking = broker.admin().describe_log_folders(exchange.session, std::nullopt);
  MR_CO_TRY(const auto folders, co_await std::move(looking));
  for (const auto& folder : folders) {
    for (const auto& topic : folder.topics) {
      for (const auto& size : topic.partitions) {
        if (!size.failing) continue;
        trouble.failing.push_back(to_string(TopicPartition{topic.topic, size.partition}));
      }
    }
  }
  co_return trouble;
}

}  // namespace millrace::http_transport
