#include "kernel/partition/epoch_cache.h"

#include <algorithm>
#include <charconv>

namespace millrace::kernel {

namespace {

// Reads one number and the one separator behind it.
template <class T>
bool take_number(std::string_view& text, char separator, T& number) {
  const auto end = text.find(separator);
  if (end == std::string_view::npos) return false;
  const auto digits = text.substr(0, end);
  const auto [stopped, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error != std::errc{} || stopped != digits.data() + digits.size()) return false;
  text.remove_prefix(end + 1);
  return true;
}

}  // namespace

bool EpochCache::assign(Epoch epoch, Offset start) {
  if (epoch <= newest()) return false;
  // An epoch in which nothing was written leaves no trace.
  std::erase_if(entries_, [start](const Entry& entry) { return entry.start >= start; });
  entries_.push_back({epoch, start});
  return true;
}

Epoch EpochCache::epoch_of(Offset offset) const {
  const auto next = std::ranges::upper_bound(entries_, offset, {}, &Entry::start);
  return next == entries_.begin() ? Epoch{} : std::prev(next)->epoch;
}

EpochCache::Entry EpochCache::end_of(Epoch epoch, Offset log_end) const {
  if (epoch == Epoch{} || epoch > newest()) return {};
  const auto next = std::ranges::upper_bound(entries_, epoch, {}, &Entry::epoch);
  return {next == entries_.begin() ? epoch : std::prev(next)->epoch,
          next == entries_.end() ? log_end : next->start};
}

void EpochCache::trim_before(Offset start) {
  const auto next = std::ranges::upper_bound(entries_, start, {}, &Entry::start);
  if (next == entries_.begin()) return;
  entries_.erase(entries_.begin(), std::prev(next));
  entries_.front().start = start;
}

void EpochCache::truncate_from(Offset end) {
  std::erase_if(entries_, [end](const Entry& entry) { return entry.start >= end; });
}

std::string EpochCache::checkpoint() const {
  std::string text = "0\n" + std::to_string(entries_.size()) + "\n";
  for (const auto& entry : entries_) {
    text += std::to_string(entry.epoch.value) + " " + std::to_string(entry.start.value) + "\n";
  }
  return text;
}

Result<EpochCache> EpochCache::parse(std::string_view checkpoint) {
  const auto whole = checkpoint.size();
  const auto malformed = [&checkpoint, whole] {
    return Error{Errc::corrupt, "leader epoch checkpoint: malformed at byte " +
                                    std::to_string(whole - checkpoint.size())};
  };
  int version = 0;
  std::size_t count = 0;
  if (!take_number(checkpoint, '\n', version) || version != 0) return malformed();
  if (!take_number(checkpoint, '\n', count)) return malformed();
  EpochCache cache;
  for (std::size_t line = 0; line < count; ++line) {
    Entry entry;
    if (!take_number(checkpoint, ' ', entry.epoch.value) ||
        !take_number(checkpoint, '\n', entry.start.value)) {
      return malformed();
    }
    const auto last = cache.entries_.empty() ? Entry{} : cache.entries_.back();
    if (entry.epoch <= last.epoch || entry.start <= last.start) return malformed();
    cache.entries_.push_back(entry);
  }
  return cache;
}

}  // namespace millrace::kernel
