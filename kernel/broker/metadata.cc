// Metadata: what a shard knows of the cluster, and topics that are created because a client asks.
#include <chrono>
#include <optional>
#include <set>

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

// Longer than clients take until they look again.
constexpr Duration gone_named_for = std::chrono::seconds(3);

std::optional<BrokerInfo> describe(const BrokerState& broker, const std::string& listener) {
  auto address = address_of(broker, listener);
  if (address.host.empty()) return std::nullopt;
  return BrokerInfo{broker.id, std::move(address), broker.rack};
}

// Whoever has a replica of what was asked for stays named for a moment when it is gone. librdkafka
// lets go of a broker that is not named any more with all that it led: heard in one answer that
// another one leads, it would look a second later again.
void name_gone(MetadataAnswer& answer, const ClusterState& cluster, const std::string& listener,
               MonoTime now) {
  std::set<std::int32_t> named;
  for (const auto& [id, gone] : cluster.gone) {
    if (now - gone.since < gone_named_for) named.insert(id);
  }
  if (named.empty()) return;
  std::set<std::int32_t> replicas;
  for (const auto& topic : answer.topics) {
    for (const auto& partition : topic.partitions) {
      replicas.insert(partition.replicas.begin(), partition.replicas.end());
    }
  }
  for (const auto id : named) {
    if (!replicas.contains(id)) continue;
    auto info = describe(cluster.gone.at(id).last, listener);
    if (info) answer.brokers.push_back(*std::move(info));
  }
}

MetadataAnswer describe(const ClusterState& cluster, const MetadataRequest& request,
                        const std::string& listener, MonoTime now) {
  MetadataAnswer answer{.brokers = {},
                        .cluster_id = cluster.cluster_id,
                        .controller_id = cluster.controller_id,
                        .topics = {}};
  for (const auto& [id, broker] : cluster.brokers) {
    if (auto info = describe(broker, listener)) answer.brokers.push_back(*std::move(info));
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
  if (!cluster.gone.empty()) name_gone(answer, cluster, listener, now);
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
      config_.default_of(cluster.get(), "auto.create.topics.enable", "true") == "true") {
    std::vector<std::string> missing;
    for (const auto& topic : *request.topics) {
      const bool creatable = !topic.name.empty() && !check_topic_name(topic.name);
      if (creatable && !cluster->find(topic.name)) missing.push_back(topic.name);
    }
    if (!missing.empty()) {
      MR_CO_TRY(cluster, co_await create_missing(local, std::move(missing)));
    }
  }
  co_return describe(*cluster, request, listener, local.shard().now());
}

}  // namespace millrace::kernel
