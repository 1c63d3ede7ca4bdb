#include <chrono>
#include <optional>
#include <set>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include <millrace/kafka/metadata.h>

#include "../lost_brokers.h"
#include "authorized_operations.h"
#include "handlers.h"
#include "names.h"

namespace millrace::kafka_transport {
namespace {

struct Asked {
  MetadataRequest request;
  bool topic_operations = false;
  bool cluster_operations = false;
  std::vector<TopicInfo> refused;
};

/// What a request has named so far. A topic is answered once, as in Kafka, however often it is
/// named: its description may be a million times as long as its name.
class Named {
 public:
  /// False when it was named before.
  bool add(const std::optional<std::string_view>& name, const Uuid& id) {
    if (!id.is_none()) return ids_.emplace(id, name.value_or("")).second;
    return names_.insert(name.value_or("")).second;
  }

 private:
  std::unordered_set<std::string_view> names_;
  std::set<std::pair<Uuid, std::string_view>> ids_;
};

Result<Asked> read_request(const Request& request) {
  MR_TRY(const auto asked, request.decode<kafka::MetadataRequest>());
  const auto features = metadata_features(request.head.version);
  Asked result;
  result.request.auto_create = asked.allow_auto_topic_creation;
  result.topic_operations = asked.include_topic_authorized_operations;
  result.cluster_operations = asked.include_cluster_authorized_operations;
  if (!asked.topics || (features.empty_is_all && asked.topics->empty())) return result;
  auto& topics = result.request.topics.emplace();
  Named named;
  for (const auto& topic : *asked.topics) {
    if (!named.add(topic.name, topic.topic_id)) continue;
    auto name = topic_name(topic.name.value_or(""), topic.topic_id);
    const bool by_id = !topic.name || !topic.topic_id.is_none();
    if (by_id && !features.by_topic_id) {
      result.refused.push_back({.error = ErrorCode::invalid_request, .topic = std::move(name)});
    } else {
      topics.push_back(std::move(name));
    }
  }
  return result;
}

kafka::MetadataResponse::Topic write_topic(const TopicInfo& info,
                                           const MetadataFeatures& features) {
  kafka::MetadataResponse::Topic topic;
  topic.error_code = code_of(info.error);
  topic.name = info.topic.name;
  if (features.by_topic_id) topic.name = unless_empty(info.topic.name);
  topic.topic_id = info.topic.id;
  topic.is_internal = info.internal;
  topic.partitions.reserve(info.partitions.size());
  for (const auto& partition : info.partitions) {
    auto& to = topic.partitions.emplace_back();
    to.error_code = code_of(partition.error);
    to.partition_index = partition.partition;
    to.leader_id = partition.leader;
    to.leader_epoch = partition.leader_epoch.value;
    to.replica_nodes = partition.replicas;
    to.isr_nodes = partition.in_sync;
    to.offline_replicas = partition.offline;
  }
  return topic;
}

Result<Payload> write_answer(const Request& request, const MetadataAnswer& answer,
                             const Asked& asked) {
  const auto features = metadata_features(request.head.version);
  kafka::MetadataResponse response;
  response.cluster_id = unless_empty(answer.cluster_id);
  response.controller_id = answer.controller_id;
  for (const auto& broker : answer.brokers) {
    response.brokers.emplace_back(broker.id, broker.address.host, broker.address.port,
                                  unless_empty(broker.rack));
  }
  response.topics.reserve(answer.topics.size());
  for (const auto& topic : answer.topics) {
    response.topics.push_back(write_topic(topic, features));
    if (asked.topic_operations) {
      response.topics.back().topic_authorized_operations = topic_operations;
    }
  }
  if (asked.cluster_operations) response.cluster_authorized_operations = cluster_operations;
  return request.encode(response);
}

/// Longer than a session lasts by default, and than clients let pass before they look again.
constexpr Duration news_wait_max = std::chrono::seconds(8);

/// Who is told of a leader that cannot be reached, and comes back for another, gets the answer when
/// there is one. The next request of its connection, which would have to wait as well, ends this.
Task<MetadataAnswer> wait_for_news(Request& request, const MetadataRequest& asked,
                                   MetadataAnswer told) {
  auto& lost = *request.listener.lost;
  auto& shard = co_await this_shard();
  CancelScope waiting(co_await this_scope());
  const LostBrokers::Waiting counted(lost);
  request.park();
  request.give_way(&waiting);
  request.dispatched();
  const auto until = shard.now() + news_wait_max;
  while (!waiting.cancelled() && shard.now() < until && lost.leads(told, shard.now())) {
    auto pausing = sleep(lost.pause()).within(waiting);
    static_cast<void>(co_await std::move(pausing));
    auto looking = request.broker.metadata(request.session, asked);
    auto looked = co_await std::move(looking);
    if (!looked) break;
    told = *std::move(looked);
  }
  request.stop_giving_way(&waiting);
  co_return std::move(told);
}

bool may_look_again(const Request& request, const MetadataRequest& asked) {
  const auto* lost = request.listener.lost;
  return lost && lost->any() && asked.topics && !asked.topics->empty();
}

}  // namespace

Task<Payload> handle_metadata(Request& request) {
  MR_CO_TRY(auto asked, read_request(request));
  std::optional<MetadataRequest> again;
  if (may_look_again(request, asked.request)) again = asked.request;
  auto describing = request.broker.metadata(request.session, std::move(asked.request));
  MR_CO_TRY(auto answer, co_await std::move(describing));
  if (again) {
    auto& lost = *request.listener.lost;
    const auto now = (co_await this_shard()).now();
    if (lost.leads(answer, now) && lost.told_before(request.client.peer, answer, now)) {
      auto waiting = wait_for_news(request, *again, std::move(answer));
      MR_CO_TRY(answer, co_await std::move(waiting));
    }
  }
  for (auto& topic : asked.refused) answer.topics.push_back(std::move(topic));
  co_return write_answer(request, answer, asked);
}

}  // namespace millrace::kafka_transport
