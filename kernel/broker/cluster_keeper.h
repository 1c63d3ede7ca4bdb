// This broker as a member of its cluster: its lease, its registration, its controller where it is
// that, and what it knows of the cluster: read when it joins, then told by the controller, carried
// out by its replicas and published to every shard.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <millrace/coordination.h>
#include <millrace/shard.h>
#include <millrace/transport.h>

#include "kernel/broker/broker_parts.h"
#include "kernel/broker/cluster_peers.h"
#include "kernel/broker/partitions.h"
#include "kernel/cluster/cluster_state.h"
#include "kernel/cluster/controller.h"
#include "kernel/cluster/lease_clock.h"
#include "kernel/cluster/updates.h"
#include "kernel/replication/replicas.h"

namespace millrace::kernel {

/// [control thread]
class ClusterKeeper final : public UpdateTarget, public InSyncAuthority {
 public:
  ClusterKeeper(BrokerParts& parts, const BrokerConfig& config, PartitionMap& partitions,
                Replicas& replicas, LeaseClock& clock);

  /// Takes a lease and reads what the cluster agrees on. Errc::conflict when the data directory is
  /// another cluster's.
  Task<> join();
  /// Opens the logs of our replicas, which neither lead nor follow yet. One that cannot be opened
  /// is left out, and the others go on; one whose log is missing begins anew. Either is told.
  Task<> open_replicas();
  /// How many those are, once it is known.  [any thread]
  std::size_t replicas_to_open() const noexcept { return to_open_; }
  /// How other brokers are reached. Before announce().
  void connect(PeerLink& link, std::string listener);
  /// Announces where clients find us, and completes when the controller, which may be we, has told
  /// us of the cluster. From here on shards know it.
  Task<> announce(const std::vector<Endpoint>& endpoints);
  /// They find us elsewhere from now on; a session to come announces these as well. Completes when
  /// shards know it. Errc::timed_out: the controller has not told yet, and will.
  Task<> announce_again(std::vector<Endpoint> endpoints);
  /// `[defaults]`, read again: of the settings of this broker, and of what its topics inherit.
  Task<> use_defaults(std::map<std::string, std::string> defaults);
  /// Leaders move to other brokers, for at most `limit`, or as long as the settings of a controlled
  /// shutdown say if that is longer; nothing where there are none.
  Task<> hand_over(Duration limit);
  /// Takes no more updates, is no controller any more, and ends when the last change has.
  Task<> close();
  void leave() noexcept { lease_.reset(); }

  /// What this broker knows.
  ClusterState& state() noexcept { return state_; }
  Controller& controller() noexcept { return controller_; }
  std::int64_t broker_epoch() const noexcept { return lease_ ? lease_->epoch() : -1; }
  /// There is no other broker, and cannot be: the lease never ends.
  bool alone() const noexcept { return alone_; }

  /// What the controller tells.
  Task<ClusterUpdated> take(ClusterUpdate update);
  /// Completes when `known` holds of state(), and is in effect on every shard; Errc::timed_out.
  Task<> until(std::function<bool(const ClusterState&)> known, Duration limit);
  /// By the controller, wherever it is.
  Task<TopicCreated> create_at_controller(NewTopic topic);
  Task<TopicDeleted> erase_at_controller(std::string topic);

  /// The topic is in use by this broker itself: until release_topic(), or the end of our session,
  /// no controller deletes it. `why` is what is told to whoever tries.
  Task<> keep_topic(std::string topic, std::string why);
  Task<> release_topic(std::string topic);
  /// Why it may not be deleted; "" it may. Of all brokers.
  Task<std::string> kept_why(std::string topic);

  Task<ClusterUpdated> update(BrokerState broker, ClusterUpdate update) override;
  Task<std::vector<InSyncChanged>> change_in_sync(std::vector<InSyncChange> changes) override;

 private:
  struct Turn {
    Gate::Pass pass;
    Mutex::Held held;
  };
  Task<Turn> turn();
  Task<> publish();
  Task<> load_cluster_id();
  Task<> check_owner();
  Task<> load_broker_configs();
  Task<> read_state();
  void set_lease(std::unique_ptr<Lease> lease);
  Task<> register_self();
  void set_endpoints(const std::vector<Endpoint>& endpoints);
  Write registration() const;
  std::string kept_key(const std::string& topic) const;
  Task<> feed_clock();
  Task<> keep_membership();
  Task<> rejoin();
  Task<> try_to_hand_over(std::int64_t tries, Duration pause);
  Task<LeadersMoved> ask_to_leave();
  Task<> stop_leading();

  // A replica that could not be opened.
  struct Unopened {
    ReplicaFailure failure;
    MonoTime tried;      // last
    bool known = false;  // it has been opened here before
  };

  std::vector<TopicPartition> replicas_here() const;
  void note_opened(const std::vector<TopicPartition>& tried,
                   const std::vector<ReplicaFailure>& failures);
  std::vector<ReplicaOrder> orders_for(const std::vector<TopicPartition>& ours, bool known);
  Task<std::vector<ReplicaFailure>> open_and_lead(std::vector<ReplicaOrder> orders);
  Task<std::vector<ReplicaFailure>> remove(const ClusterUpdate& update, UpdateEffect effect);
  bool is_elsewhere(const FoundPartition& log) const;
  Address controller_address() const;
  template <class Answer, class Call>
  Task<Answer> ask_controller(Call call);

  BrokerParts& parts_;
  const BrokerConfig& config_;
  PartitionMap& partitions_;
  Replicas& replicas_;
  LeaseClock& clock_;
  ClusterPeers peers_;
  ClusterState state_;
  Controller controller_;
  std::unique_ptr<Lease> lease_;
  bool alone_ = false;
  bool lost_ = false;    // the lease, and no new one yet
  bool joined_ = false;  // a full update has come under this lease
  std::int32_t controller_epoch_ = 0;
  BrokerState self_;
  std::map<std::string, std::string> kept_;  // topics in use here, and why
  std::map<TopicPartition, Unopened> failed_;
  std::atomic<std::size_t> to_open_ = 0;  // by open_replicas()
  Result<> membership_;                   // why it ended
  Event changed_;
  Mutex changes_;
  CancelScope background_;
  Gate running_;
};

}  // namespace millrace::kernel
