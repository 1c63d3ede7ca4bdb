// Topics: metadata, creation, deletion. Changes are made one at a time on the control thread: first
// in coordination, then on the shards, then in the state that every shard sees.
#include <algorithm>

#include "kernel/broker/broker.h"
#include "kernel/broker/session.h"
#include "kernel/cluster/topics.h"
#include "kernel/cluster/znodes.h"
#include "kernel/partition/topic_config.h"

namespace millrace::kernel {

namespace {

struct OpenRequest {
  BrokerParts& parts;
  ShardState& owner;
  TopicPartition id;
  TopicConfig config;
  Uuid topic_id;
  Epoch leader_epoch;
};

Task<Recovery> open_on(OpenRequest request) {
  PartitionHost host{request.parts.environment, request.owner.shard(), request.parts.storage,
                     request.parts.codecs, request.parts.log};
  MR_CO_TRY(auto partition,
            co_await Partition::open(std::move(host), std::move(request.id), request.topic_id,
                                     request.config, request.leader_epoch));
  const auto recovery = partition->recovery();
  request.owner.add(std::move(partition));
  co_return recovery;
}

Task<> close_on(ShardState& owner, TopicPartition id) {
  const auto partition = owner.take(id);
  if (!partition) co_return {};
  co_return co_await partition->close();
}

std::vector<TopicPartition> partitions_of(const TopicState& topic) {
  std::vector<TopicPartition> ids;
  for (std::size_t at = 0; at < topic.partitions.size(); ++at) {
    ids.push_back({topic.name, static_cast<std::int32_t>(at)});
  }
  return ids;
}

TopicInfo describe(const TopicState& topic) {
  TopicInfo info{.topic = {topic.name, topic.id}, .internal = topic.internal(), .partitions = {}};
  for (std::size_t at = 0; at < topic.partitions.size(); ++at) {
    const auto& state = topic.partitions[at];
    info.partitions.push_back(
        {.partition = static_cast<std::int32_t>(at),
         .error = state.leader < 0 ? ErrorCode::leader_not_available : ErrorCode::none,
         .leader = state.leader,
         .leader_epoch = state.leader_epoch,
         .replicas = state.replicas,
         .in_sync = state.in_sync,
         .offline = {}});
  }
  return info;
}

ErrorCode why_unknown(const TopicName& topic) {
  if (topic.name.empty() && !topic.id.is_none()) return ErrorCode::unknown_topic_id;
  if (const auto refusal = check_topic_name(topic.name)) return refusal->error;
  return ErrorCode::unknown_topic_or_partition;
}

MetadataAnswer describe(const ClusterState& cluster, const MetadataRequest& request,
                        const std::string& listener) {
  MetadataAnswer answer{.brokers = {},
                        .cluster_id = cluster.cluster_id,
                        .controller_id = cluster.controller_id,
                        .topics = {}};
  for (const auto& [id, broker] : cluster.brokers) {
    auto endpoint = broker.endpoints.find(listener);
    if (endpoint == broker.endpoints.end()) endpoint = broker.endpoints.begin();
    if (endpoint == broker.endpoints.end()) continue;
    answer.brokers.push_back({id, endpoint->second, broker.rack});
  }
  if (!request.topics) {
    for (const auto& [name, topic] : cluster.topics) answer.topics.push_back(describe(*topic));
    return answer;
  }
  for (const auto& wanted : *request.topics) {
    if (const auto* topic = cluster.find(wanted)) {
      answer.topics.push_back(describe(*topic));
    } else {
      answer.topics.push_back({.error = why_unknown(wanted), .topic = wanted, .partitions = {}});
    }
  }
  return answer;
}

}  // namespace

Task<Recovery> KernelBroker::open_topic(std::shared_ptr<const TopicState> topic) {
  MR_CO_TRY(const auto config, TopicConfig::parse(config_.defaults, topic->configs));
  std::vector<Pending<Recovery>> opening;
  for (const auto& id : partitions_of(*topic)) {
    auto& owner = partitions_.owner_of(id.topic, id.partition);
    const auto epoch = topic->partitions[static_cast<std::size_t>(id.partition)].leader_epoch;
    OpenRequest request{parts_, owner, id, config, topic->id, epoch};
    auto make = [request] { return open_on(request); };
    opening.push_back(start(control(), run_on(owner.shard(), std::move(make))));
  }
  Result<Recovery> total = Recovery{};
  for (auto& one : opening) {
    auto opened = co_await one;
    if (!total) continue;  // the first failure is what is reported
    if (opened) {
      total->offsets_checked += opened->offsets_checked;
      total->bytes_cut += opened->bytes_cut;
    } else {
      total = std::move(opened);
    }
  }
  co_return total;
}

Task<> KernelBroker::close_topic(std::shared_ptr<const TopicState> topic) {
  for (const auto& id : partitions_of(*topic)) {
    auto& owner = partitions_.owner_of(id.topic, id.partition);
    auto make = [&owner, id] { return close_on(owner, id); };
    auto closed = co_await run_on(owner.shard(), std::move(make));
    if (!closed) {
      parts_.log.warning("a partition that is being deleted did not close cleanly",
                         {{"partition", to_string(id)}, {"error", to_string(closed.error())}});
    }
  }
  co_return {};
}

// The last two steps of a deletion, which a start repeats if a crash came between them. A log that
// another topic of this name has left, when metadata was lost, stays.
Task<> KernelBroker::remove_topic(std::shared_ptr<const TopicState> topic) {
  MR_CO_TRY(const auto logs, co_await parts_.storage.list());
  for (const auto& log : logs) {
    if (log.partition.topic != topic->name) continue;
    if (!log.topic_id.is_none() && log.topic_id != topic->id) continue;
    auto removed = co_await parts_.storage.remove(log.partition);
    if (!removed && removed.error().code != Errc::not_found) co_return removed.error();
  }
  co_return co_await erase_topic(parts_.coordination, *topic);
}

Task<> KernelBroker::finish_deletions() {
  MR_CO_TRY(const auto names,
            co_await parts_.coordination.list(std::string(znodes::delete_topics)));
  for (const auto& name : names) {
    const auto found = cluster_.topics.find(name);
    if (found == cluster_.topics.end()) continue;
    const auto topic = found->second;
    cluster_.remove(name);
    MR_CO_CHECK(co_await remove_topic(topic));
    parts_.log.info("finished a deletion that the last stop had interrupted", {{"topic", name}});
  }
  co_return {};
}

Task<TopicCreated> KernelBroker::create_topic(NewTopic wanted, bool validate_only) {
  MR_CO_TRY(const auto pass, running_.enter());
  MR_CO_TRY(auto turn, co_await topic_changes_.lock());
  TopicCreated created{.name = wanted.name, .message = {}, .configs = {}};
  auto planned = plan_topic(wanted, cluster_, config_.defaults, parts_.environment.random());
  if (planned.refusal) {
    created.error = planned.refusal->error;
    created.message = planned.refusal->message;
    co_return std::move(created);
  }
  created.partitions = static_cast<std::int32_t>(planned.topic.partitions.size());
  created.replication_factor =
      static_cast<std::int16_t>(planned.topic.partitions.front().replicas.size());
  created.configs = TopicConfig::describe(config_.defaults, planned.topic.configs);
  if (validate_only) co_return std::move(created);

  created.id = planned.topic.id;
  const auto topic = std::make_shared<const TopicState>(planned.topic);
  MR_CO_CHECK(co_await write_topic(parts_.coordination, planned.topic, controller_epoch_));
  auto opened = co_await open_topic(topic);
  if (!opened) {
    created.error = error_code_of(opened.error());
    created.message = opened.error().detail;
    parts_.log.error("a new topic could not be opened; its creation is taken back",
                     {{"topic", topic->name}, {"error", to_string(opened.error())}});
    MR_CO_CHECK(co_await close_topic(topic));
    MR_CO_CHECK(co_await remove_topic(topic));
    co_return std::move(created);
  }
  cluster_.put(std::move(planned.topic));
  MR_CO_CHECK(co_await publish());
  parts_.log.info("topic created", {{"topic", topic->name}, {"partitions", created.partitions}});
  co_return std::move(created);
}

Task<TopicDeleted> KernelBroker::delete_topic(TopicName name) {
  MR_CO_TRY(const auto pass, running_.enter());
  MR_CO_TRY(auto turn, co_await topic_changes_.lock());
  TopicDeleted deleted{.topic = name, .message = {}};
  const auto* known = cluster_.find(name);
  if (!known) {
    deleted.error = why_unknown(name);
    co_return std::move(deleted);
  }
  deleted.topic = {known->name, known->id};
  if (default_of("delete.topic.enable", "true") != "true") {
    deleted.error = ErrorCode::topic_deletion_disabled;
    deleted.message = "delete.topic.enable is false.";
    co_return std::move(deleted);
  }
  const auto topic = cluster_.topics.find(known->name)->second;
  std::vector<Write> marks;
  marks.push_back({.key = znodes::delete_topic(topic->name), .value = ""});
  MR_CO_CHECK(co_await parts_.coordination.commit(std::move(marks)));
  cluster_.remove(topic->name);
  MR_CO_CHECK(co_await publish());
  MR_CO_CHECK(co_await close_topic(topic));
  MR_CO_CHECK(co_await remove_topic(topic));
  parts_.log.info("topic deleted", {{"topic", topic->name}});
  co_return std::move(deleted);
}

Task<std::vector<TopicCreated>> KernelBroker::create_topics(Session&, CreateTopicsRequest request) {
  std::vector<TopicCreated> answers;
  for (auto& wanted : request.topics) {
    const auto name = wanted.name;
    auto make = [this, wanted = std::move(wanted), only = request.validate_only] {
      return create_topic(wanted, only);
    };
    auto created = co_await run_on(control(), std::move(make));
    if (!created) {
      created = TopicCreated{.name = name,
                             .error = error_code_of(created.error()),
                             .message = created.error().detail,
                             .configs = {}};
    }
    answers.push_back(*std::move(created));
  }
  co_return std::move(answers);
}

Task<std::vector<TopicDeleted>> KernelBroker::delete_topics(Session&, std::vector<TopicName> topics,
                                                            Duration) {
  std::vector<TopicDeleted> answers;
  for (const auto& name : topics) {
    auto make = [this, name] { return delete_topic(name); };
    auto deleted = co_await run_on(control(), std::move(make));
    if (!deleted) {
      deleted = TopicDeleted{.topic = name,
                             .error = error_code_of(deleted.error()),
                             .message = deleted.error().detail};
    }
    answers.push_back(*std::move(deleted));
  }
  co_return std::move(answers);
}

// Creates what a client has just asked for; whatever fails shows in the metadata that follows.
Task<std::shared_ptr<const ClusterState>> KernelBroker::create_missing(
    ShardState& local, std::vector<std::string> names) {
  for (auto& name : names) {
    NewTopic wanted;
    wanted.name = std::move(name);
    auto make = [this, wanted = std::move(wanted)] { return create_topic(wanted, false); };
    MR_CO_CHECK(co_await run_on(control(), std::move(make)));
  }
  co_return co_await local.joined();
}

Task<MetadataAnswer> KernelBroker::metadata(Session& session, MetadataRequest request) {
  auto& local = kernel_session(session).shard();
  const auto listener = kernel_session(session).client().listener;
  MR_CO_TRY(auto cluster, co_await local.joined());
  if (request.topics && request.auto_create &&
      default_of("auto.create.topics.enable", "true") == "true") {
    std::vector<std::string> missing;
    for (const auto& topic : *request.topics) {
      const bool creatable = !topic.name.empty() && !check_topic_name(topic.name);
      if (creatable && !cluster->find(topic.name)) missing.push_back(topic.name);
    }
    if (!missing.empty()) {
      MR_CO_TRY(cluster, co_await create_missing(local, std::move(missing)));
    }
  }
  co_return describe(*cluster, request, listener);
}

Task<std::int64_t> KernelBroker::next_producer_id() {
  MR_CO_TRY(const auto pass, running_.enter());
  co_return co_await producer_ids_.next();
}

Task<InitProducerIdAnswer> KernelBroker::init_producer_id(Session&, InitProducerIdRequest request) {
  if (request.transactional_id) {
    // Transactions come with their plugin; no coordinator is loaded.
    co_return InitProducerIdAnswer{.error = ErrorCode::coordinator_not_available};
  }
  auto make = [this] { return next_producer_id(); };
  MR_CO_TRY(const auto id, co_await run_on(control(), std::move(make)));
  co_return InitProducerIdAnswer{.error = ErrorCode::none, .producer_id = id, .producer_epoch = 0};
}

}  // namespace millrace::kernel
