// What the broker has, described from the state that every shard has or by the shards themselves.
#include <algorithm>
#include <limits>
#include <set>

#include "kernel/broker/admin.h"
#include "kernel/broker/ask_partitions.h"
#include "kernel/broker/session.h"
#include "kernel/broker/topic_info.h"

namespace millrace::kernel {

namespace {

// ---- topics ----

// In the order of names, from where the page begins.
std::vector<std::string> topics_of_page(const ClusterState& cluster,
                                        const TopicPageRequest& request) {
  std::vector<std::string> names;
  if (request.topics) {
    names = *request.topics;
    std::ranges::sort(names);
    const auto repeated = std::ranges::unique(names);
    names.erase(repeated.begin(), repeated.end());
  } else {
    for (const auto& [name, topic] : cluster.topics) names.push_back(name);
  }
  if (request.from) {
    std::erase_if(names, [&](const std::string& name) { return name < request.from->topic; });
  }
  return names;
}

TopicPage page_of(const ClusterState& cluster, const TopicPageRequest& request) {
  TopicPage page;
  auto room = request.partitions_max;
  for (const auto& name : topics_of_page(cluster, request)) {
    const auto* topic = cluster.find(std::string_view(name));
    if (!topic) {
      page.topics.push_back(
          {.error = why_unknown({name, {}}), .topic = {name, {}}, .partitions = {}});
      continue;
    }
    const bool resumed = request.from && request.from->topic == name;
    const auto first = resumed ? std::max(request.from->partition, 0) : 0;
    const auto partitions = static_cast<std::int32_t>(topic->partitions.size());
    if (room == 0) {
      page.next = TopicPartition{name, first};
      return page;
    }
    auto& info = page.topics.emplace_back(topic_info(*topic));
    const auto end = first < partitions ? first + std::min(room, partitions - first) : first;
    for (auto at = first; at < end; ++at) {
      info.partitions.push_back(partition_info(cluster, *topic, at));
    }
    if (end < partitions) {
      page.next = TopicPartition{name, end};
      return page;
    }
    room -= end - first;
  }
  return page;
}

// ---- log folders ----

// Partition numbers by topic; none: all that are here.
using Wanted = std::map<std::string, std::set<std::int32_t>>;

struct SizeFound {
  std::string topic;
  PartitionSize size;
};

Task<std::vector<SizeFound>> sizes_on(ShardState& state, std::optional<Wanted> wanted) {
  std::vector<SizeFound> found;
  for (const auto& partition : state.all()) {
    const auto& id = partition->id();
    if (wanted) {
      const auto topic = wanted->find(id.topic);
      if (topic == wanted->end() || !topic->second.contains(id.partition)) continue;
    }
    const auto offsets = partition->offsets();
    const auto& compaction = partition->compaction();
    found.push_back({id.topic,
                     {.partition = id.partition,
                      .bytes = partition->bytes(),
                      .offset_lag = std::max<std::int64_t>(offsets.high_watermark - offsets.end, 0),
                      .log_start = offsets.log_start,
                      .last_stable = offsets.last_stable,
                      .high_watermark = offsets.high_watermark,
                      .end = offsets.end,
                      .appended_bytes = partition->traffic().appended_bytes,
                      .read_bytes = partition->traffic().read_bytes,
                      .failing = partition->failing(),
                      .cleaned_to = compaction.cleaned_to,
                      .clean_bytes = compaction.clean_bytes,
                      .cleanable_bytes = compaction.cleanable_bytes,
                      .compacted_at = compaction.ended,
                      .compacting_percent = compaction.percent(),
                      .uncleanable = compaction.failed}});
  }
  co_return std::move(found);
}

std::vector<TopicSizes> grouped(std::vector<SizeFound> found) {
  std::ranges::sort(found, {}, [](const SizeFound& one) {
    return std::pair(std::string_view(one.topic), one.size.partition);
  });
  std::vector<TopicSizes> topics;
  for (auto& one : found) {
    if (topics.empty() || topics.back().topic != one.topic) topics.push_back({one.topic, {}});
    topics.back().partitions.push_back(one.size);
  }
  return topics;
}

// ---- producers ----

struct ProducersQuestion {
  std::int32_t partition = -1;
};

Task<PartitionProducers> producers_of(std::shared_ptr<Partition> partition, ProducersQuestion) {
  co_return PartitionProducers{.partition = partition->id().partition,
                               .error = ErrorCode::none,
                               .producers = partition->producers()};
}

}  // namespace

Task<TopicPage> KernelAdmin::describe_topics(Session& session, TopicPageRequest request) {
  auto& local = kernel_session(session).shard();
  MR_CO_TRY(const auto cluster, co_await local.joined());
  co_return page_of(*cluster, request);
}

Task<std::vector<LogFolder>> KernelAdmin::describe_log_folders(
    Session&, std::optional<std::vector<TopicPartitions>> topics) {
  std::optional<Wanted> wanted;
  if (topics) {
    wanted.emplace();
    for (const auto& topic : *topics) {
      (*wanted)[topic.topic].insert(topic.partitions.begin(), topic.partitions.end());
    }
  }
  std::vector<SizeFound> found;
  for (const auto& state : partitions_.shards()) {
    auto make = [&state = *state, wanted] { return sizes_on(state, wanted); };
    MR_CO_TRY(auto some, co_await run_on(state->shard(), std::move(make)));
    std::ranges::move(some, std::back_inserter(found));
  }
  std::vector<LogFolder> folders(1);
  auto& folder = folders.front();
  folder.path = config_.data;
  folder.topics = grouped(std::move(found));
  auto& environment = parts_.environment;
  auto work = [&environment, path = config_.data] { return environment.files().space(path); };
  auto measuring = on_worker(environment.workers(), std::move(work));
  if (const auto space = co_await std::move(measuring)) {
    folder.bytes_total = static_cast<std::int64_t>(space->bytes_total);
    folder.bytes_usable = static_cast<std::int64_t>(space->bytes_free);
  }
  co_return std::move(folders);
}

Task<std::vector<TopicProducers>> KernelAdmin::describe_producers(
    Session& session, std::vector<TopicPartitions> topics) {
  auto& local = kernel_session(session).shard();
  co_return co_await ask_topics<TopicProducers>(partitions_, local, std::move(topics),
                                                &producers_of);
}

}  // namespace millrace::kernel
