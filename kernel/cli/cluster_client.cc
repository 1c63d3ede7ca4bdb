#include "kernel/cli/cluster_client.h"

#include <iostream>

#include <millrace/kafka/metadata.h>
#include <millrace/utf8.h>

#include "kernel/cli/output.h"

namespace millrace::kernel::cli {

namespace {

TopicInfo info_of(const kafka::MetadataResponse::Topic& topic) {
  TopicInfo info{.error = ErrorCode{topic.error_code},
                 .topic = {std::string(topic.name.value_or("")), topic.topic_id},
                 .internal = topic.is_internal,
                 .partitions = {}};
  for (const auto& partition : topic.partitions) {
    info.partitions.push_back({.partition = partition.partition_index,
                               .error = ErrorCode{partition.error_code},
                               .leader = partition.leader_id,
                               .leader_epoch = Epoch{partition.leader_epoch},
                               .replicas = partition.replica_nodes,
                               .in_sync = partition.isr_nodes,
                               .offline = partition.offline_replicas});
  }
  std::ranges::sort(info.partitions, {}, &PartitionInfo::partition);
  return info;
}

}  // namespace

Error error_of(ErrorCode code, std::string_view what) {
  auto errc = Errc::internal;
  if (code == ErrorCode::unknown_topic_or_partition || code == ErrorCode::unknown_topic_id ||
      code == ErrorCode::group_id_not_found) {
    errc = Errc::not_found;
  } else if (code == ErrorCode::topic_already_exists || code == ErrorCode::non_empty_group) {
    errc = Errc::conflict;
  } else if (is_retriable(code)) {
    errc = Errc::overloaded;
  } else {
    errc = Errc::invalid_argument;
  }
  return Error{errc, std::string(name_of(code)) + ": " + std::string(what)};
}

Task<std::unique_ptr<ClusterClient>> ClusterClient::connect(Network& network,
                                                            std::string bootstrap) {
  MR_CO_TRY(auto address, parse_address(bootstrap));
  auto client = co_await kafka::Client::connect(network, std::move(address), {});
  if (!client) {
    co_return Error{client.error().code,
                    "no broker at " + shown(bootstrap) + ": " + client.error().detail};
  }
  co_return std::unique_ptr<ClusterClient>(new ClusterClient(network, *std::move(client)));
}

Task<MetadataAnswer> ClusterClient::metadata(std::optional<std::vector<std::string>> topics) {
  kafka::MetadataRequest request;
  request.allow_auto_topic_creation = false;
  if (topics) {
    auto& wanted = request.topics.emplace();
    for (const auto& name : *topics) {
      kafka::MetadataRequest::Topic topic;
      topic.name = name;
      wanted.push_back(std::move(topic));
    }
  } else {
    request.topics.reset();
  }
  MR_CO_TRY(const auto answer, co_await any_->call(std::move(request)));
  MetadataAnswer result{.brokers = {},
                        .cluster_id = std::string(answer.cluster_id.value_or("")),
                        .controller_id = answer.controller_id,
                        .topics = {}};
  for (const auto& broker : answer.brokers) {
    Address address{std::string(broker.host), static_cast<std::uint16_t>(broker.port)};
    brokers_[broker.node_id] = address;
    result.brokers.push_back(
        {broker.node_id, std::move(address), std::string(broker.rack.value_or(""))});
  }
  for (const auto& topic : answer.topics) result.topics.push_back(info_of(topic));
  std::ranges::sort(result.topics, {}, [](const TopicInfo& topic) { return topic.topic.name; });
  co_return std::move(result);
}

Task<TopicInfo> ClusterClient::topic(std::string name) {
  std::vector<std::string> names{name};
  MR_CO_TRY(auto answer, co_await metadata(std::move(names)));
  if (answer.topics.empty()) {
    co_return error_of(ErrorCode::unknown_topic_or_partition, "topic " + in_quotes(name));
  }
  auto topic = std::move(answer.topics.front());
  if (topic.error != ErrorCode::none) co_return error_of(topic.error, "topic " + in_quotes(name));
  co_return std::move(topic);
}

Task<kafka::Client*> ClusterClient::broker(std::int32_t id) {
  const auto found = connected_.find(id);
  if (found != connected_.end()) co_return found->second.get();
  const auto known = brokers_.find(id);
  if (known == brokers_.end()) {
    co_return error_of(ErrorCode::broker_not_available, "broker " + std::to_string(id));
  }
  auto address = known->second;
  MR_CO_TRY(auto client, co_await kafka::Client::connect(network_, std::move(address), {}));
  co_return connected_.emplace(id, std::move(client)).first->second.get();
}

Task<kafka::Client*> ClusterClient::find_controller() {
  MR_CO_TRY(const auto answer, co_await metadata(std::vector<std::string>()));
  controller_id_ = answer.controller_id;
  if (!brokers_.contains(controller_id_)) {
    co_return error_of(ErrorCode::broker_not_available,
                       "the cluster has no controller now; one is elected within the session "
                       "time-out");
  }
  auto connected = co_await broker(controller_id_);
  if (connected) co_return *connected;
  co_return Error{connected.error().code, "broker " + std::to_string(controller_id_) + " at " +
                                              to_string(brokers_.at(controller_id_)) + ": " +
                                              connected.error().detail};
}

Task<> ClusterClient::next_try(ControllerWait& wait, Error why) {
  const bool passes = why.code == Errc::closed || why.code == Errc::io ||
                      why.code == Errc::timed_out || why.code == Errc::overloaded;
  if (!passes) co_return why;
  const auto now = (co_await this_shard()).now();
  if (!wait.until) {
    wait.until = now + controller_wait_max;
    std::cerr << "millrace: waiting up to " << controller_wait_max / std::chrono::seconds(1)
              << " s for a controller that answers: " << why.detail << '\n'
              << std::flush;
  } else if (now >= *wait.until) {
    co_return Error{Errc::timed_out,
                    "no controller has answered for " +
                        std::to_string(controller_wait_max / std::chrono::seconds(1)) +
                        " s: " + why.detail};
  }
  co_return co_await sleep(std::chrono::milliseconds(250));
}

Task<kafka::Client*> ClusterClient::leader_of(PartitionInfo partition) {
  if (!brokers_.contains(partition.leader)) {
    co_return error_of(ErrorCode::leader_not_available,
                       "partition " + std::to_string(partition.partition) + " has no leader now");
  }
  co_return co_await broker(partition.leader);
}

}  // namespace millrace::kernel::cli
