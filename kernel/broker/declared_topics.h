// Topics that the configuration declares: made where they are missing, once as many brokers live
// as each shall have replicas. One that is there stays as it is; where it differs, the log says so.
// It is the same whether a start reads them or a reload.
#pragma once

#include <cstdint>
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

/// What a declaration has come to when it was first tried.
struct DeclaredTopic {
  enum class State {
    made,
    as_declared,  ///< was there
    differs,      ///< was there and stays as it is; `detail` says in what
    waits,        ///< is made later
    refused,      ///< cannot be made
  };
  std::string name;
  State state = State::waits;
  std::string detail{};
};

/// [control thread]
class DeclaredTopics {
 public:
  using Create = std::function<Task<TopicCreated>(NewTopic topic)>;

  /// `create`: by the controller, wherever it is.
  DeclaredTopics(BrokerParts& parts, const BrokerConfig& config, ClusterKeeper& cluster,
                 Create create)
      : parts_(parts), config_(config), cluster_(cluster), create_(std::move(create)) {}

  /// Once the broker is announced, and whenever others are declared: these count from here on.
  /// Completes when each has been tried, or after some seconds, with what was found out by then;
  /// what could not be made yet is made later. What cannot be made at all is told, and keeps no
  /// broker from starting.
  Task<std::vector<DeclaredTopic>> open(std::vector<NewTopic> topics);
  /// Begins no more, and waits for what is being made.
  Task<> close();

 private:
  using Tried = std::vector<DeclaredTopic>;

  Task<> make(std::vector<NewTopic> topics, Resolver<Tried> tried);
  Task<Tried> try_all();
  Task<DeclaredTopic> try_one(NewTopic topic);
  DeclaredTopic outcome_of(const TopicCreated& created, const NewTopic& declared);
  Task<> wait_for_brokers();
  std::size_t replicas_of(const NewTopic& topic) const;
  bool can_be_made(const NewTopic& topic, const ClusterState& cluster) const;
  DeclaredTopic compared(const TopicState& topic, const NewTopic& declared);
  /// Whether this has not been told of the topic before.
  bool is_news(const std::string& topic) { return told_.insert(topic).second; }

  BrokerParts& parts_;
  const BrokerConfig& config_;
  ClusterKeeper& cluster_;
  Create create_;
  std::vector<NewTopic> missing_;
  std::set<std::string> told_;
  std::uint64_t declared_ = 0;  // how often; who makes those of before makes no more
  Mutex trying_;                // whoever makes topics, and changes missing_
  bool closing_ = false;
  CancelScope background_;  // pauses alone: what is being made comes to its end
  Gate running_;
};

}  // namespace millrace::kernel
