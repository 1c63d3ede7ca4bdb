// A group: how far it has come, and who is in it. The offsets are the same for everybody; the
// members speak one of two protocols, and each of these is a Membership.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "offsets.h"
#include "records.h"
#include "turn.h"

namespace millrace::consumer_groups {

/// The members of one group and what they have agreed on. Made by the first record that says so
/// (evolve), or, where it is classic, by the first member that joins.
///
/// What a request may find wrong is answered here; a ReplyTo that is not answered at once is kept.
/// Soft state changes in any call that gets a Turn; what records say changes in evolve() alone.
class Membership {
 public:
  enum class Type { classic, consumer };

  virtual ~Membership() = default;
  virtual Type type() const noexcept = 0;
  virtual std::string_view protocol_type() const noexcept = 0;  ///< "consumer"
  virtual std::string_view state() const noexcept = 0;          ///< "Stable"
  virtual std::size_t size() const noexcept = 0;                ///< members
  /// Nobody is in it: it may be removed, and its offsets may expire.
  virtual bool empty() const noexcept = 0;
  /// No record and no member needs it any more: the coordinator drops it.
  virtual bool gone() const noexcept = 0;

  // ---- requests; the group is known to be one of this type ----
  virtual void join(Join& ask, ReplyTo to, Turn& turn) = 0;
  virtual void sync(SyncGroupRequest& request, ReplyTo to, Turn& turn) = 0;
  virtual void heartbeat(const GroupHeartbeat& request, ReplyTo to, Turn& turn) = 0;
  virtual void leave(const LeaveGroupRequest& request, ReplyTo to, Turn& turn) = 0;
  virtual void describe(GroupDescribed& out) const = 0;

  // ---- offsets ----
  /// Whether the member may commit; counts as a sign of life where the protocol says so.
  virtual ErrorCode check_commit(const OffsetCommitRequest& request, Turn& turn) = 0;
  /// The same for one partition of a request that has passed check_commit().
  virtual ErrorCode check_commit_of(const OffsetCommitRequest& /*request*/, const Uuid& /*topic*/,
                                    std::int32_t /*partition*/) const {
    return ErrorCode::none;
  }
  virtual ErrorCode check_fetch(const GroupOffsetsQuery& query) const = 0;
  /// Whether somebody reads the topic now: its offsets are neither deleted nor expired.
  virtual bool subscribed_to(std::string_view topic) const = 0;
  /// KIP-211: from when on the retention of an offset counts. Nothing: offsets do not expire now.
  virtual std::optional<Timestamp> retention_from(Timestamp committed) const = 0;

  // ---- life ----
  /// What ends the membership in the log. Only when it is empty.
  virtual Result<> emit_removal(Turn& turn) = 0;
  /// A record of its group, of a kind that belongs to its type. No value: a tombstone.
  virtual Result<> evolve(RecordKind kind, Bytes key, std::optional<Bytes> value,
                          const EventInfo& info) = 0;
  /// The records that evolve() would need to make what it has made.
  virtual void snapshot(SnapshotWriter& out) const = 0;
  /// The log is replayed: members get fresh timers.
  virtual void loaded(Turn& turn) = 0;
  /// timer_of(group) has come.
  virtual void timer(Turn& turn) = 0;
  virtual void cluster_changed(Turn& /*turn*/) {}
};

/// What metrics say of a group now.
struct Counted {
  Membership::Type type = Membership::Type::classic;
  std::string_view state;  ///< a literal; empty: it is not counted yet
  std::size_t members = 0;
  std::optional<Timestamp> rebalancing_since;
};

struct Group {
  explicit Group(std::string name) : id(std::move(name)) {}

  const std::string id;
  Offsets offsets;
  std::unique_ptr<Membership> members;  ///< none: nobody has ever joined, or all is forgotten
  Counted counted;

  bool is(Membership::Type type) const noexcept { return members && members->type() == type; }
};

}  // namespace millrace::consumer_groups
