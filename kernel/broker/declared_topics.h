// Topics that the configuration declares: made where they are missing, once as many brokers live
// as each shall have replicas. One that is there stays as it is; where it differs, the log says so.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <millrace/admin.h>
#include <millrace/shard.h>

#include "kernel/broker/broker_parts.h"
#include "kernel/broker/cluster_keeper.h"

namespace millrace::kernel {

/// [control thread]
class DeclaredTopics {
 public:
  using Create = std::function<Task<TopicCreated>(NewTopic topic)>;

  /// `create`: by the controller, wherever it is.
  DeclaredTopics(BrokerParts& parts, const BrokerConfig& config, ClusterKeeper& cluster,
                 Create create)
      : parts_(parts), config_(config), cluster_(cluster), create_(std::move(create)) {}

  /// Begins, once the broker is announced. Completes when each has been tried, or after some
  /// seconds; what could not be made yet is made later. What cannot be made at all is told, and
  /// keeps no broker from starting.
  Task<> open(std::vector<NewTopic> topics);
  /// Begins no more, and waits for what is being made.
  Task<> close();

 private:
  Task<> loop(Resolver<> tried);
  Task<> try_all();
  /// Whether nothing is left to do for it.
  Task<bool> try_one(NewTopic topic);
  bool is_settled(const TopicCreated& created);
  Task<> wait_for_brokers();
  std::size_t replicas_of(const NewTopic& topic) const;
  bool can_be_made(const NewTopic& topic, const ClusterState& cluster) const;
  void tell_differences(const TopicState& topic, const NewTopic& declared);
  /// Whether this has not been told of the topic before.
  bool is_news(const std::string& topic) { return told_.insert(topic).second; }

  BrokerParts& parts_;
  const BrokerConfig& config_;
  ClusterKeeper& cluster_;
  Create create_;
  std::vector<NewTopic> missing_;
  std::set<std::string> told_;
  bool closing_ = false;
  CancelScope background_;  // pauses alone: what is being made comes to its end
  Gate running_;
};

}  // namespace millrace::kernel
