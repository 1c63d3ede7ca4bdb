// What the leader of a partition knows of its replicas: how far each has come, which of them are in
// sync, and which set it has asked the controller for. Until the answer to that is known, both sets
// may hold: what counts for the high watermark is all that is in either (KIP-497).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <millrace/types.h>

namespace millrace::kernel {

/// What the cluster says of a partition that this broker leads.
struct Leadership {
  Epoch leader_epoch;
  std::int32_t partition_epoch = 0;
  std::vector<std::int32_t> replicas;
  std::vector<std::int32_t> in_sync;
  bool unclean = false;  ///< it was not in sync: what it has not got is lost
};

/// When a follower is out of sync.
struct LagLimits {
  Duration time = std::chrono::seconds(30);  ///< replica.lag.time.max.ms
  std::int64_t messages = 0;                 ///< replica.lag.max.messages; 0: as many as they be
};

/// Another in-sync set that is wanted.
struct WantedInSync {
  std::int32_t partition_epoch = 0;  ///< of the state that it was made from
  std::vector<std::int32_t> in_sync;
  std::vector<std::int64_t> broker_epochs;  ///< place by place; -1: not known
};

/// Of one leadership.  [partition's shard]
class ReplicaSet {
 public:
  ReplicaSet(std::int32_t self, const Leadership& leadership, Offset epoch_start, MonoTime now);

  /// The cluster says something newer: what was asked for is done, or in vain.
  void update(const Leadership& leadership, MonoTime now);
  std::int32_t partition_epoch() const noexcept { return partition_epoch_; }
  bool has(std::int32_t replica) const noexcept;
  /// As the cluster knows it: what min.insync.replicas is about.
  const std::vector<std::int32_t>& in_sync() const noexcept { return in_sync_; }

  /// `replica` has fetched from `from`: it has all below. `broker_epoch` is that of its lease.
  void fetched(std::int32_t replica, std::int64_t broker_epoch, Offset from, Offset log_end,
               MonoTime now);
  /// Where the log of `replica` begins, as it has told. Whether that is news.
  bool begins(std::int32_t replica, Offset log_start) noexcept;
  /// The lowest start of all logs that are in sync; none while that is not known of one.
  Offset low_watermark(Offset own_start) const noexcept;
  /// Below it every replica that may be in sync has all; none while that is not known of one.
  Offset replicated(Offset written_end) const noexcept;

  /// Who has all there is has caught up. Answers the set that is to be asked for, if it is another
  /// one: without who is behind for too long, with who has reached `high_watermark` and the start
  /// of the leader's epoch. Nothing while an earlier one is under way.
  std::optional<WantedInSync> review(LagLimits limits, Offset log_end, Offset high_watermark,
                                     MonoTime now);
  /// As review(), of one that has just fetched and may join.
  bool may_join(std::int32_t replica, Offset high_watermark) const noexcept;

  /// The set without this leader, whose log takes no more: one of the others shall lead. None where
  /// there is no other.
  std::optional<WantedInSync> without_self() const;

  /// The set is being asked for, until update() or withdraw().
  void propose(const WantedInSync& wanted);
  bool proposing() const noexcept { return proposed_.has_value(); }
  /// It was refused for good.
  void withdraw() noexcept { proposed_.reset(); }
  const std::optional<WantedInSync>& proposed() const noexcept { return proposed_; }

 private:
  struct Follower {
    std::int32_t id = -1;
    std::int64_t broker_epoch = -1;
    Offset log_end;         // none: it has not fetched from this leader
    Offset log_start;       // likewise
    MonoTime caught_up{};   // when it last had all there was
    MonoTime fetched{};     // its last fetch,
    Offset end_at_fetched;  // and where the log ended then
  };

  const Follower* find(std::int32_t replica) const noexcept;
  Follower* find(std::int32_t replica) noexcept;
  bool in_sync(std::int32_t replica) const noexcept;
  bool counts(std::int32_t replica) const noexcept;
  static bool lags(const Follower& follower, LagLimits limits, Offset log_end, MonoTime now);

  std::int32_t self_;
  Offset epoch_start_;
  std::int32_t partition_epoch_ = 0;
  std::vector<std::int32_t> in_sync_;
  std::vector<Follower> followers_;
  std::optional<WantedInSync> proposed_;
};

}  // namespace millrace::kernel
