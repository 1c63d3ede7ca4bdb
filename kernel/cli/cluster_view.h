// The whole of a cluster as its brokers tell it by the Kafka protocol: who has what, what moves,
// and what is set for moving by itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <boost/json/object.hpp>

#include "kernel/cli/cluster_client.h"
#include "kernel/cluster/balance.h"
#include "kernel/cluster/cluster_state.h"

namespace millrace::kernel::cli {

struct BrokerShare {
  bool lives = false;
  bool drained = false;
  std::size_t replicas = 0;
  std::size_t leads = 0;
  std::size_t coming = 0;  ///< of `replicas`, not there yet
  std::size_t going = 0;   ///< of `replicas`, about to go
};

struct ClusterView {
  ClusterState state;
  std::map<std::int32_t, Address> addresses;
  bool balancing = true;  ///< not paused
  std::string moves_max =
      "";  ///< partitions at a time; empty: brokers that move nothing themselves
  std::set<std::int32_t> drained;

  std::map<std::int32_t, BrokerShare> shares() const;
  /// Those whose replicas move now.
  std::vector<TopicPartition> moving() const;
  const PartitionState& partition(const TopicPartition& id) const;
  /// What the controller would begin after that, and what it cannot.
  BalancePlan left() const;
  /// Replicas that a drained broker keeps, since too few others live.
  std::size_t stuck_on(std::int32_t broker) const;
};

Task<ClusterView> view_of(ClusterClient& cluster);

/// "4 from 1": who gets a replica, and who gives one away.
std::string move_text(const PartitionState& state);
boost::json::object move_object(const TopicPartition& id, const PartitionState& state);

/// Changes what is set for all brokers. `operation` as IncrementalAlterConfigs has it.
Task<> change_for_all(ClusterClient& cluster, std::string name, std::int8_t operation,
                      std::string value);

}  // namespace millrace::kernel::cli
