// Metadata: what a shard knows of the cluster, and topics that are created because a client asks.
#include "kernel/broker/broker.h"
#include "kernel/broker/session.h"
#include "kernel/cluster/topics.h"

namespace millrace::kernel {

namespace {

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

// Creates what a client has just asked for; whatever fails shows in the metadata that follows.
Task<std::shared_ptr<const ClusterState>> KernelBroker::create_missing(
    ShardState& local, std::vector<std::string> names) {
  for (auto& name : names) {
    NewTopic wanted;
    wanted.name = std::move(name);
    auto make = [this, wanted = std::move(wanted)] { return topics_.create(wanted, false); };
    MR_CO_CHECK(co_await run_on(control(), std::move(make)));
  }
  co_return co_await local.joined();
}

Task<MetadataAnswer> KernelBroker::metadata(Session& session, MetadataRequest request) {
  auto& local = kernel_session(session).shard();
  const auto listener = kernel_session(session).client().listener;
  MR_CO_TRY(auto cluster, co_await local.joined());
  if (request.topics && request.auto_create &&
      config_.default_of("auto.create.topics.enable", "true") == "true") {
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

}  // namespace millrace::kernel
