// The broker's services, over the partitions of all shards. A call arrives on its connection's
// shard; what belongs to other shards is posted to them, one message per shard and request, and
// comes back the same way.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <millrace/aggregates.h>
#include <millrace/broker.h>

#include "kernel/broker/admin.h"
#include "kernel/broker/broker_parts.h"
#include "kernel/broker/cluster_keeper.h"
#include "kernel/broker/cluster_service.h"
#include "kernel/broker/configs.h"
#include "kernel/broker/declared_topics.h"
#include "kernel/broker/fetch_session_cache.h"
#include "kernel/broker/log_cleaner.h"
#include "kernel/broker/offset_checkpoints.h"
#include "kernel/broker/partitions.h"
#include "kernel/broker/producer_ids.h"
#include "kernel/broker/scrubber.h"
#include "kernel/broker/topic_admin.h"
#include "kernel/cluster/lease_clock.h"
#include "kernel/replication/replicas.h"

namespace millrace::kernel {

class KernelBroker final : public Broker {
 public:
  KernelBroker(BrokerParts parts, BrokerConfig config);
  ~KernelBroker() override;

  /// Joins the cluster and opens our partitions. What is opened is logged.  [control thread]
  Task<> open();
  /// How many partitions are open, and how many open() has to bring to that.  [any thread]
  std::size_t partitions_open() const noexcept { return partitions_.count(); }
  std::size_t partitions_to_open() const noexcept { return cluster_.replicas_to_open(); }
  /// How other brokers are reached: where they listen under `listener`. Before announce().
  /// [control thread]
  void connect(PeerLink& link, std::string listener) {
    cluster_.connect(link, std::move(listener));
  }
  /// Announces where clients find us; from here on requests are served.  [control thread]
  Task<> announce(std::vector<Endpoint> endpoints);
  /// Clients find us elsewhere from now on. Completes when this broker's shards answer so; other
  /// brokers are told by the controller.  [control thread]
  Task<> announce_again(std::vector<Endpoint> endpoints) {
    return cluster_.announce_again(std::move(endpoints));
  }
  /// Lets other brokers lead what we lead, for at most `limit`. Before transports stop.
  /// [control thread]
  Task<> hand_over(Duration limit) { return cluster_.hand_over(limit); }
  /// Ends waiting requests, closes partitions, writes checkpoints.  [control thread]
  Task<> close();

  std::unique_ptr<Session> open_session(const ClientInfo& client) override;
  MemoryBudget& memory(Shard& shard) noexcept override;
  Call<ProduceAnswer> produce(Session& session, ProduceRequest request) override;
  Call<FetchAnswer> fetch(Session& session, FetchRequest request) override;
  Task<ListOffsetsAnswer> list_offsets(Session& session, ListOffsetsRequest request) override;
  Task<std::vector<TopicEpochEnds>> epoch_ends(Session& session,
                                               std::vector<TopicEpochQuery> topics) override;
  Task<MetadataAnswer> metadata(Session& session, MetadataRequest request) override;
  Task<InitProducerIdAnswer> init_producer_id(Session& session,
                                              InitProducerIdRequest request) override;
  Admin& admin() noexcept override { return admin_; }
  Configs& configs() noexcept override { return configs_; }
  void* service(std::string_view id) noexcept override;

  /// What service<S>() answers from now on; outlives this. Before transports listen.
  template <class S>
  void offer(S& service) {
    services_.insert_or_assign(S::service_id, &service);
  }

  /// What else service(id) answers: what a plugin provides.
  void offer_all_of(ServiceProvider& provider) { providers_.push_back(&provider); }

  /// What plugins of kind operators are run on.
  PartitionMap& partitions() noexcept { return partitions_; }
  const BrokerConfig& config() const noexcept { return config_; }
  BrokerParts& parts() noexcept { return parts_; }

  /// A topic that the broker makes for itself, with these settings, when it is needed: clients do
  /// not write to it. Before the broker is announced.  [control thread]
  void own_topic(NewTopic topic);
  /// Makes it where it does not exist, with as many replicas as there are brokers at most.
  /// [control thread]
  Task<TopicCreated> create_own_topic(std::string name);
  /// A name that ends in a dot is a family: for each topic of users there may be one of it, with
  /// the id of theirs in its name, and as many partitions on the same brokers. Makes the one beside
  /// `topic`, or lets it grow.  [control thread]
  Task<TopicCreated> create_beside(std::string family, std::string topic);
  /// Removes those whose topic is gone.  [control thread]
  Task<> erase_orphans(std::string family);

  /// Makes those that are missing, now or later: see DeclaredTopics. Once the broker is announced,
  /// and again when others are declared.  [control thread]
  Task<std::vector<DeclaredTopic>> make_declared(std::vector<NewTopic> topics) {
    return declared_topics_.open(std::move(topics));
  }

  /// `[defaults]` of a configuration that has been read again; what is not looked up anew stays as
  /// it was at the start.  [control thread]
  Task<> use_defaults(std::map<std::string, std::string> defaults) {
    return cluster_.use_defaults(std::move(defaults));
  }

  /// On every shard from now on. Those of before are still used where work has begun: they outlive
  /// this.  [control thread]
  Task<> use(Codecs codecs);

  /// See ClusterKeeper.  [control thread]
  Task<> keep_topic(std::string topic, std::string why) {
    return cluster_.keep_topic(std::move(topic), std::move(why));
  }
  Task<> release_topic(std::string topic) { return cluster_.release_topic(std::move(topic)); }
  Task<TopicDeleted> erase_at_controller(std::string topic) {
    return cluster_.erase_at_controller(std::move(topic));
  }

  /// For tests: see Partition::hold_high_watermark.  [control thread]
  Task<> hold_high_watermark(TopicPartition partition, bool held);

 private:
  Shard& control() noexcept { return parts_.environment.control(); }

  // broker.cc  [control thread]
  Task<> warn_of_strays();
  Task<std::int64_t> next_producer_id();
  Task<TopicCreated> create_own(NewTopic wanted);
  Task<TopicCreated> create_declared(NewTopic declared);

  // metadata.cc
  Task<std::shared_ptr<const ClusterState>> create_missing(ShardState& local,
                                                           std::vector<std::string> names);

  BrokerParts parts_;
  BrokerConfig config_;
  std::map<std::string_view, void*> services_;  // by id
  std::vector<ServiceProvider*> providers_;
  std::map<std::string, NewTopic, std::less<>> own_topics_;
  PartitionMap partitions_;
  std::vector<FetchSessionCache> fetch_sessions_;  // by shard, each touched by that alone
  LeaseClock lease_;
  Replicas replicas_;
  ClusterKeeper cluster_;
  KernelClusterService cluster_service_;
  TopicAdmin topics_;
  DeclaredTopics declared_topics_;
  OffsetCheckpoints checkpoints_;
  LogCleaner cleaner_;
  KernelAdmin admin_;
  KernelConfigs configs_;

  // [control thread]
  bool opened_ = false;  // all partitions are open: what they are at may be noted
  ProducerIds producer_ids_;
  Scrubber scrubber_;
  Gate running_;  // what close() waits for: ids being handed out
};

}  // namespace millrace::kernel
