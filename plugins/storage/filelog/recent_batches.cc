#include "recent_batches.h"

#include <algorithm>
#include <iterator>

namespace millrace::filelog {

void RecentBatches::add(Offset from, std::span<const BatchParts> batches) {
  if (unread_ >= unread_max) return clear();
  ++unread_;
  for (const auto& parts : batches) {
    if (!take(from, parts)) return clear();
    from = parts.last_offset + 1;
  }
  if (bytes_ > bytes_max) drop_oldest();
  while (memory_.bytes_ > memory_.bytes_max_) memory_.longest_ago_first_.front()->clear();
}

// Message sets of old formats are several entries of the log, and not worth a look at where each
// begins.
bool RecentBatches::take(Offset from, const BatchParts& parts) {
  const auto bytes = parts.header.size() + parts.body.size();
  if (parts.header.empty() || bytes > batch_bytes_max) return false;
  MutableBuffer copy(bytes);
  copy.append(parts.header);
  copy.append(parts.body);
  auto& others = memory_.longest_ago_first_;
  if (batches_.empty()) {
    place_ = others.insert(others.end(), this);
  } else {
    others.splice(others.end(), others, place_);
  }
  batches_.push_back({from, parts.base_offset, parts.last_offset, std::move(copy).freeze()});
  bytes_ += bytes;
  memory_.bytes_ += bytes;
  return true;
}

std::optional<Payload> RecentBatches::read(const ReadRequest& request) const {
  const bool asks = request.from < request.limit;
  if (!asks || batches_.empty() || request.from < batches_.front().from) return std::nullopt;
  auto at = std::ranges::lower_bound(batches_, request.from, {}, &Batch::last);
  if (at == batches_.end()) return std::nullopt;
  Payload found;
  for (; at != batches_.end() && at->base < request.limit; ++at) {
    const bool fits = found.size() + at->bytes.size() <= request.bytes_max;
    if (!fits && !(request.at_least_one && found.empty())) break;
    found.add(at->bytes);
  }
  return found;
}

void RecentBatches::clear() noexcept {
  if (batches_.empty()) return;
  memory_.longest_ago_first_.erase(place_);
  memory_.bytes_ -= std::exchange(bytes_, 0);
  batches_ = {};
}

// Half of them at once: what is left moves to the front. Of those that were just added one stays.
void RecentBatches::drop_oldest() noexcept {
  std::size_t count = 0;
  std::size_t dropped = 0;
  while (bytes_ - dropped > bytes_max / 2) dropped += batches_[count++].bytes.size();
  bytes_ -= dropped;
  memory_.bytes_ -= dropped;
  batches_.erase(batches_.begin(), batches_.begin() + static_cast<std::ptrdiff_t>(count));
}

}  // namespace millrace::filelog
