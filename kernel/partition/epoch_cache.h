// At which offset each leader epoch of a partition began (KIP-101): what lets replicas and clients
// notice that they hold records which the log no longer has.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <millrace/result.h>
#include <millrace/types.h>

namespace millrace::kernel {

/// [partition's shard]
class EpochCache {
 public:
  struct Entry {
    Epoch epoch;
    Offset start;
    friend bool operator==(const Entry&, const Entry&) = default;
  };

  /// Notes that `epoch` begins at `start`. False when that is nothing new.
  bool assign(Epoch epoch, Offset start);
  /// The epoch of the record at `offset`; none where that is not known.
  Epoch epoch_of(Offset offset) const;
  /// The newest epoch not above `epoch` and where it ends: at the start of the next one, or at
  /// `log_end`. One from before the first that is known ends where that begins. None (-1) for both
  /// when `epoch` is newer than all that is known.
  Entry end_of(Epoch epoch, Offset log_end) const;
  Epoch newest() const { return entries_.empty() ? Epoch{} : entries_.back().epoch; }
  /// The log now begins at `start`; epochs that ended before it are forgotten.
  void trim_before(Offset start);
  /// The log now ends at `end`.
  void truncate_from(Offset end);
  const std::vector<Entry>& entries() const noexcept { return entries_; }

  /// Kafka's `leader-epoch-checkpoint`: version, number of lines, "epoch start" lines.
  std::string checkpoint() const;
  static Result<EpochCache> parse(std::string_view checkpoint);

 private:
  std::vector<Entry> entries_;  // both rising
};

}  // namespace millrace::kernel
