// Topics made, grown and erased, as clients ask for it and as the controller does it: what may be,
// what is answered. Where this broker is not the controller all is refused with NOT_CONTROLLER.
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
#include "kernel/cluster/topics.h"

namespace millrace::kernel {

/// [control thread]
class TopicAdmin {
 public:
  TopicAdmin(BrokerParts& parts, const BrokerConfig& config, ClusterKeeper& cluster)
      : parts_(parts), config_(config), cluster_(cluster) {}

  /// What became of topics that are changed together, place by place. Refusals are in the answers.
  template <class Answer>
  using Each = std::vector<Result<Answer>>;

  /// Who lived when a request came: parts of it that are carried out later are planned with them
  /// too. Empty before the first one.
  using LivedThen = std::shared_ptr<std::map<std::int32_t, BrokerState>>;
  /// Known on every shard of this broker, and with the brokers of all replicas that live, when it
  /// is answered.
  Task<Each<TopicCreated>> create_all(std::vector<NewTopic> wanted, bool validate_only,
                                      LivedThen lived = nullptr);
  Task<Each<TopicDeleted>> erase_all(std::vector<TopicName> names);
  Task<TopicDeleted> erase(TopicName name);
  Task<TopicGrown> grow(TopicGrowth wanted, bool validate_only);
  /// One after the other.
  Task<Each<TopicGrown>> grow_all(std::vector<TopicGrowth> wanted, bool validate_only);

  /// As create_all(), by the controller wherever it is.
  Task<TopicCreated> create_anywhere(NewTopic wanted);

 private:
  // What is written and not told of yet; each with the place of its answer.
  template <class Topic>
  struct Written {
    std::vector<std::pair<std::size_t, Topic>> topics;
    UpdateSender::Moment moment = 0;
  };
  using Made = Written<std::shared_ptr<const TopicState>>;
  using Erased = Written<std::string>;

  Task<Made> make(std::vector<NewTopic> wanted, bool validate_only, LivedThen lived,
                  Each<TopicCreated>& created);
  Planned plan(const NewTopic& wanted, const ClusterState& cluster, const ConfigSources& sources,
               const LivedThen& lived, TopicCreated& created);
  Planned plan_as_then(const NewTopic& wanted, const ClusterState& cluster,
                       const ConfigSources& sources, const LivedThen& lived);
  Task<> take_back(std::shared_ptr<const TopicState> topic, ReplicaFailure failure);
  Task<Erased> begin_erasing(Each<TopicDeleted>& deleted);
  Task<std::vector<std::string>> why_kept(std::vector<std::string> topics);
  std::shared_ptr<const std::vector<ConfigEntry>> describe_new(const ConfigMap& overrides,
                                                               const ConfigSources& sources);

  BrokerParts& parts_;
  const BrokerConfig& config_;
  ClusterKeeper& cluster_;
  // Of topics without settings of their own; made for settings that are no longer these.
  std::weak_ptr<const std::vector<ConfigEntry>> plain_configs_;
  ConfigMap plain_made_for_;
};

}  // namespace millrace::kernel
