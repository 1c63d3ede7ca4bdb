// Reads cold log files again, slowly, and says what a disk has spoilt before somebody needs it.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include <millrace/observe.h>

#include "kernel/broker/broker_parts.h"
#include "kernel/broker/partitions.h"
#include "kernel/partition/rate_limit.h"
#include "kernel/partition/scrub.h"

namespace millrace::kernel {

/// One for all shards, which share its rate.  [any thread; run() on its shard]
class Scrubber {
 public:
  Scrubber(const BrokerParts& parts, const BrokerConfig& config);

  /// Of one file, so many corrupt batches are told each; of the others, how many there are.
  static constexpr std::size_t told_max = 16;

  /// Goes over the segments of the shard's partitions that nothing is appended to any more, again
  /// and again, until the shard's background ends.
  Task<> run(ShardState& state);

 private:
  /// What is corrupt in a file. It is told once, not by each pass.
  struct Spoilt {
    std::int64_t batches = 0;
    std::vector<std::uint64_t> told;  ///< where the first of them begin
  };
  using SpoiltFiles = std::map<Offset, Spoilt>;  // by base
  using Known = std::map<TopicPartition, SpoiltFiles>;
  struct Segment {
    TopicPartition partition;
    SegmentInfo info;
    FileRange range;  ///< keeps the file readable
  };
  /// What a look at one file adds to what the one before has found.
  struct Look {
    const Spoilt before;
    Spoilt now;
  };

  Task<> pass(ShardState& state, Known* known);
  Task<> look_at(ShardState& state, TopicPartition id, SpoiltFiles* files);
  Task<> look_at(ShardState& state, Segment segment, Look* look);
  /// Not where it is kept in no file, or has gone.
  Task<bool> open(ShardState& state, Segment* segment, Look* look);
  void note(const Segment& segment, const CorruptBatch& corrupt, Look* look);
  void tell(const Segment& segment, const CorruptBatch& corrupt) const;

  Environment& environment_;
  const Log log_;
  const std::int64_t bytes_per_second_;
  const Duration interval_;
  RateLimit limit_;
  Gauge& corrupt_;
};

}  // namespace millrace::kernel
