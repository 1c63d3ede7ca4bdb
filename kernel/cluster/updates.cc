#include "kernel/cluster/updates.h"

#include <algorithm>
#include <utility>

namespace millrace::kernel {

namespace {

bool has(const PartitionState& state, std::int32_t broker) {
  return std::ranges::find(state.replicas, broker) != state.replicas.end();
}

std::int32_t count_of(const TopicState& topic) {
  return static_cast<std::int32_t>(topic.partitions.size());
}

void take_brokers(ClusterState& state, const ClusterUpdate& update) {
  state.brokers.clear();
  for (const auto& broker : update.brokers) {
    BrokerState known{.id = broker.id, .epoch = broker.epoch, .rack = broker.rack};
    known.endpoints.insert(broker.endpoints.begin(), broker.endpoints.end());
    state.brokers.emplace(broker.id, std::move(known));
  }
}

class Taking {
 public:
  Taking(ClusterState& state, std::int32_t self) : state_(state), self_(self) {}

  void topic(const ClusterTopicState& told) {
    const auto* known = state_.find(std::string_view(told.name));
    if (known && known->id != told.id) {
      drop(*known, false);
      known = nullptr;
    }
    TopicState topic;
    if (known) topic = *known;
    topic.name = told.name;
    topic.id = told.id;
    topic.configs = told.configs;
    topic.partitions.resize(static_cast<std::size_t>(std::max(told.partitions_total, 0)));
    for (const auto& one : told.partitions) {
      if (one.partition < 0 || one.partition >= told.partitions_total) continue;
      auto& partition = topic.partitions[static_cast<std::size_t>(one.partition)];
      const bool was_ours = has(partition, self_);
      if (known && was_ours && one.partition_epoch < partition.partition_epoch) continue;
      partition = from_update(one);
      if (has(partition, self_)) {
        effect_.ours.push_back({told.name, one.partition});
      } else if (was_ours) {
        effect_.gone.push_back({{told.name, one.partition}, told.id, true});
      }
    }
    if (known) {
      for (auto at = count_of(topic); at < count_of(*known); ++at) {
        if (!has(known->partitions[static_cast<std::size_t>(at)], self_)) continue;
        effect_.gone.push_back({{told.name, at}, told.id, true});
      }
    }
    state_.put(std::move(topic));
  }

  // Also where it is not known: its logs may be there from before a start.
  void erase(const TopicName& deleted) {
    const auto* known = state_.find(std::string_view(deleted.name));
    if (known && known->id == deleted.id) drop(*known, true);
  }

  void drop_all_but(const std::set<std::string>& names) {
    std::vector<std::shared_ptr<const TopicState>> unknown;
    for (const auto& [name, topic] : state_.topics) {
      if (!names.contains(name)) unknown.push_back(topic);
    }
    for (const auto& topic : unknown) drop(*topic, false);
  }

  void all_ours() {
    effect_.ours.clear();
    for (const auto& [name, topic] : state_.topics) ours(*topic);
  }

  UpdateEffect effect() { return std::move(effect_); }

 private:
  void ours(const TopicState& topic) {
    for (std::int32_t at = 0; at < count_of(topic); ++at) {
      if (has(topic.partitions[static_cast<std::size_t>(at)], self_)) {
        effect_.ours.push_back({topic.name, at});
      }
    }
  }
  void drop(const TopicState& topic, bool erase) {
    for (std::int32_t at = 0; at < count_of(topic); ++at) {
      if (!has(topic.partitions[static_cast<std::size_t>(at)], self_)) continue;
      effect_.gone.push_back({{topic.name, at}, topic.id, erase});
    }
    const auto name = topic.name;
    state_.remove(name);
  }

  ClusterState& state_;
  std::int32_t self_;
  UpdateEffect effect_;
};

}  // namespace

ClusterPartition to_update(const PartitionState& state, std::int32_t partition) {
  return {.partition = partition,
          .leader = state.leader,
          .leader_epoch = state.leader_epoch,
          .partition_epoch = state.partition_epoch,
          .replicas = state.replicas,
          .in_sync = state.in_sync,
          .adding = state.adding,
          .removing = state.removing};
}

PartitionState from_update(const ClusterPartition& partition) {
  return {.leader = partition.leader,
          .leader_epoch = partition.leader_epoch,
          .partition_epoch = partition.partition_epoch,
          .replicas = partition.replicas,
          .in_sync = partition.in_sync,
          .adding = partition.adding,
          .removing = partition.removing};
}

ClusterTopicState to_update(const TopicState& topic) {
  ClusterTopicState told{.name = topic.name,
                         .id = topic.id,
                         .configs = topic.configs,
                         .partitions_total = count_of(topic),
                         .partitions = {}};
  told.partitions.reserve(topic.partitions.size());
  for (std::int32_t at = 0; at < count_of(topic); ++at) {
    told.partitions.push_back(to_update(topic.partitions[static_cast<std::size_t>(at)], at));
  }
  return told;
}

ClusterTopicState to_update(const TopicState& topic, const std::set<std::int32_t>& partitions) {
  ClusterTopicState told{.name = topic.name,
                         .id = topic.id,
                         .configs = topic.configs,
                         .partitions_total = count_of(topic),
                         .partitions = {}};
  for (const auto at : partitions) {
    if (at >= count_of(topic)) continue;
    told.partitions.push_back(to_update(topic.partitions[static_cast<std::size_t>(at)], at));
  }
  return told;
}

ClusterBroker to_update(const BrokerState& broker) {
  ClusterBroker told{.id = broker.id, .epoch = broker.epoch, .rack = broker.rack, .endpoints = {}};
  told.endpoints.insert(broker.endpoints.begin(), broker.endpoints.end());
  return told;
}

void note_gone(ClusterState& state, const std::map<std::int32_t, BrokerState>& before,
               MonoTime now) {
  for (const auto& [id, broker] : before) {
    if (!state.brokers.contains(id)) state.gone.insert_or_assign(id, GoneBroker{broker, now});
  }
  std::erase_if(state.gone, [&](const auto& entry) { return state.brokers.contains(entry.first); });
}

UpdateEffect take_in(ClusterState& state, const ClusterUpdate& update, std::int32_t self) {
  state.controller_id = update.controller;
  take_brokers(state, update);
  Taking taking(state, self);
  for (const auto& deleted : update.deleted) taking.erase(deleted);
  if (update.full) {
    std::set<std::string> names;
    for (const auto& topic : update.topics) names.insert(topic.name);
    taking.drop_all_but(names);
  }
  for (const auto& topic : update.topics) taking.topic(topic);
  std::map<std::string, std::map<std::string, std::string>, std::less<>> configs(
      update.broker_configs.begin(), update.broker_configs.end());
  if (configs != state.broker_configs) {
    state.broker_configs = std::move(configs);
    taking.all_ours();
  }
  return taking.effect();
}

}  // namespace millrace::kernel
