// A compression plugin: compresses and opens the record section of a batch. This header needs the
// standard library alone; a codec may be built by any compiler with the Itanium C++ ABI.
#pragma once

#include <array>
#include <cstddef>

#include <millrace/buffer.h>
#include <millrace/types.h>

namespace millrace {

/// Stateless after construction: no I/O, no suspension, no shared mutable state.  [any thread]
class Codec {
 public:
  virtual ~Codec() = default;
  virtual CompressionId id() const noexcept = 0;
  virtual Result<Buffer> compress(Bytes input) const = 0;
  /// Errc::too_large as soon as the output would exceed `output_bytes_max`: a bomb costs that much
  /// and no more. Errc::corrupt for input that is not this codec's. Accepts every framing that
  /// clients use (snappy: raw and xerial; lz4: also with the header checksum of format V0).
  virtual Result<Buffer> decompress(Bytes input, std::size_t output_bytes_max) const = 0;
};

/// The codecs that are loaded, by id. A value: small, copied freely; the codecs outlive it.
class Codecs {
 public:
  /// nullptr when no plugin provides it.
  const Codec* find(CompressionId id) const noexcept {
    const auto at = static_cast<std::size_t>(id);
    return at < by_id_.size() ? by_id_[at] : nullptr;
  }
  void add(const Codec& codec) noexcept {
    const auto at = static_cast<std::size_t>(codec.id());
    if (at < by_id_.size()) by_id_[at] = &codec;
  }

 private:
  std::array<const Codec*, 8> by_id_{};
};

}  // namespace millrace
