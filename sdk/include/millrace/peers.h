// How brokers of one cluster talk to each other. A transport that can carry it has the extension
// PeerLink; the kernel calls other brokers through it, and the transport hands what arrives from
// other brokers to Broker::fetch, Broker::epoch_ends and to the kernel's ClusterService.
//
// What the cluster agrees on flows one way: the controller alone changes it, writes it through
// coordination, and pushes it to every broker as a ClusterUpdate. An update is level-triggered: it
// says how things are, not what happened, so that one that is lost or repeated does no harm.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <millrace/admin.h>
#include <millrace/broker.h>
#include <millrace/environment.h>
#include <millrace/task.h>

namespace millrace {

struct ClusterPartition {
  std::int32_t partition = -1;
  std::int32_t leader = -1;  ///< none: -1
  Epoch leader_epoch{0};
  std::int32_t partition_epoch = 0;  ///< one more at each change of any of this (KIP-497)
  std::vector<std::int32_t> replicas;
  std::vector<std::int32_t> in_sync;
  std::vector<std::int32_t> adding;    ///< of `replicas`, while a reassignment runs (KIP-455)
  std::vector<std::int32_t> removing;  ///< of `replicas`, likewise
};

struct ClusterTopicState {
  std::string name;
  Uuid id;
  std::map<std::string, std::string> configs;  ///< overrides, by Kafka's names
  std::int32_t partitions_total = 0;
  std::vector<ClusterPartition> partitions;  ///< those that changed; all where the update is full
};

struct ClusterBroker {
  std::int32_t id = -1;
  std::int64_t epoch = -1;  ///< of its lease
  std::string rack;
  std::map<std::string, Address> endpoints;  ///< by listener
};

struct ClusterUpdate {
  std::int32_t controller = -1;
  std::int32_t controller_epoch = -1;  ///< an older one than the receiver has seen is refused
  std::int64_t receiver_epoch = -1;    ///< of the lease that the update is meant for
  std::string cluster_id;
  /// What is not in a full one does not exist; logs are not removed for that.
  bool full = false;
  std::vector<ClusterBroker> brokers;  ///< always all that live
  std::vector<ClusterTopicState> topics;
  std::vector<TopicName> deleted;  ///< their logs are removed, by id
  /// All settings changed while brokers run: by a broker's id, "<default>", or "group GROUP".
  std::map<std::string, std::map<std::string, std::string>> broker_configs;
};

/// What the receiver of an update could not do.
struct ReplicaFailure {
  TopicPartition partition;
  ErrorCode error = ErrorCode::none;
  std::string message;
};
struct ClusterUpdated {
  ErrorCode error = ErrorCode::none;     ///< STALE_CONTROLLER_EPOCH, STALE_BROKER_EPOCH
  std::vector<ReplicaFailure> failures;  ///< offline here
};

/// A leader wants another in-sync set (KIP-497).
struct InSyncChange {
  TopicPartition partition;  ///< on arrival, no name where the receiver knows no topic of this id
  Uuid topic_id;
  Epoch leader_epoch;
  std::int32_t partition_epoch = 0;  ///< of the state that the change was made from
  std::vector<std::int32_t> in_sync;
  /// Of the leases of `in_sync`, place by place, as their fetches have told: one of an earlier life
  /// of a broker is refused (KIP-903). -1, or empty: not known.
  std::vector<std::int64_t> in_sync_epochs;
};
struct InSyncChanged {
  TopicPartition partition;
  ErrorCode error = ErrorCode::none;
  /// What holds now, when there is no error. From a controller on another broker it comes without
  /// `replicas`, `adding` and `removing`, which the answer to AlterPartition has no room for: empty
  /// there means that they are as they were.
  ClusterPartition state;
};

/// Of a broker that goes down in order.
struct LeadersMoved {
  ErrorCode error = ErrorCode::none;      ///< NOT_CONTROLLER, STALE_BROKER_EPOCH
  std::vector<TopicPartition> remaining;  ///< what it still leads
};

/// Another broker. A call has no deadline of its own: a peer that hangs answers nothing, so callers
/// set one (with_deadline).  [the shard that connected]
class Peer {
 public:
  virtual ~Peer() = default;
  /// As a follower, with its replica_id. Topics go by id, and are answered by id alone, without
  /// names; records are slices of the answer's frame. Errc::unsupported for a topic without id.
  virtual Task<FetchAnswer> fetch(FetchRequest request) = 0;
  virtual Task<std::vector<TopicEpochEnds>> epoch_ends(std::int32_t replica,
                                                       std::vector<TopicEpochQuery> topics) = 0;
  /// From the controller.
  virtual Task<ClusterUpdated> update(ClusterUpdate update) = 0;
  // To the controller.
  virtual Task<std::vector<InSyncChanged>> change_in_sync(std::int32_t broker,
                                                          std::int64_t broker_epoch,
                                                          std::vector<InSyncChange> changes) = 0;
  virtual Task<std::vector<TopicCreated>> create_topics(std::vector<NewTopic> topics) = 0;
  virtual Task<std::vector<TopicDeleted>> delete_topics(std::vector<TopicName> topics) = 0;
  /// Leaders move away from `broker`.
  virtual Task<LeadersMoved> shut_down(std::int32_t broker, std::int64_t broker_epoch) = 0;
};

/// What Plugin::extension(extension_id) of a transport plugin answers.
class PeerLink {
 public:
  static constexpr const char* extension_id = "millrace.transport.peer/1";
  virtual ~PeerLink() = default;
  /// Connects from the shard that calls, and answers there. An error of the connection ends all its
  /// calls with Errc::closed; whoever called connects again.
  virtual Task<std::unique_ptr<Peer>> connect(Address address) = 0;
};

/// What other brokers ask of us. Offered by the kernel to transports.  [connection's shard]
class ClusterService {
 public:
  static constexpr const char* service_id = "millrace.cluster/1";
  virtual ~ClusterService() = default;
  virtual Task<ClusterUpdated> update(ClusterUpdate update) = 0;
  virtual Task<std::vector<InSyncChanged>> change_in_sync(std::int32_t broker,
                                                          std::int64_t broker_epoch,
                                                          std::vector<InSyncChange> changes) = 0;
  virtual Task<LeadersMoved> shut_down(std::int32_t broker, std::int64_t broker_epoch) = 0;
};

}  // namespace millrace
