// Which records of a log belong to transactions that were aborted: what a reader of committed
// records must leave out (KIP-98).
#pragma once

#include <cstdint>
#include <vector>

#include <millrace/broker.h>
#include <millrace/buffer.h>
#include <millrace/result.h>
#include <millrace/types.h>

namespace millrace::kernel {

/// A row of Kafka's `.txnindex`.
struct AbortedRow {
  std::int64_t producer_id = -1;
  Offset first;
  Offset last;         ///< its marker
  Offset last_stable;  ///< the log's, once this one was ended
  friend bool operator==(const AbortedRow&, const AbortedRow&) = default;
};

/// [partition's shard]
class AbortedTransactions {
 public:
  /// Rows come in the order of their markers.
  void add(const AbortedRow& row) { rows_.push_back(row); }
  /// Those with records in [from, limit).
  std::vector<AbortedTransaction> within(Offset from, Offset limit) const;
  bool ends_behind(Offset from) const { return !rows_.empty() && rows_.back().last >= from; }
  /// The log now begins at `start`.
  void trim_before(Offset start);
  /// Forgets those whose markers are at `from` or behind it.
  void truncate_from(Offset from);
  /// Forgets those with these markers, which rise.
  void forget(const std::vector<Offset>& markers);
  const std::vector<AbortedRow>& rows() const noexcept { return rows_; }

  /// The `.txnindex` of the segment [base, next): rows whose markers are in it.
  Buffer encode(Offset base, Offset next) const;
  /// Adds the rows of one. Errc::corrupt adds none.
  Result<> add_all(Bytes file);

 private:
  std::vector<AbortedRow> rows_;  // `last` rises
};

}  // namespace millrace::kernel
