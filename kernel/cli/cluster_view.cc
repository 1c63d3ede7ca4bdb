#include "kernel/cli/cluster_view.h"

#include <algorithm>
#include <utility>

#include <boost/json/array.hpp>
#include <boost/json/value_from.hpp>

#include <millrace/configs.h>
#include <millrace/kafka/describe_configs.h>
#include <millrace/kafka/incremental_alter_configs.h>
#include <millrace/kafka/list_partition_reassignments.h>

#include "kernel/cluster/reassignment.h"
#include "kernel/partition/config_options.h"

namespace millrace::kernel::cli {

namespace {

std::string joined(const std::vector<std::int32_t>& numbers) {
  std::string text;
  for (const auto number : numbers) text += (text.empty() ? "" : ",") + std::to_string(number);
  return text;
}

TopicState state_of(const TopicInfo& info) {
  TopicState topic;
  topic.name = info.topic.name;
  topic.id = info.topic.id;
  topic.partitions.resize(info.partitions.size());
  for (const auto& one : info.partitions) {
    if (one.partition < 0 || static_cast<std::size_t>(one.partition) >= topic.partitions.size()) {
      continue;
    }
    auto& partition = topic.partitions[static_cast<std::size_t>(one.partition)];
    partition.leader = one.leader;
    partition.replicas = one.replicas;
    partition.in_sync = one.in_sync;
  }
  return topic;
}

Task<> add_moves(ClusterClient& cluster, ClusterState& state) {
  kafka::ListPartitionReassignmentsRequest request;
  request.topics.reset();
  const auto code_of = [](const auto& answer) { return ErrorCode{answer.error_code}; };
  MR_CO_TRY(const auto answer, co_await cluster.ask_controller(std::move(request), code_of));
  if (const ErrorCode code{answer.error_code}; code != ErrorCode::none) {
    co_return error_of(code, answer.error_message.value_or("moves cannot be listed"));
  }
  for (const auto& listed : answer.topics) {
    const auto* known = state.find(std::string_view(listed.name));
    if (!known) continue;
    auto topic = *known;
    for (const auto& one : listed.partitions) {
      const auto at = static_cast<std::size_t>(one.partition_index);
      if (one.partition_index < 0 || at >= topic.partitions.size()) continue;
      topic.partitions[at].replicas = one.replicas;
      topic.partitions[at].adding = one.adding_replicas;
      topic.partitions[at].removing = one.removing_replicas;
    }
    state.put(std::move(topic));
  }
  co_return {};
}

// As they are worth to the controller.
Task<std::map<std::string, std::string>> settings_of(ClusterClient& cluster, std::int32_t id) {
  kafka::DescribeConfigsRequest request;
  auto& asked = request.resources.emplace_back();
  asked.resource_type = static_cast<std::int8_t>(ConfigResourceType::broker);
  const auto name = std::to_string(id);
  asked.resource_name = name;
  auto& keys = asked.configuration_keys.emplace();
  for (const auto* key :
       {balance_settings::enable, balance_settings::moves_max, balance_settings::drain_brokers}) {
    keys.emplace_back(key);
  }
  MR_CO_TRY(auto* broker, co_await cluster.broker(id));
  MR_CO_TRY(const auto answer, co_await broker->call(std::move(request)));
  if (answer.results.size() != 1) co_return Error{Errc::corrupt, "the broker answered nothing"};
  const auto& result = answer.results.front();
  if (const ErrorCode code{result.error_code}; code != ErrorCode::none) {
    co_return error_of(code, result.error_message.value_or("settings of broker " + name));
  }
  std::map<std::string, std::string> settings;
  for (const auto& config : result.configs) {
    settings.emplace(config.name, config.value.value_or(""));
  }
  co_return std::move(settings);
}

}  // namespace

Task<ClusterView> view_of(ClusterClient& cluster) {
  ClusterView view;
  MR_CO_TRY(const auto told, co_await cluster.metadata(std::nullopt));
  view.state.cluster_id = told.cluster_id;
  for (const auto& broker : told.brokers) {
    view.state.brokers[broker.id] = {.id = broker.id, .rack = broker.rack};
    view.addresses.emplace(broker.id, broker.address);
  }
  for (const auto& topic : told.topics) {
    if (topic.error == ErrorCode::none) view.state.put(state_of(topic));
  }
  MR_CO_CHECK(co_await add_moves(cluster, view.state));
  view.state.controller_id = cluster.controller_id();
  MR_CO_TRY(auto settings, co_await settings_of(cluster, view.state.controller_id));
  view.balancing = settings[balance_settings::enable] != "false";
  view.moves_max = settings[balance_settings::moves_max];
  view.drained = brokers_in(settings[balance_settings::drain_brokers]);
  co_return std::move(view);
}

std::map<std::int32_t, BrokerShare> ClusterView::shares() const {
  std::map<std::int32_t, BrokerShare> shares;
  for (const auto& [id, broker] : state.brokers) shares[id].lives = true;
  for (const auto& [name, topic] : state.topics) {
    for (const auto& one : topic->partitions) {
      for (const auto broker : one.replicas) ++shares[broker].replicas;
      for (const auto broker : one.adding) ++shares[broker].coming;
      for (const auto broker : one.removing) ++shares[broker].going;
      if (one.leader >= 0) ++shares[one.leader].leads;
    }
  }
  for (auto& [id, share] : shares) share.drained = drained.contains(id);
  return shares;
}

std::vector<TopicPartition> ClusterView::moving() const {
  std::vector<TopicPartition> moving;
  for (const auto& [name, topic] : state.topics) {
    for (std::size_t at = 0; at < topic->partitions.size(); ++at) {
      if (!is_reassigning(topic->partitions[at])) continue;
      moving.push_back({name, static_cast<std::int32_t>(at)});
    }
  }
  return moving;
}

const PartitionState& ClusterView::partition(const TopicPartition& id) const {
  const auto* topic = state.find(std::string_view(id.topic));
  return topic->partitions[static_cast<std::size_t>(id.partition)];
}

// By the controller's own rules. How long a broker has been gone is not told: it is taken to come
// back, and nothing is made even until it does.
BalancePlan ClusterView::left() const {
  BalanceTerms terms;
  bool all_there = true;
  for (const auto& [id, share] : shares()) {
    if (share.drained) {
      terms.unwanted.insert(id);
    } else if (share.lives) {
      terms.willing.insert(id);
    } else {
      all_there = false;
    }
  }
  const auto moves = moving();
  terms.fixed.insert(moves.begin(), moves.end());
  const bool even = all_there && (!moves.empty() || is_uneven(state, terms));
  return plan_balance(state, terms, even);
}

std::size_t ClusterView::stuck_on(std::int32_t broker) const {
  const auto plan = left();
  const auto found = plan.stuck.find(broker);
  return found == plan.stuck.end() ? 0 : found->second;
}

std::string move_text(const PartitionState& state) {
  if (state.adding.empty()) return "away from " + joined(state.removing);
  if (state.removing.empty()) return "also to " + joined(state.adding);
  return joined(state.removing) + " -> " + joined(state.adding);
}

boost::json::object move_object(const TopicPartition& id, const PartitionState& state) {
  return {{"topic", id.topic},
          {"partition", id.partition},
          {"adding", boost::json::value_from(state.adding)},
          {"removing", boost::json::value_from(state.removing)},
          {"in_sync", boost::json::value_from(state.in_sync)}};
}

Task<> change_for_all(ClusterClient& cluster, std::string name, std::int8_t operation,
                      std::string value) {
  kafka::IncrementalAlterConfigsRequest request;
  auto& resource = request.resources.emplace_back();
  resource.resource_type = static_cast<std::int8_t>(ConfigResourceType::broker);
  auto& config = resource.configs.emplace_back();
  config.name = name;
  config.config_operation = operation;
  config.value = value;
  const auto code_of = [](const auto& answer) {
    return ErrorCode{answer.responses.empty() ? std::int16_t{0}
                                              : answer.responses.front().error_code};
  };
  MR_CO_TRY(const auto answer, co_await cluster.ask_any(std::move(request), code_of));
  if (answer.responses.size() != 1) co_return Error{Errc::corrupt, "the broker answered nothing"};
  const auto& altered = answer.responses.front();
  if (const ErrorCode code{altered.error_code}; code != ErrorCode::none) {
    co_return error_of(code, altered.error_message.value_or(name));
  }
  co_return {};
}

}  // namespace millrace::kernel::cli
