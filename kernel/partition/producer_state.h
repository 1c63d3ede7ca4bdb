// What a partition remembers of idempotent and transactional producers: enough to tell a repeated
// batch from a new one, to refuse one that is out of order, and to know which transactions are open
// (KIP-98, KIP-360).
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <variant>
#include <vector>

#include <millrace/admin.h>
#include <millrace/batch.h>
#include <millrace/error_code.h>
#include <millrace/result.h>
#include <millrace/types.h>

#include "kernel/partition/aborted_transactions.h"
#include "kernel/partition/transaction_marker.h"

namespace millrace::kernel {

/// What is known of a producer last: `last_offset` of its last batch, none where a marker has begun
/// its epoch and nothing has followed.
struct ProducerEnd {
  std::int16_t epoch = -1;
  Offset last_offset;
};
using ProducerEnds = std::unordered_map<std::int64_t, ProducerEnd>;

/// [partition's shard]
class ProducerStates {
 public:
  /// A producer may have so many requests under way; each may have to be recognised again.
  static constexpr std::size_t batches_kept_max = 5;

  struct Duplicate {
    Offset base_offset;
    Offset last_offset;
  };
  struct Refused {
    ErrorCode error = ErrorCode::none;
    std::string message;
  };
  struct Accepted {};
  using Verdict = std::variant<Accepted, Duplicate, Refused>;

  /// What to do with a batch that has a producer id. Changes nothing.
  Verdict check(const BatchHeader& header) const;
  /// Takes note of an appended batch; `header` has its offsets. Batches without producer id and
  /// control batches are passed over.
  void append(const BatchHeader& header, Timestamp now);
  /// Why a marker may not be appended: a later epoch of its producer, or a later coordinator, has
  /// written here since. Changes nothing.
  std::optional<Refused> check_marker(std::int64_t producer_id, std::int16_t producer_epoch,
                                      const TransactionMarker& marker) const;
  /// Takes note of an appended marker, which ends its producer's transaction; answers the row of
  /// one that was aborted.
  std::optional<AbortedRow> end_transaction(const BatchHeader& header,
                                            const TransactionMarker& marker, Timestamp now);
  /// Where the first transaction begins whose end cannot be read yet: it is open, or its marker is
  /// not below the high watermark. None: there is no such.
  Offset first_unstable() const;
  /// Transactions whose markers are below `high_watermark` are over.
  void settle(Offset high_watermark);
  /// Forgets producers that have sent nothing for `idle_ms` and have no open transaction.
  void expire(Timestamp now, std::int64_t idle_ms);
  void clear();
  std::size_t producers() const noexcept { return producers_.size(); }
  /// All of them, by id.
  std::vector<ProducerInfo> describe() const;
  /// What the log must keep so that all of them are known from it.
  ProducerEnds ends() const;

  /// Kafka's `.snapshot` format, version 1: the last batch and the open transaction of each
  /// producer.
  Buffer snapshot() const;
  /// Replaces the state; its producers count as seen `now`. Errc::corrupt leaves it empty.
  Result<> restore(Bytes snapshot, Timestamp now);

 private:
  struct Batch {
    std::int32_t first_sequence = -1;
    std::int32_t last_sequence = -1;
    Offset last_offset;
    std::int32_t offset_delta = 0;
  };
  struct Producer {
    std::int16_t epoch = -1;
    std::deque<Batch> batches;  // newest last; none when a marker has begun its epoch
    Timestamp newest_record;
    Timestamp last_seen;
    std::int32_t coordinator_epoch = -1;  // of the last marker
    Offset transaction_first;             // none: no transaction is open

    std::int32_t last_sequence() const {
      return batches.empty() ? -1 : batches.back().last_sequence;
    }
  };

  Producer& in_epoch(const BatchHeader& header, Timestamp now);
  void restore_row(const std::byte* row, Timestamp now);

  std::unordered_map<std::int64_t, Producer> producers_;
  std::set<Offset> open_;             // where open transactions begin
  std::map<Offset, Offset> decided_;  // marker -> beginning, above the high watermark
};

/// Sequences run from 0 to 2^31-1 and begin again.
std::int32_t sequence_after(std::int32_t sequence, std::int32_t steps) noexcept;

}  // namespace millrace::kernel
