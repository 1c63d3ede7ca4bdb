// What a controller knows and does from its election to its end; see controller.h.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include <millrace/admin.h>

#include "kernel/cluster/balance.h"
#include "kernel/cluster/controller.h"
#include "kernel/cluster/elections.h"
#include "kernel/cluster/fenced_writes.h"
#include "kernel/cluster/gone_brokers.h"
#include "kernel/cluster/known_leases.h"

namespace millrace::kernel {

/// Of what moves by itself. They are nothing where there is no controller.
struct BalanceMetrics {
  explicit BalanceMetrics(Metrics& metrics);
  ~BalanceMetrics();
  BalanceMetrics(const BalanceMetrics&) = delete;
  BalanceMetrics& operator=(const BalanceMetrics&) = delete;

  Gauge& left;
  Gauge& moving;
  Gauge& paused;
  Counter& done;
};

/// [control thread]
class ControllerTerm final : UpdateListener {
 public:
  ControllerTerm(const ControllerParts& parts, std::int32_t epoch, Version version);

  /// Reads all, elects, tells everybody, and goes on until the term ends; answers why it did.
  Task<> serve();
  /// Those of the parts are others now.
  void take_defaults();
  /// Ends the term.
  void resign(Error why);
  bool serving() const noexcept { return serving_; }
  bool has_served() const noexcept { return has_served_; }

  Task<Controller::Turn> turn();
  const ClusterState& state() const noexcept { return state_; }
  UpdateSender& sender() noexcept { return sender_; }

  // controller_topics.cc  [in a turn]
  Task<TopicsChanged> add_topics(std::vector<TopicState> topics);
  Task<UpdateSender::Moment> grow_topic(TopicState topic);
  Task<UpdateSender::Moment> shrink_topic(std::string name, std::size_t count);
  Task<TopicsChanged> erase_topics(std::vector<std::string> names);
  bool being_erased(const std::string& name) const { return erasing_.contains(name); }
  std::vector<ReplicaFailure> failures_of(const TopicState& topic, std::int32_t first) const;
  Task<> erased(std::string name);

  // controller_partitions.cc
  Task<std::vector<InSyncChanged>> change_in_sync(std::int32_t broker, std::int64_t broker_epoch,
                                                  std::vector<InSyncChange> changes);
  Task<LeadersMoved> shut_down(std::int32_t broker, std::int64_t broker_epoch);

  // controller_moves.cc
  Task<ClusterOutcome> elect_leaders(ElectionRequest request);
  Task<ClusterOutcome> reassign(ReassignmentRequest request);
  ReassignmentsListed list_reassignments(
      const std::optional<std::vector<TopicPartitions>>& asked) const;

 private:
  using BrokerIds = std::set<std::int32_t>;
  using Brokers = std::map<std::int32_t, BrokerState>;
  struct PartitionChange {
    std::string topic;
    std::int32_t partition = -1;
    PartitionState state;  // its epoch is that of the state it was made from
  };
  enum class IfItFails {
    forget,  // whoever wanted it may want it again
    again,   // it is kept and written again; nobody else changes it until then
    hold,    // likewise, and who shall not lead any more does not until then
  };
  using Ids = std::set<TopicPartition>;
  struct Unwritten {
    std::map<TopicPartition, PartitionState> decided;  // each with the epoch that is stored
    bool due = false;                                  // something has to be written again
    bool told = false;
    Event wake;
  };
  struct InSyncAsked {
    std::int32_t broker = -1;
    std::int64_t broker_epoch = -1;
    std::vector<InSyncChange> changes;
    std::vector<InSyncChanged> answers;
    Resolver<std::vector<InSyncChanged>> done;
  };
  struct Erasing {
    std::shared_ptr<const TopicState> topic;
    BrokerIds waiting;    // have not said that its logs are gone
    std::string failure;  // why one could not erase them; it is told again with the next update
  };

  enum class Unwanted { unknown, emptied, stuck, empty };  // how far it is with a broker
  struct Balancing {
    explicit Balancing(Metrics& of) : metrics(of) {}

    BalanceMetrics metrics;
    bool look = true;      // something is new: plan anew
    bool even = true;      // and see whether shares are even
    bool evening = false;  // they are made so, until a plan finds nothing to do
    bool has_evened = false;
    bool paused = false;
    std::vector<BalanceMove> plan;                // not begun yet
    std::map<std::int32_t, std::size_t> stuck;    // see BalancePlan
    std::set<TopicPartition> by_users;            // of moving_
    std::set<TopicPartition> begun;               // likewise, by this controller itself
    BrokerIds drained;                            // as the setting says
    std::map<std::int32_t, MonoTime> gone_since;  // brokers that have replicas
    bool brokers_known = false;                   // who lives
    std::map<std::int32_t, Unwanted> told;        // what operators know
    bool woken = false;
    Event wake;
  };

  // What a broker could not open. It is told to try again, less and less often.
  struct Offline {
    std::map<TopicPartition, ReplicaFailure> replicas;
    MonoTime again_at;
    Duration pause{};
  };

  void answered(std::int32_t broker, const ClusterUpdate& told, std::vector<TopicName> erased,
                std::vector<ReplicaFailure> failures) override;
  void deposed() override;

