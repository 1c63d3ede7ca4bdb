// Metadata: what a shard knows of the cluster, and topics that are created because a client asks.
#include "kernel/broker/broker.h"
#include "kernel/broker/session.h"
#include "kernel/broker/topic_info.h"
#include "kernel/cluster/topics.h"

namespace millrace::kernel {

namespace {

TopicInfo describe(const ClusterState& cluster, const TopicState& topic) {
  auto info = topic_info(topic);
  const auto partitions = static_cast<std::int32_t>(topic.partitions.size());
  for (std::int32_t at = 0; at < partitions; ++at) {
    info.partitions.push_back(partition_info(cluster, topic, at));
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
    for (const auto& [name, topic] : cluster.topics)
      answer.topics.push_back(describe(cluster, *topic));
    return answer;
  }
  for (const auto& wanted : *request.topics) {
    if (const auto* topic = cluster.find(wanted)) {
      answer.topics.push_back(describe(cluster, *topic));
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
    const bool own = own_topics_.contains(name);
    wanted.name = std::move(name);
    auto make = [this, own, wanted = std::move(wanted)] {
      return own ? create_own_topic(wanted.name) : topics_.create_anywhere(wanted);
    };
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
