// A fetch that can go on: which partitions it follows, by shard. A request without a session makes
// one for itself; a fetch session (KIP-227) outlives its requests, so that each names only what has
// changed and is answered only with news.
//
// A session lives on one shard and any connection of the broker may continue it: its id says which
// shard, and requests are passed on to that.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <tuple>
#include <vector>

#include <millrace/broker.h>

#include "kernel/broker/fetch_group.h"

namespace millrace::kernel {

/// [its shard]
class FetchSession {
 public:
  /// Follows what `request` names.
  FetchSession(PartitionMap& partitions, ShardState& home, const FetchRequest& request);
  FetchSession(const FetchSession&) = delete;
  FetchSession& operator=(const FetchSession&) = delete;
  ~FetchSession();

  /// Takes over what another request of the session changes.
  void change(const FetchRequest& request);
  /// What there is a reason to answer: of each shard at most `context.bytes_max`.
  Task<std::vector<FetchGroup::Found>> read(ReadContext context, std::shared_ptr<FetchWaiter> wake);
  /// Puts what was found into an answer's shape, partitions in order.
  std::vector<TopicFetched> answer(std::vector<FetchGroup::Found> found) const;

  std::size_t size() const noexcept { return entries_.size() - free_.size(); }
  bool by_topic_id() const noexcept { return by_topic_id_; }
  ShardState& home() const noexcept { return home_; }

  /// Of the cache; id 0 outside of it.
  std::int32_t id = 0;
  std::int32_t epoch = 0;  ///< that the next request must have
  bool of_follower = false;
  MonoTime created{};
  MonoTime last_used{};
  /// Who waits for the session's partitions to grow.
  std::shared_ptr<FetchWaiter> waiter;

 private:
  using Slot = FetchGroup::Slot;
  struct Entry {
    TopicName topic;
    std::int32_t partition = -1;
    std::size_t group = nowhere;
  };
  using Key = std::tuple<std::string, Uuid, std::int32_t>;
  static constexpr std::size_t nowhere = static_cast<std::size_t>(-1);

  Slot slot_of(const TopicName& topic, std::int32_t partition);
  void forget(const TopicName& topic, std::int32_t partition);
  std::size_t group_of(const TopicName& topic, std::int32_t partition) const;
  void place(FetchGroup::Wanted wanted);
  void place_homeless();
  void answer_homeless(std::vector<FetchGroup::Found>& found) const;

  PartitionMap& partitions_;
  ShardState& home_;
  bool by_topic_id_;
  std::vector<Entry> entries_;  // by slot
  std::vector<Slot> free_;
  std::map<Key, Slot> slots_;
  std::vector<std::shared_ptr<FetchGroup>> groups_;  // by shard; null where there is nothing
  std::vector<FetchGroup::Changes> changes_;         // by shard; what the groups do not know yet
  std::map<Slot, FetchGroup::Wanted> homeless_;      // topic ids that nobody knows
  std::size_t first_group_ = 0;
};

}  // namespace millrace::kernel
