// Keeps on disk what a start after a crash cannot find in the logs: high watermarks and log starts.
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include <millrace/shard.h>

#include "kernel/broker/broker_parts.h"
#include "kernel/broker/partitions.h"

namespace millrace::kernel {

/// [control thread]
class OffsetCheckpoints {
 public:
  OffsetCheckpoints(BrokerParts& parts, PartitionMap& partitions)
      : parts_(parts), partitions_(partitions) {}

  /// From now on high watermarks that have moved are written every so often, all that is kept once
  /// a minute.
  void start(Duration high_watermark_interval = std::chrono::seconds(5));
  /// Log starts as they are now are durable when it completes; many who ask share a write.
  Task<> write_log_starts();
  /// Refuses further writes. `write`: makes the last one, which only who has opened all partitions
  /// may: the files forget what is not open, and are another's where the folder could not be
  /// locked.
  Task<> close(bool write);

 private:
  Task<> loop(Duration interval);
  Task<> write_all();
  Task<> write_high_watermarks();
  Task<> write_high_watermarks_in_turn();
  Task<> write_log_starts_in_turn();

  BrokerParts& parts_;
  PartitionMap& partitions_;
  Mutex writing_;                                 // what was read later is written later
  std::vector<PartitionOffset> high_watermarks_;  // as written last
  std::uint64_t log_starts_asked_ = 0;
  std::uint64_t log_starts_written_ = 0;  // the last of those who asked whose log start is durable
  CancelScope background_;
  Gate running_;
};

}  // namespace millrace::kernel
