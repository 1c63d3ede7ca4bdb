// What compaction knows of keys: for each the offset of its newest record, in a memory that does
// not depend on what keys are.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include <millrace/buffer.h>
#include <millrace/result.h>
#include <millrace/types.h>

namespace millrace::kernel {

/// A table of 24 bytes for each key: 128 bits of a hash and an offset. Keys themselves are not
/// kept, so two with the same hash would be one: of a thousand million, two have with a chance of
/// about 2^-69. XXH3 with a secret, because whoever chooses keys must not be able to find two that
/// have, as he can for MD5, and because it is much quicker than that.  [one thread at a time]
class OffsetMap {
 public:
  using Secret = std::array<std::byte, 192>;
  static constexpr std::size_t slot_bytes = 24;

  /// Takes no more than `bytes_max`, fills no more of it than `load_factor_max`, and is no larger
  /// than `keys_max` keys need. Memory that no key has come to is only reserved.
  /// Errc::overloaded when the system has not so much.
  static Result<OffsetMap> make(const Secret& secret, std::uint64_t bytes_max,
                                double load_factor_max, std::uint64_t keys_max);

  /// The newest record of `key` is at `offset`, or further on as it was said before. False: it is
  /// full, and nothing has changed.
  bool put(Bytes key, Offset offset) noexcept;
  /// None when nothing was said of `key`.
  Offset find(Bytes key) const noexcept;

  std::uint64_t keys() const noexcept { return keys_; }
  std::uint64_t keys_max() const noexcept { return keys_max_; }

 private:
  struct Hash {
    std::uint64_t low = 0;
    std::uint64_t high = 0;
    friend bool operator==(const Hash&, const Hash&) = default;
  };
  // All zero is a free one.
  struct Slot {
    Hash hash;
    std::int64_t next;  // the offset behind that of the record
  };
  static_assert(sizeof(Slot) == slot_bytes);
  struct Free {
    void operator()(Slot* slots) const noexcept;
  };

  OffsetMap(const Secret& secret, std::unique_ptr<Slot[], Free> slots, std::uint64_t slot_count,
            std::uint64_t keys_max)
      : secret_(secret), slots_(std::move(slots)), slot_count_(slot_count), keys_max_(keys_max) {}
  Hash hash_of(Bytes key) const noexcept;
  std::uint64_t place_of(const Hash& hash) const noexcept;

  Secret secret_;
  std::unique_ptr<Slot[], Free> slots_;
  std::uint64_t slot_count_ = 0;
  std::uint64_t keys_max_ = 0;
  std::uint64_t keys_ = 0;
};

}  // namespace millrace::kernel
