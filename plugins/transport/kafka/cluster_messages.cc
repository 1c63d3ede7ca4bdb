#include "cluster_messages.h"

#include <cstddef>
#include <map>
#include <string>
#include <utility>

#include "handlers/names.h"

namespace millrace::kafka_transport {
namespace {

using UpdateConfigs = std::vector<kafka::ClusterUpdateRequest::Config>;
using Configs = std::map<std::string, std::string>;

UpdateConfigs write_configs(const Configs& configs) {
  UpdateConfigs written;
  written.reserve(configs.size());
  for (const auto& [name, value] : configs) {
    auto& config = written.emplace_back();
    config.name = name;
    config.value = value;
  }
  return written;
}

Configs read_configs(const UpdateConfigs& written) {
  Configs configs;
  for (const auto& config : written) configs.emplace(config.name, config.value);
  return configs;
}

kafka::ClusterUpdateRequest::Broker write_broker(const ClusterBroker& broker) {
  kafka::ClusterUpdateRequest::Broker written;
  written.broker_id = broker.id;
  written.broker_epoch = broker.epoch;
  written.rack = broker.rack;
  for (const auto& [listener, address] : broker.endpoints) {
    auto& endpoint = written.endpoints.emplace_back();
    endpoint.listener = listener;
    endpoint.host = address.host;
    endpoint.port = address.port;
  }
  return written;
}

ClusterBroker read_broker(const kafka::ClusterUpdateRequest::Broker& written) {
  ClusterBroker broker{.id = written.broker_id,
                       .epoch = written.broker_epoch,
                       .rack = std::string(written.rack),
                       .endpoints = {}};
  for (const auto& endpoint : written.endpoints) {
    broker.endpoints.emplace(endpoint.listener, Address{std::string(endpoint.host),
                                                        static_cast<std::uint16_t>(endpoint.port)});
  }
  return broker;
}

kafka::ClusterUpdateRequest::Partition write_partition(const ClusterPartition& partition) {
  kafka::ClusterUpdateRequest::Partition written;
  written.partition_index = partition.partition;
  written.leader_id = partition.leader;
  written.leader_epoch = partition.leader_epoch.value;
  written.partition_epoch = partition.partition_epoch;
  written.replicas = partition.replicas;
  written.isr = partition.in_sync;
  written.adding_replicas = partition.adding;
  written.removing_replicas = partition.removing;
  return written;
}

kafka::ClusterUpdateRequest::Topic write_topic(const ClusterTopicState& topic) {
  kafka::ClusterUpdateRequest::Topic written;
  written.name = topic.name;
  written.topic_id = topic.id;
  written.configs = write_configs(topic.configs);
  written.partitions_total = topic.partitions_total;
  written.partitions.reserve(topic.partitions.size());
  for (const auto& partition : topic.partitions) {
    written.partitions.push_back(write_partition(partition));
  }
  return written;
}

ClusterTopicState read_topic(const kafka::ClusterUpdateRequest::Topic& written) {
  ClusterTopicState topic{.name = std::string(written.name),
                          .id = written.topic_id,
                          .configs = read_configs(written.configs),
                          .partitions_total = written.partitions_total,
                          .partitions = {}};
  topic.partitions.reserve(written.partitions.size());
  for (const auto& partition : written.partitions) {
    topic.partitions.push_back({.partition = partition.partition_index,
                                .leader = partition.leader_id,
                                .leader_epoch = {partition.leader_epoch},
                                .partition_epoch = partition.partition_epoch,
                                .replicas = partition.replicas,
                                .in_sync = partition.isr,
                                .adding = partition.adding_replicas,
                                .removing = partition.removing_replicas});
  }
  return topic;
}

kafka::AlterPartitionRequest::Partition write_change(const InSyncChange& change) {
  kafka::AlterPartitionRequest::Partition written;
  written.partition_index = change.partition.partition;
  written.leader_epoch = change.leader_epoch.value;
  written.partition_epoch = change.partition_epoch;
  for (std::size_t at = 0; at < change.in_sync.size(); ++at) {
    auto& member = written.new_isr_with_epochs.emplace_back();
    member.broker_id = change.in_sync[at];
    if (at < change.in_sync_epochs.size()) member.broker_epoch = change.in_sync_epochs[at];
  }
  return written;
}

InSyncChange read_change(const kafka::AlterPartitionRequest::Topic& topic,
                         const kafka::AlterPartitionRequest::Partition& written) {
  InSyncChange change{
      .partition = {std::string(topic.topic_name), written.partition_index},
      .topic_id = topic.topic_id,
      .leader_epoch = {written.leader_epoch},
      .partition_epoch = written.partition_epoch,
      .in_sync = written.new_isr,
      .in_sync_epochs = {},
  };
  for (const auto& member : written.new_isr_with_epochs) {
    change.in_sync.push_back(member.broker_id);
    change.in_sync_epochs.push_back(member.broker_epoch);
  }
  return change;
}

/// The place in `changes` that an answer at `place` is for.
std::size_t asked_at(const InSyncChanged& changed, const std::vector<InSyncChange>& changes,
                     const std::map<TopicPartition, std::size_t>& places, std::size_t place) {
  const auto named = places.find(changed.partition);
  if (named != places.end()) return named->second;
  return place < changes.size() ? place : 0;
}

}  // namespace

kafka::ClusterUpdateRequest write_update(const ClusterUpdate& update) {
  kafka::ClusterUpdateRequest written;
  written.controller_id = update.controller;
  written.controller_epoch = update.controller_epoch;
  written.receiver_epoch = update.receiver_epoch;
  written.cluster_id = update.cluster_id;
  written.full = update.full;
  for (const auto& broker : update.brokers) written.brokers.push_back(write_broker(broker));
  written.topics.reserve(update.topics.size());
  for (const auto& topic : update.topics) written.topics.push_back(write_topic(topic));
  for (const auto& topic : update.deleted) {
    auto& deleted = written.deleted_topics.emplace_back();
    deleted.name = topic.name;
    deleted.topic_id = topic.id;
  }
  for (const auto& [broker, configs] : update.broker_configs) {
    auto& config = written.broker_configs.emplace_back();
    config.broker = broker;
    config.configs = write_configs(configs);
  }
  return written;
}

ClusterUpdate read_update(const kafka::ClusterUpdateRequest& asked) {
  ClusterUpdate update{.controller = asked.controller_id,
                       .controller_epoch = asked.controller_epoch,
                       .receiver_epoch = asked.receiver_epoch,
                       .cluster_id = std::string(asked.cluster_id),
                       .full = asked.full,
                       .brokers = {},
                       .topics = {},
                       .deleted = {},
                       .broker_configs = {}};
  for (const auto& broker : asked.brokers) update.brokers.push_back(read_broker(broker));
  update.topics.reserve(asked.topics.size());
  for (const auto& topic : asked.topics) update.topics.push_back(read_topic(topic));
  for (const auto& topic : asked.deleted_topics) {
    update.deleted.push_back(topic_name(topic.name, topic.topic_id));
  }
  for (const auto& config : asked.broker_configs) {
    update.broker_configs.emplace(config.broker, read_configs(config.configs));
  }
  return update;
}

kafka::ClusterUpdateResponse write_updated(const ClusterUpdated& updated) {
  kafka::ClusterUpdateResponse response;
  response.error_code = code_of(updated.error);
  for (const auto& failure : updated.failures) {
    auto& written = response.failures.emplace_back();
    written.topic = failure.partition.topic;
    written.partition_index = failure.partition.partition;
    written.error_code = code_of(failure.error);
    written.error_message = failure.message;
  }
  return response;
}

ClusterUpdated read_updated(const kafka::ClusterUpdateResponse& response) {
  ClusterUpdated updated{.error = static_cast<ErrorCode>(response.error_code), .failures = {}};
  for (const auto& failure : response.failures) {
    updated.failures.push_back({.partition = {std::string(failure.topic), failure.partition_index},
                                .error = static_cast<ErrorCode>(failure.error_code),
                                .message = std::string(failure.error_message)});
  }
  return updated;
}

kafka::AlterPartitionRequest write_changes(std::int32_t broker, std::int64_t broker_epoch,
                                           const std::vector<InSyncChange>& changes) {
  kafka::AlterPartitionRequest request;
  request.broker_id = broker;
  request.broker_epoch = broker_epoch;
  std::map<Uuid, std::size_t> places;
  for (const auto& change : changes) {
    const auto [at, added] = places.emplace(change.topic_id, request.topics.size());
    if (added) request.topics.emplace_back().topic_id = change.topic_id;
    request.topics[at->second].partitions.push_back(write_change(change));
  }
  return request;
}

std::vector<InSyncChange> read_changes(const kafka::AlterPartitionRequest& asked) {
  std::vector<InSyncChange> changes;
  for (const auto& topic : asked.topics) {
    for (const auto& partition : topic.partitions) {
      changes.push_back(read_change(topic, partition));
    }
  }
  return changes;
}

kafka::AlterPartitionResponse write_changed(const std::vector<InSyncChanged>& changed,
                                            const std::vector<InSyncChange>& changes) {
  kafka::AlterPartitionResponse response;
  if (changes.empty()) return response;
  std::map<TopicPartition, std::size_t> places;
  for (std::size_t at = 0; at < changes.size(); ++at) {
    if (!changes[at].partition.topic.empty()) places.emplace(changes[at].partition, at);
  }
  std::map<std::pair<Uuid, std::string_view>, std::size_t> topics;
  for (std::size_t at = 0; at < changed.size(); ++at) {
    const auto& one = changed[at];
    const auto& asked = changes[asked_at(one, changes, places, at)];
    const std::pair topic(asked.topic_id, std::string_view(asked.partition.topic));
    const auto [to, added] = topics.emplace(topic, response.topics.size());
    if (added) {
      auto& written = response.topics.emplace_back();
      written.topic_name = asked.partition.topic;
      written.topic_id = asked.topic_id;
    }
    auto& partition = response.topics[to->second].partitions.emplace_back();
    partition.partition_index = asked.partition.partition;
    partition.error_code = code_of(one.error);
    partition.leader_id = one.state.leader;
    partition.leader_epoch = one.state.leader_epoch.value;
    partition.isr = one.state.in_sync;
    partition.partition_epoch = one.state.partition_epoch;
  }
  return response;
}

std::vector<InSyncChanged> read_changed(const kafka::AlterPartitionResponse& response,
                                        const std::vector<InSyncChange>& changes) {
  std::map<std::pair<Uuid, std::int32_t>, const kafka::AlterPartitionResponse::Partition*> found;
  for (const auto& topic : response.topics) {
    for (const auto& partition : topic.partitions) {
      found.emplace(std::pair(topic.topic_id, partition.partition_index), &partition);
    }
  }
  std::vector<InSyncChanged> all;
  all.reserve(changes.size());
  for (const auto& change : changes) {
    auto& changed = all.emplace_back();
    changed.partition = change.partition;
    changed.error = static_cast<ErrorCode>(response.error_code);
    if (changed.error != ErrorCode::none) continue;
    const auto at = found.find(std::pair(change.topic_id, change.partition.partition));
    if (at == found.end()) {
      changed.error = ErrorCode::unknown_server_error;
      continue;
    }
    const auto& partition = *at->second;
    changed.error = static_cast<ErrorCode>(partition.error_code);
    changed.state.partition = partition.partition_index;
    changed.state.leader = partition.leader_id;
    changed.state.leader_epoch = {partition.leader_epoch};
    changed.state.partition_epoch = partition.partition_epoch;
    changed.state.in_sync = partition.isr;
  }
  return all;
}

}  // namespace millrace::kafka_transport
