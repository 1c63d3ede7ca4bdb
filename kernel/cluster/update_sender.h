// Tells every broker how the cluster is: for each a queue of one, in which changes merge, so that
// who is slow is told less often and of no less. A broker that is new, or has a new lease, is told
// all; the others what has changed. What was not answered is told again.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <millrace/peers.h>
#include <millrace/shard.h>

#include "kernel/cluster/cluster_state.h"

namespace millrace::kernel {

/// How the controller reaches brokers, its own included.  [control thread]
class UpdateTarget {
 public:
  virtual ~UpdateTarget() = default;
  /// Errors, time-outs too, are tried again.
  virtual Task<ClusterUpdated> update(BrokerState broker, ClusterUpdate update) = 0;
};

/// Is told what brokers answer.  [control thread]
class UpdateListener {
 public:
  virtual ~UpdateListener() = default;
  /// The logs of these topics are not on the broker any more. `failures`: what it could not do of
  /// the whole update, `told`.
  virtual void answered(std::int32_t broker, const ClusterUpdate& told,
                        std::vector<TopicName> erased, std::vector<ReplicaFailure> failures) = 0;
  /// There is a newer controller.
  virtual void deposed() = 0;
};

/// [control thread]
class UpdateSender {
 public:
  /// Counts changes: what was changed before a moment is told with it.
  using Moment = std::uint64_t;

  /// All outlive it; `state` is read when there is something to tell.
  UpdateSender(Shard& control, UpdateTarget& target, UpdateListener& listener,
               const ClusterState& state, std::int32_t controller_epoch)
      : control_(control),
        target_(target),
        listener_(listener),
        state_(state),
        controller_epoch_(controller_epoch) {}

  /// The brokers of the state are other ones: everybody is told.
  void brokers_changed();
  void partition_changed(const std::string& topic, std::int32_t partition);
  /// To one broker, which has not done it yet; nothing has changed.
  void tell_again(std::int32_t broker, const std::vector<TopicPartition>& partitions);
  void topic_changed(const std::string& topic);
  /// Until it answers, the broker is told so.
  void topic_deleted(const TopicName& topic, std::int32_t broker);
  /// Settings of brokers, say.
  void changed() {
    ++now_;
    wake();
  }
  Moment now() const noexcept { return now_; }

  /// Completes when these brokers have been told all that was changed up to `moment`, or are gone.
  /// Errc::closed once this is closed.
  Task<> told(Moment moment, std::set<std::int32_t> brokers);

  /// Ends all sending.
  Task<> close();

 private:
  using Untold = std::map<std::string, std::set<std::int32_t>>;  // partitions; none: all of them
  struct Receiver {
    BrokerState broker;
    bool full = true;
    bool again = false;  // there is something untold that is no news
    Untold untold;
    std::map<std::string, Uuid> deleted;
    Moment told = 0;
    CancelScope scope;
    Event changed;
  };

  Task<> tell(std::shared_ptr<Receiver> to);
  ClusterUpdate next_update(Receiver& to) const;
  static void add_untold(Receiver& to, const std::string& topic, std::int32_t partition);
  static void put_back(Receiver& to, Untold untold);
  void wake();

  Shard& control_;
  UpdateTarget& target_;
  UpdateListener& listener_;
  const ClusterState& state_;
  std::int32_t controller_epoch_;
  Moment now_ = 1;
  std::map<std::int32_t, std::shared_ptr<Receiver>> receivers_;
  Event told_;
  bool closed_ = false;
  Gate running_;
};

}  // namespace millrace::kernel
