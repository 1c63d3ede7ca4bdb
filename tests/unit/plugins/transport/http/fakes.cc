#include "fakes.h"

#include <chrono>
#include <utility>

namespace millrace::http_transport::testing {
namespace {

Error unused() { return {Errc::internal, "the http transport does not ask for this"}; }

template <class T>
Call<T> unused_call() {
  return {Pending<>::ready(unused()), Pending<T>::ready(unused())};
}

TopicInfo info_of(const std::string& name, int partitions, const TopicPartition& offline) {
  TopicInfo topic{.topic = {name, {}}};
  topic.topic.id.bytes.fill(1);
  for (int at = 0; at < partitions; ++at) {
    topic.partitions.push_back({.partition = at,
                                .leader = offline == TopicPartition{name, at} ? -1 : 1,
                                .leader_epoch = Epoch{0},
                                .replicas = {1},
                                .in_sync = {1}});
  }
  return topic;
}

}  // namespace

// ---- operations ----

std::vector<LogLevelFact> FakeOperations::log_levels() const {
  std::vector<LogLevelFact> facts;
  for (const auto& [subsystem, level] : levels) facts.push_back({subsystem, level});
  return facts;
}

Result<> FakeOperations::set_log_level(std::string_view subsystem, std::optional<LogLevel> level) {
  if (subsystem == "bad") return Error{Errc::invalid_argument, "no such subsystem"};
  if (level) {
    levels.insert_or_assign(std::string(subsystem), *level);
  } else {
    levels.erase(std::string(subsystem));
  }
  return {};
}

// ---- administration ----

Task<std::vector<TopicCreated>> FakeAdmin::create_topics(Session&, CreateTopicsRequest request) {
  std::vector<TopicCreated> created;
  for (const auto& topic : request.topics) {
    created.push_back({.name = topic.name,
                       .error = error,
                       .message = message,
                       .partitions = topic.partitions,
                       .replication_factor = 1});
  }
  creations.push_back(std::move(request));
  co_return created;
}

Task<std::vector<TopicDeleted>> FakeAdmin::delete_topics(Session&, std::vector<TopicName> topics,
                                                         Duration) {
  std::vector<TopicDeleted> answers;
  for (const auto& topic : topics) {
    deleted.push_back(topic.name);
    answers.push_back({.topic = topic, .error = error, .message = message});
  }
  co_return answers;
}

Task<std::vector<TopicGrown>> FakeAdmin::grow_topics(Session&, GrowTopicsRequest request) {
  std::vector<TopicGrown> answers;
  for (const auto& topic : request.topics) {
    grown.push_back(topic);
    answers.push_back({.name = topic.name, .error = error, .message = message});
  }
  co_return answers;
}

Task<std::vector<TopicTrimmed>> FakeAdmin::trim(Session&, TrimRequest) { co_return unused(); }
Task<TopicPage> FakeAdmin::describe_topics(Session&, TopicPageRequest) { co_return unused(); }

Task<std::vector<LogFolder>> FakeAdmin::describe_log_folders(
    Session&, std::optional<std::vector<TopicPartitions>>) {
  co_return folders;
}

Task<std::vector<TopicProducers>> FakeAdmin::describe_producers(Session&,
                                                                std::vector<TopicPartitions>) {
  co_return unused();
}

// ---- settings ----

Task<std::vector<ConfigsDescribed>> FakeConfigs::describe(Session&,
                                                          std::vector<ConfigQuery> queries) {
  std::vector<ConfigsDescribed> answers;
  for (const auto& query : queries) {
    answers.push_back({query.resource, error, message, entries});
  }
  co_return answers;
}

Task<std::vector<ConfigsAltered>> FakeConfigs::alter(Session&, AlterConfigsRequest request) {
  std::vector<ConfigsAltered> answers;
  for (const auto& alteration : request.alterations) {
    answers.push_back({alteration.resource, error, message});
  }
  alterations.push_back(std::move(request));
  co_return answers;
}

Task<std::vector<ConfigResource>> FakeConfigs::list(Session&, std::vector<ConfigResourceType>) {
  co_return unused();
}

// ---- the broker ----

Call<ProduceAnswer> FakeBroker::produce(Session&, ProduceRequest) {
  return unused_call<ProduceAnswer>();
}
Call<FetchAnswer> FakeBroker::fetch(Session&, FetchRequest) { return unused_call<FetchAnswer>(); }

Task<ListOffsetsAnswer> FakeBroker::list_offsets(Session&, ListOffsetsRequest request) {
  ListOffsetsAnswer answer;
  for (const auto& topic : request.topics) {
    auto& found = answer.topics.emplace_back(topic.topic);
    for (const auto& query : topic.partitions) {
      const bool earliest = query.timestamp == static_cast<std::int64_t>(OffsetSpec::earliest);
      auto& partition = found.partitions.emplace_back();
      partition.partition = query.partition;
      if (topics.contains(topic.topic)) {
        partition.offset = Offset{earliest ? 10 : 30};
      } else {
        partition.error = ErrorCode::unknown_topic_or_partition;
      }
    }
  }
  co_return answer;
}

Task<std::vector<TopicEpochEnds>> FakeBroker::epoch_ends(Session&, std::vector<TopicEpochQuery>) {
  co_return unused();
}

Task<MetadataAnswer> FakeBroker::metadata(Session&, MetadataRequest request) {
  if (stopping) co_return Error{Errc::closed, "stopping"};
  if (slow) MR_CO_CHECK(co_await sleep(std::chrono::hours(1)));
  MetadataAnswer answer{.brokers = {{.id = 1, .address = {"b1", 9092}, .rack = "r1"}},
                        .cluster_id = "cluster",
                        .controller_id = 1};
  if (!request.topics) {
    for (const auto& [name, partitions] : topics) {
      answer.topics.push_back(info_of(name, partitions, offline));
    }
    co_return answer;
  }
  for (const auto& wanted : *request.topics) {
    const auto found = topics.find(wanted.name);
    if (found != topics.end()) {
      answer.topics.push_back(info_of(found->first, found->second, offline));
    } else {
      answer.topics.push_back({.error = ErrorCode::unknown_topic_or_partition, .topic = wanted});
    }
  }
  co_return answer;
}

Task<InitProducerIdAnswer> FakeBroker::init_producer_id(Session&, InitProducerIdRequest) {
  co_return unused();
}

}  // namespace millrace::http_transport::testing
