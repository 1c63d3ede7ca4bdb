// Topics made, changed and removed: through coordination, on the shards that own their partitions,
// and in what every shard knows of the cluster. One change at a time.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <millrace/admin.h>

#include "kernel/broker/broker_parts.h"
#include "kernel/broker/cluster_keeper.h"
#include "kernel/broker/config_sources.h"
#include "kernel/broker/partitions.h"

namespace millrace::kernel {

/// [control thread]
class TopicAdmin {
 public:
  TopicAdmin(BrokerParts& parts, const BrokerConfig& config, PartitionMap& partitions,
             ClusterKeeper& cluster)
      : parts_(parts), config_(config), partitions_(partitions), cluster_(cluster) {}

  /// Opens the partitions of a topic from number `first` on, each on its shard; the first failure
  /// is answered when all have ended.
  Task<Recovery> open(std::shared_ptr<const TopicState> topic, std::int32_t first = 0);
  /// At the start: a partition that cannot be opened is left out, without a leader, and the others
  /// go on; one whose log is missing begins anew. Either is told.
  Task<Recovery> open_known(std::shared_ptr<const TopicState> topic);
  /// Ends deletions that a stop has interrupted. Before any partition is opened.
  Task<> finish_deletions();

  /// Known on every shard when it is answered. Refusals are in the answer.
  Task<TopicCreated> create(NewTopic wanted, bool validate_only);
  Task<TopicGrown> grow(TopicGrowth wanted, bool validate_only);
  Task<TopicDeleted> erase(TopicName name);

  /// The topic is in use by the broker itself: until release() it is not deleted, and whoever tries
  /// is told why.
  void keep(const std::string& topic, std::string why) {
    kept_.insert_or_assign(topic, std::move(why));
  }
  void release(const std::string& topic) { kept_.erase(topic); }

 private:
  std::shared_ptr<const std::vector<ConfigEntry>> describe_new(const ConfigMap& overrides,
                                                               const ConfigSources& sources);
  std::vector<Pending<Recovery>> begin_opening(const TopicState& topic, std::int32_t first);
  Task<> abandon(std::shared_ptr<const TopicState> topic, std::int32_t first = 0);
  Task<> remove_logs(std::shared_ptr<const TopicState> topic, std::int32_t first = 0);
  Task<> remove(std::shared_ptr<const TopicState> topic);

  BrokerParts& parts_;
  const BrokerConfig& config_;
  PartitionMap& partitions_;
  ClusterKeeper& cluster_;
  std::map<std::string, std::string> kept_;  // why, by name
  // Of topics without settings of their own; made for settings that are no longer these.
  std::weak_ptr<const std::vector<ConfigEntry>> plain_configs_;
  ConfigMap plain_made_for_;
};

}  // namespace millrace::kernel
