// The broker's services, over the partitions of all shards. A call arrives on its connection's
// shard; what belongs to other shards is posted to them, one message per shard and request, and
// comes back the same way.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include <millrace/broker.h>
#include <millrace/coordination.h>
#include <millrace/observe.h>
#include <millrace/storage.h>

#include "kernel/broker/partitions.h"
#include "kernel/broker/producer_ids.h"
#include "kernel/cluster/cluster_state.h"

namespace millrace::kernel {

struct BrokerConfig {
  std::int32_t id = 0;
  std::string rack;
  std::size_t memory_bytes = 0;                 ///< for requests in flight, all shards together
  std::map<std::string, std::string> defaults;  ///< `[defaults]`, by Kafka's names
};

/// What the broker is made of; outlives it.
struct BrokerParts {
  Environment& environment;
  Storage& storage;
  Coordination& coordination;
  Codecs codecs;
  Log log;
  Metrics& metrics;
};

class KernelBroker final : public Broker {
 public:
  KernelBroker(BrokerParts parts, BrokerConfig config);
  ~KernelBroker() override;

  /// Joins the cluster and opens our partitions. What is opened is logged.  [control thread]
  Task<> open();
  /// Announces where clients find us; from here on requests are served.  [control thread]
  Task<> announce(std::vector<Endpoint> endpoints);
  /// Ends waiting requests, closes partitions, writes checkpoints.  [control thread]
  Task<> close();

  std::unique_ptr<Session> open_session(const ClientInfo& client) override;
  MemoryBudget& memory(Shard& shard) noexcept override;
  Call<ProduceAnswer> produce(Session& session, ProduceRequest request) override;
  Call<FetchAnswer> fetch(Session& session, FetchRequest request) override;
  Task<ListOffsetsAnswer> list_offsets(Session& session, ListOffsetsRequest request) override;
  Task<MetadataAnswer> metadata(Session& session, MetadataRequest request) override;
  Task<std::vector<TopicCreated>> create_topics(Session& session,
                                                CreateTopicsRequest request) override;
  Task<std::vector<TopicDeleted>> delete_topics(Session& session, std::vector<TopicName> topics,
                                                Duration timeout) override;
  Task<InitProducerIdAnswer> init_producer_id(Session& session,
                                              InitProducerIdRequest request) override;
  void* service(std::string_view) noexcept override { return nullptr; }

  /// For tests: see Partition::hold_high_watermark.  [control thread]
  Task<> hold_high_watermark(TopicPartition partition, bool held);

 private:
  Shard& control() noexcept { return parts_.environment.control(); }
  /// What `[defaults]` says, as checked at the start.
  std::string default_of(const std::string& name, std::string_view fallback) const;
  std::int64_t number_of(const std::string& name, std::int64_t fallback) const;

  // broker.cc  [control thread]
  Task<> load_cluster_id();
  Task<> become_controller();
  Task<> publish();
  Task<> write_checkpoints();
  Task<> checkpoint_loop();
  Task<> warn_of_strays();

  // topic_admin.cc  [control thread]
  Task<Recovery> open_topic(std::shared_ptr<const TopicState> topic);
  Task<> close_topic(std::shared_ptr<const TopicState> topic);
  Task<> remove_topic(std::shared_ptr<const TopicState> topic);
  Task<> finish_deletions();
  Task<TopicCreated> create_topic(NewTopic wanted, bool validate_only);
  Task<TopicDeleted> delete_topic(TopicName name);
  Task<std::int64_t> next_producer_id();
  Task<std::shared_ptr<const ClusterState>> create_missing(ShardState& local,
                                                           std::vector<std::string> names);

  BrokerParts parts_;
  BrokerConfig config_;
  PartitionMap partitions_;
  ProducerIds producer_ids_;

  // [control thread]
  ClusterState cluster_;
  std::int32_t controller_epoch_ = 0;
  std::unique_ptr<Lease> lease_;
  Mutex topic_changes_;
  CancelScope background_;
  Gate running_;  // what close() waits for: the loops of `background_`, changes in flight
};

}  // namespace millrace::kernel
