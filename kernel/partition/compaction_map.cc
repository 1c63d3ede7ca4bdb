#include "kernel/partition/compaction_map.h"

#include <algorithm>
#include <cstdlib>
#include <string>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace millrace::kernel {

void OffsetMap::Free::operator()(Slot* slots) const noexcept { std::free(slots); }

Result<OffsetMap> OffsetMap::make(const Secret& secret, std::uint64_t bytes_max,
                                  double load_factor_max, std::uint64_t keys_max) {
  static_assert(std::tuple_size<Secret>() >= XXH3_SECRET_SIZE_MIN);
  const auto slots_max = std::max<std::uint64_t>(bytes_max / slot_bytes, 2);
  const auto fill = [&](std::uint64_t slots) {
    const auto keys = static_cast<std::uint64_t>(static_cast<double>(slots) * load_factor_max);
    return std::clamp<std::uint64_t>(keys, 1, slots - 1);  // a search ends at a free one
  };
  auto slots = slots_max;
  if (keys_max < fill(slots_max)) {
    slots = static_cast<std::uint64_t>(static_cast<double>(keys_max) / load_factor_max) + 2;
    slots = std::clamp<std::uint64_t>(slots, 2, slots_max);
  }
  std::unique_ptr<Slot[], Free> memory(static_cast<Slot*>(std::calloc(slots, slot_bytes)));
  if (!memory) {
    return Error{Errc::overloaded,
                 "no memory for " + std::to_string(slots * slot_bytes) +
                     " bytes of a map of keys; lower log.cleaner.dedupe.buffer.size"};
  }
  return OffsetMap(secret, std::move(memory), slots, fill(slots));
}

OffsetMap::Hash OffsetMap::hash_of(Bytes key) const noexcept {
  const auto hash = XXH3_128bits_withSecret(key.data(), key.size(), secret_.data(), secret_.size());
  return {hash.low64, hash.high64};
}

std::uint64_t OffsetMap::place_of(const Hash& hash) const noexcept {
  __extension__ using Wide = unsigned __int128;
  return static_cast<std::uint64_t>((static_cast<Wide>(hash.high) * slot_count_) >> 64);
}

bool OffsetMap::put(Bytes key, Offset offset) noexcept {
  const auto hash = hash_of(key);
  for (auto at = place_of(hash);; at = at + 1 == slot_count_ ? 0 : at + 1) {
    auto& slot = slots_[at];
    if (slot.next == 0) {
      if (keys_ == keys_max_) return false;
      slot = {hash, offset.value + 1};
      ++keys_;
      return true;
    }
    if (slot.hash != hash) continue;
    slot.next = std::max(slot.next, offset.value + 1);
    return true;
  }
}

Offset OffsetMap::find(Bytes key) const noexcept {
  const auto hash = hash_of(key);
  for (auto at = place_of(hash);; at = at + 1 == slot_count_ ? 0 : at + 1) {
    const auto& slot = slots_[at];
    if (slot.next == 0) return {};
    if (slot.hash == hash) return {slot.next - 1};
  }
}

}  // namespace millrace::kernel
