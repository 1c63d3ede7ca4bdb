// What the controller tells of the cluster, and how it changes what a broker knows.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <millrace/peers.h>

#include "kernel/cluster/cluster_state.h"

namespace millrace::kernel {

/// `state` as number `partition`.
ClusterPartition to_update(const PartitionState& state, std::int32_t partition);
PartitionState from_update(const ClusterPartition& partition);

/// All of a topic, or those partitions of it.
ClusterTopicState to_update(const TopicState& topic);
ClusterTopicState to_update(const TopicState& topic, const std::set<std::int32_t>& partitions);
ClusterBroker to_update(const BrokerState& broker);

/// What an update has changed for one broker.
struct UpdateEffect {
  /// Partitions with a replica on the broker: those that the update speaks of, or all where
  /// settings of brokers have changed.
  std::vector<TopicPartition> ours;
  /// Those that were on the broker and are not any more.
  struct Gone {
    TopicPartition id;
    Uuid topic_id;
    bool erase = false;
  };
  std::vector<Gone> gone;
};

/// Who was there `before` and is not there now is gone since `now`.
void note_gone(ClusterState& state, const std::map<std::int32_t, BrokerState>& before,
               MonoTime now);

/// Takes an update into what the broker `self` knows. A partition of an older partition epoch than
/// the known one stays as it is.
UpdateEffect take_in(ClusterState& state, const ClusterUpdate& update, std::int32_t self);

}  // namespace millrace::kernel
