// A part of an aggregate's log, read and opened, so that its shard has only to hand the events on.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include <millrace/batch.h>
#include <millrace/environment.h>
#include <millrace/payload.h>

#include "kernel/partition/partition.h"
#include "kernel/partition/transaction_marker.h"

namespace millrace::kernel {

/// The most that one batch may grow to: nobody but the broker writes here, and it writes less.
inline constexpr std::size_t records_bytes_max = 128UL << 20;

struct ReplayBatch {
  /// Of formats V0 and V1 only the magic; their messages are in `legacy`.
  BatchHeader header;
  Buffer records;  ///< the record section of a V2 batch, not compressed
  std::optional<TransactionMarker> marker;
  std::vector<LegacyMessage> legacy;
};

struct ReplayStep {
  std::vector<ReplayBatch> batches;
  Offset next;  ///< the first offset behind them
  std::uint64_t bytes = 0;
};

/// Reads files, checks every crc, decompresses. An error names the offset.  [a worker]
Result<ReplayStep> open_step(const Payload& batches, Offset from, const Codecs& codecs);

/// The batches of `partition` from `from` on, about `bytes_max` of them, opened on a worker. None:
/// its end.  [partition's shard]
Task<ReplayStep> read_step(std::shared_ptr<Partition> partition, Offset from,
                           std::uint64_t bytes_max, Codecs codecs, BlockingPool& workers);

}  // namespace millrace::kernel