  // controller_term.cc
  Task<> go_on(Task<> (ControllerTerm::*loop)(), std::string name);
  Task<> load();
  Task<Brokers> read_brokers();
  Task<> read_broker_configs();
  Task<> watch_brokers();
  Task<> take_brokers(Brokers brokers);
  Task<> watch_configs();
  Task<> take_config(std::string mark);
  Task<> rebalance();
  std::vector<PartitionChange> moves_back(std::int64_t percentage) const;
  std::string setting(const TopicState& topic, const std::string& name,
                      const std::string& fallback) const;
  std::int64_t number(const std::string& name, std::int64_t fallback) const;

  // controller_writes.cc
  /// In a turn. Answers those of which nothing could be written for now. Errors end the term.
  Task<Ids> write(std::vector<PartitionChange> changes, IfItFails then = IfItFails::forget);
  /// The same with the topics' lists of replicas; tried again where the lists are written.
  Task<Ids> write_replicas(std::vector<PartitionChange> changes);
  Task<> write_leases();
  // Of one topic each.
  void take_written(std::span<PartitionChange> changes, const std::vector<Version>& versions);
  void keep_unwritten(std::span<PartitionChange> changes, IfItFails then);
  /// Says whether it ends the term, and if so ends it; else it is tried again.
  bool is_end(const Error& error);
  Task<> write_again();

  // controller_partitions.cc
  std::optional<Elected> decide(const TopicState& topic, const TopicPartition& id,
                                const PartitionState& state, const BrokerIds& live) const;
  std::vector<PartitionChange> decide_all(const std::vector<BrokerIds>& live_in_turn) const;
  BrokerIds live() const;
  bool offline(std::int32_t broker, const TopicPartition& id) const;
  std::vector<TopicPartition> take_opened(std::int32_t broker, const ClusterUpdate& told,
                                          const std::vector<ReplicaFailure>& failures);
  Task<> take_offline(std::int32_t broker, std::vector<ReplicaFailure> failures,
                      std::vector<TopicPartition> opened);
  Task<> open_again();
  Task<> answer_in_sync();
  Task<> change_in_sync(std::vector<InSyncAsked>& asked);
  InSyncChanged check_in_sync(std::int32_t broker, const InSyncChange& change) const;
  std::vector<TopicPartition> led_by(std::int32_t broker) const;

  // controller_moves.cc
  Usable usable_for(const TopicPartition& id) const;
  const PartitionState* find(const TopicPartition& id) const;
  std::vector<TopicPartitions> all_partitions() const;
  PartitionOutcome elect_one(const TopicPartition& id, ElectionType type,
                             std::vector<PartitionChange>& changes) const;
  PartitionOutcome reassign_one(const TopicPartition& id,
                                std::optional<std::vector<std::int32_t>> wanted,
                                bool factor_may_change,
                                std::vector<PartitionChange>& changes) const;
  PartitionState begin_move(const TopicPartition& id, const PartitionState& state,
                            std::vector<std::int32_t> wanted) const;
  Task<> finish_moves();
  void no_longer_moving(const TopicPartition& id);

  // controller_balance.cc
  Task<> balance();
  /// `look`: something is new that may change what shall move.
  void wake_balance(bool look);
  Task<> balance_once();
  void take_balance_settings();
  Task<> note_absent();
  std::optional<Duration> replace_after() const;
  Duration time_to_next_replacement() const;
  BalanceTerms balance_terms() const;
  void plan_anew();
  Task<> end_evening();
  void tell_plan() const;
  std::int64_t moves_in_flight() const;
  bool can_begin(const BalanceMove& move) const;
  std::vector<PartitionChange> moves_given_up() const;
  PartitionState moved_by_itself(const BalanceMove& move, const PartitionState& state) const;
  std::vector<PartitionChange> leaders_off_drained();
  std::vector<PartitionChange> next_moves();
  void tell_of_unwanted();
  void tell_of_unwanted(std::int32_t broker, Unwanted what, std::size_t replicas,
                        std::size_t stuck) const;

  // controller_topics.cc
  Error not_written(const Error& error);
  void take_added(TopicState topic, const std::vector<Version>& versions);
  Task<> finish_erasing();
  Task<> erase_keys();
  void keys_erased(const std::string& name);
  void begin_erasing(std::shared_ptr<const TopicState> topic);

  const ControllerParts& parts_;
  std::int32_t epoch_;
  FencedWrites writes_;
  KnownLeases known_leases_{writes_};
  GoneBrokers gone_brokers_{writes_};
  ClusterState state_;
  UpdateSender sender_;
  BrokerIds leaving_;                        // in order: they lead only what nobody else can
  std::map<std::int32_t, Offline> offline_;  // by broker
  Event offline_changed_;
  std::vector<InSyncAsked> in_sync_asked_;  // wait for a turn
  std::map<std::string, Erasing> erasing_;
  Unwritten unwritten_;
  std::set<TopicPartition> moving_;  // to other replicas
  Balancing balancing_;
  Event erased_;
  bool serving_ = false;
  bool has_served_ = false;
  Resolver<> end_;
  Pending<> ended_;
  CancelScope background_;
  Mutex changes_;
  Gate running_;
};

}  // namespace millrace::kernel
