#include "kernel/partition/compaction_transactions.h"

#include <algorithm>
#include <utility>

namespace millrace::kernel {

TransactionWalk::TransactionWalk(std::vector<AbortedRow> rows, Offset from)
    : rows_(std::move(rows)) {
  std::erase_if(rows_, [from](const AbortedRow& row) { return row.last < from; });
  std::ranges::sort(rows_, {}, &AbortedRow::first);
}

// Of a transaction whose marker is gone nothing is left: what its producer has sent since is
// another one's.
void TransactionWalk::skip_to(Offset start) {
  const auto open = rows_.begin() + static_cast<std::ptrdiff_t>(begun_);
  rows_.erase(std::remove_if(open, rows_.end(),
                             [start](const AbortedRow& row) { return row.last < start; }),
              rows_.end());
  std::erase_if(aborted_, [start](const auto& one) { return one.second.marker < start; });
}

void TransactionWalk::begin_until(Offset last) {
  for (; begun_ < rows_.size() && rows_[begun_].first <= last; ++begun_) {
    const auto& row = rows_[begun_];
    aborted_.try_emplace(row.producer_id, Ongoing{.marker = row.last});
  }
}

bool TransactionWalk::aborted(const BatchHeader& data, bool stays) {
  begin_until(data.last_offset());
  if (!data.transactional()) return false;
  const auto found = aborted_.find(data.producer_id);
  if (found != aborted_.end()) {
    found->second.met = true;
    found->second.stays = found->second.stays || stays;
    return true;
  }
  committed_.insert(data.producer_id);
  return false;
}

TransactionWalk::Marker TransactionWalk::ends(const BatchHeader& control,
                                              const std::optional<TransactionMarker>& marker) {
  begin_until(control.last_offset());
  if (control.record_count == 0) return {.alone = true};
  if (!marker) return {};  // not about transactions: it stays
  const auto found = aborted_.find(control.producer_id);
  if (marker->commit || found == aborted_.end()) {
    return {.alone = committed_.erase(control.producer_id) == 0};
  }
  const auto ended = found->second;
  aborted_.erase(found);
  if (!ended.met) spent_.push_back(ended.marker);
  return {.alone = !ended.met, .indexed = true, .waits = ended.met && !ended.stays};
}

}  // namespace millrace::kernel
