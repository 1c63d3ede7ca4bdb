// Which transactional batches compaction finds data of aborted transactions in, and which markers
// have nothing left that they end. Walks a log from one offset on, batch by batch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include <millrace/batch.h>
#include <millrace/types.h>

#include "kernel/partition/aborted_transactions.h"
#include "kernel/partition/transaction_marker.h"

namespace millrace::kernel {

/// [one thread at a time]
class TransactionWalk {
 public:
  /// `rows` are those of the log, in any order; the walk begins at `from`.
  TransactionWalk(std::vector<AbortedRow> rows, Offset from);

  /// The log begins at `start` now, behind where this has come to, perhaps: nothing below follows.
  void skip_to(Offset start);

  /// The next batch, of records. Whether its transaction was aborted. `stays`: the batch does even
  /// so, without a record.
  bool aborted(const BatchHeader& data, bool stays = false);

  struct Marker {
    bool alone = false;    ///< no batch of its transaction was met
    bool indexed = false;  ///< it ends a row of the aborted ones
    bool waits = false;    ///< that, and all of its transaction goes now: then it is alone
  };
  /// The next batch, of control; `marker` as read_marker() says, none also where it has no record.
  Marker ends(const BatchHeader& control, const std::optional<TransactionMarker>& marker);

  /// Markers, by their offsets, whose rows are of no use any more: nothing of what they hide was
  /// met.
  const std::vector<Offset>& spent() const noexcept { return spent_; }

 private:
  struct Ongoing {
    Offset marker;
    bool met = false;
    bool stays = false;  // a batch that was met
  };
  void begin_until(Offset last);

  std::vector<AbortedRow> rows_;  // by where they begin
  std::size_t begun_ = 0;
  std::map<std::int64_t, Ongoing> aborted_;  // by producer
  std::set<std::int64_t> committed_;         // producers, or their transaction is open
  std::vector<Offset> spent_;
};

}  // namespace millrace::kernel
