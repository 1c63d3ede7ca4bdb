// How far a group has come in each partition. Hard state: changed by what the log says alone.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include <millrace/aggregate.h>
#include <millrace/types.h>

namespace millrace::consumer_groups {

struct Committed {
  Offset offset;
  Epoch leader_epoch;
  std::string metadata;
  Timestamp committed;
  Timestamp expires;  ///< clients before KIP-211 say how long; none: the broker's retention
  Uuid topic_id;      ///< none: written before there were ids
  Offset logged;      ///< where its record is in __consumer_offsets
};

class Offsets {
 public:
  /// By partition.
  using Topic = std::map<std::int32_t, Committed>;
  using Topics = std::map<std::string, Topic, std::less<>>;

  const Topics& topics() const noexcept { return topics_; }
  const Committed* find(std::string_view topic, std::int32_t partition) const;
  bool empty() const noexcept { return topics_.empty() && pending_.empty(); }

  /// How many partitions the topic has more or less than before: -1, 0 or 1.
  int put(std::string_view topic, std::int32_t partition, Committed committed);
  int erase(std::string_view topic, std::int32_t partition);

  // ---- what a transaction has committed, until it ends (KIP-98, KIP-447) ----
  struct Place {
    std::string topic;
    std::int32_t partition = 0;
    friend auto operator<=>(const Place&, const Place&) = default;
  };
  /// By producer id.
  using Pending = std::map<std::int64_t, std::map<Place, Committed>>;

  const Pending& pending() const noexcept { return pending_; }
  bool is_pending(std::string_view topic, std::int32_t partition) const;
  void put_pending(std::int64_t producer_id, std::string_view topic, std::int32_t partition,
                   Committed committed);
  /// Forgets what the producer's transaction has committed, and returns it.
  std::map<Place, Committed> take_pending(std::int64_t producer_id);

 private:
  Topics topics_;
  Pending pending_;
};

}  // namespace millrace::consumer_groups
