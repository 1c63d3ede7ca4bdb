// The partitions of one fetch, or of one fetch session, that live on one shard. Each is read when
// there is a reason to: it is new, its offset has moved, it had something to answer last time, or
// it has grown since. Idle partitions cost nothing: each watches its partition until that grows.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include <millrace/broker.h>

#include "kernel/broker/fetch_waiter.h"
#include "kernel/broker/partitions.h"
#include "kernel/partition/partition_watch.h"

namespace millrace::kernel {

/// [the shard that owns the partitions, where it must also be destroyed]
class FetchGroup {
 public:
  /// Names a partition of the fetch, for whoever put it there.
  using Slot = std::uint32_t;
  struct Wanted {
    Slot slot = 0;
    TopicName topic;
    PartitionFetch fetch;
  };
  struct Changes {
    std::vector<Slot> forgotten;
    std::vector<Wanted> wanted;  ///< new, or known with another offset
  };
  struct Found {
    Slot slot = 0;
    PartitionFetched fetched;
    bool news = false;  ///< something that the last answer did not say
  };

  explicit FetchGroup(ShardState& owner) : owner_(owner) {}
  FetchGroup(const FetchGroup&) = delete;
  FetchGroup& operator=(const FetchGroup&) = delete;
  ~FetchGroup() {
    if (wake_up_ != TimerId::none) owner_.shard().unschedule(wake_up_);
  }

  /// Applies `changes`, then reads what there is a reason to read: at most `context.bytes_max`
  /// together, whole batches, those that were last served coming last. `waiter` is notified as soon
  /// as another call may find more, unless another waiter has taken its place.
  Task<std::vector<Found>> read(Changes changes, ReadContext context,
                                std::shared_ptr<FetchWaiter> waiter);

 private:
  struct Read {
    PartitionFetched fetched;
    Offset end;            // to where it could have read
    Duration held_back{};  // how long nothing is sent to this follower
  };
  // What the last answer said of a partition.
  struct Told {
    Offset high_watermark;
    Offset last_stable;
    Offset log_start;
    friend bool operator==(const Told&, const Told&) = default;
  };
  class Item final : public PartitionWatch {
   public:
    Item(FetchGroup& group, Wanted wants) : wanted(std::move(wants)), group_(group) {}
    void on_change(bool readable) override;

    Wanted wanted;
    bool due = false;  // in due_
    std::optional<Told> told;

   private:
    FetchGroup& group_;
  };

  // One reads at a time; those who come meanwhile wait.
  class ReadTurn {
   public:
    explicit ReadTurn(FetchGroup& group) : group_(group) { group_.reading_ = true; }
    ~ReadTurn() {
      group_.reading_ = false;
      group_.read_.notify_all();
    }
    ReadTurn(const ReadTurn&) = delete;
    ReadTurn& operator=(const ReadTurn&) = delete;

   private:
    FetchGroup& group_;
  };

  void apply(Changes changes);
  void make_due(Item& item);
  void wake_waiter();
  void wake_in(Duration time);
  std::shared_ptr<Partition> find(const Item& item, ErrorCode& error) const;
  std::int64_t known_epoch(std::int32_t replica) const;
  Task<Read> read_one(Item& item, ReadContext context);
  bool note(Item& item, const PartitionFetched& fetched) const;

  ShardState& owner_;
  std::unordered_map<Slot, std::unique_ptr<Item>> items_;
  std::deque<Slot> due_;  // to be read next time
  Isolation isolation_ = Isolation::read_uncommitted;
  std::shared_ptr<FetchWaiter> waiter_;
  TimerId wake_up_ = TimerId::none;
  bool reading_ = false;
  Event read_;  // nobody reads any more
};

}  // namespace millrace::kernel
