// What compaction leaves of a batch: the newest record of each key, tombstones until their time is
// over (KIP-534), nothing of aborted transactions, and the last batch of each producer and of the
// log, if need be without a record. Offsets stay: what goes leaves a gap. Pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>

#include <millrace/batch.h>
#include <millrace/codec.h>
#include <millrace/payload.h>
#include <millrace/storage.h>

#include "kernel/partition/compaction_map.h"
#include "kernel/partition/compaction_transactions.h"
#include "kernel/partition/opening.h"
#include "kernel/partition/producer_state.h"

namespace millrace::kernel {

/// What opens batches, and as how much.
struct BatchOpening {
  Codecs codecs;
  std::size_t opened_max = opened_bytes_max;
  std::size_t set_opened_max = opened_set_bytes_max;  ///< of an entry of an old format
};

/// How far the map has come.
struct MappedBatches {
  Offset next;        ///< behind the last batch whose keys are all in it; none: there is none
  bool full = false;  ///< it takes no more
};

/// Puts the keys of `batches` into `map`, but for those of aborted transactions and for records
/// below `from`. Errc::corrupt names the batch. Reads files.  [a worker]
Result<MappedBatches> map_batches(const Payload& batches, Offset from, const BatchOpening& opening,
                                  TransactionWalk& transactions, OffsetMap& map);

struct CompactionRules {
  Timestamp now;
  std::int64_t delete_retention_ms = 0;
  Offset mapped;               ///< the map knows all records below it; those behind stay
  Offset end;                  ///< of the log: who reads must come so far, so its last batch stays
  ProducerEnds producers;      ///< of the log, as they are now
  bool old_tombstones = true;  ///< of formats V0 and V1, which carry no delete horizon: they stay
};

/// When what a pass at `now` leaves of tombstones and markers may go: delete.retention.ms later.
Timestamp delete_horizon(Timestamp now, std::int64_t delete_retention_ms);

/// A batch, as it is after compaction.
struct CompactedBatch {
  std::optional<BatchParts> parts;   ///< none: nothing is left
  bool changed = false;              ///< it is another one than before
  std::int64_t removed = 0;          ///< records
  std::optional<Timestamp> horizon;  ///< of tombstones or a marker that are left, and may go then
};

/// The walk goes on by this batch, which must be the next one.  [a worker]
Result<CompactedBatch> compact_batch(const Buffer& batch, const CompactionRules& rules,
                                     const BatchOpening& opening, TransactionWalk& transactions,
                                     const OffsetMap& map);

}  // namespace millrace::kernel
