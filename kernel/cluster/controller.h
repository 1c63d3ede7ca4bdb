// The one broker that changes what the cluster agrees on: it decides who leads, writes that through
// coordination, and tells every broker. Each broker stands for election; one is elected, in an
// epoch that fences those before it (kernel/cluster/fenced_writes.h).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <millrace/admin.h>
#include <millrace/coordination.h>
#include <millrace/environment.h>
#include <millrace/observe.h>
#include <millrace/peers.h>

#include "kernel/cluster/cluster_state.h"
#include "kernel/cluster/update_sender.h"

namespace millrace::kernel {

/// Outlives the controller.
struct ControllerParts {
  Environment& environment;
  Coordination& coordination;
  UpdateTarget& target;
  Log log;
  Metrics& metrics;
  std::int32_t id = -1;                         ///< of our broker
  std::map<std::string, std::string> defaults;  ///< `[defaults]`
};

class ControllerTerm;

/// Of topics that are changed together: one whose keys cannot be written holds up no other.
struct TopicsChanged {
  std::vector<Result<>> each;  ///< place by place
  UpdateSender::Moment moment = 0;
};

/// [control thread]. What it answers while another broker is the controller is Errc::fenced.
class Controller {
 public:
  /// Whoever holds it is the only one to change something.
  struct Turn {
    Gate::Pass pass;
    Mutex::Held held;
  };

  explicit Controller(ControllerParts parts);
  ~Controller();

  /// Stands for election, and is the controller whenever it is elected. Ends with Errc::fenced when
  /// the session is over, with whatever keeps its first term from beginning, or with close(). Our
  /// lease is held.
  Task<> run();
  /// Ends run(), and lets others be elected.
  Task<> close();

  bool active() const noexcept;
  Task<Turn> turn();
  /// The configuration of this broker has been read again.
  void set_defaults(std::map<std::string, std::string> defaults);

  // In a turn. What they answer is the moment for told(); what they have written stays written.
  const ClusterState& state() const;
  Task<TopicsChanged> add_topics(std::vector<TopicState> topics);
  /// `topic` as it shall be, with more partitions than before.
  Task<UpdateSender::Moment> grow_topic(TopicState topic);
  /// Takes the partitions from `count` on away again.
  Task<UpdateSender::Moment> shrink_topic(std::string name, std::size_t count);
  /// From now on nobody knows them. Their logs go, and last their keys, when every replica's broker
  /// has said so, those that are down when they are back.
  Task<TopicsChanged> erase_topics(std::vector<std::string> names);
  bool being_erased(const std::string& name) const;

  // Without a turn.
  /// All live brokers, or those of them that have replicas of `topics`, know what was changed.
  using Topics = std::vector<std::shared_ptr<const TopicState>>;
  Task<> told(UpdateSender::Moment moment, Topics topics = {});
  /// What a broker could not do of what it was told of `topic`'s partitions from `first` on.
  std::vector<ReplicaFailure> failures_of(const TopicState& topic, std::int32_t first = 0) const;
  /// Completes when the topic's keys are gone, or when all live brokers have erased their logs.
  Task<> erased(std::string name);

  Task<std::vector<InSyncChanged>> change_in_sync(std::int32_t broker, std::int64_t broker_epoch,
                                                  std::vector<InSyncChange> changes);
  Task<LeadersMoved> shut_down(std::int32_t broker, std::int64_t broker_epoch);

  /// See Admin, which has the same calls. Errors of the whole are not in the answers.
  Task<ClusterOutcome> elect_leaders(ElectionRequest request);
  Task<ClusterOutcome> reassign(ReassignmentRequest request);
  Result<ReassignmentsListed> list_reassignments(
      const std::optional<std::vector<TopicPartitions>>& topics) const;

 private:
  struct Election {
    std::int32_t epoch;
    Version version;
  };
  Task<Election> stand();

  ControllerParts parts_;
  std::unique_ptr<ControllerTerm> term_;
  std::unique_ptr<CancelScope> waiting_;
  bool closing_ = false;
  bool has_served_ = false;  // a failure is worth another try
  Gate running_;
};

}  // namespace millrace::kernel
