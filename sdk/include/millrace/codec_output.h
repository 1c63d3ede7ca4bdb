// What a Codec writes its decompressed bytes to. Every codec has the same duty: the output's size
// is not known ahead, what the input claims about it is not to be trusted, and the bound is hard.
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <string>

#include <millrace/buffer.h>

namespace millrace {

/// Grows geometrically as it is filled, never beyond the bound (and one byte, by which it learns
/// that there is more). A small input costs little memory, whatever it claims to hold.  [one
/// thread]
///
///   while (...) {
///     const auto space = output.space();
///     ... write n bytes into its front ...
///     MR_CHECK(output.filled(n));
///   }
///   return std::move(output).finish();
class CodecOutput {
 public:
  /// `bytes_expected` is a guess, from the size of the input.
  CodecOutput(std::size_t bytes_expected, std::size_t bytes_max)
      : bytes_max_(std::min(bytes_max, std::numeric_limits<std::size_t>::max() - 1)),
        buffer_(std::min(std::max(bytes_expected, start_bytes_min), bytes_max_ + 1)) {}

  std::size_t size() const noexcept { return buffer_.size(); }

  /// Room for at least one byte.
  MutableBytes space() {
    if (buffer_.size() == buffer_.capacity()) grow_to(buffer_.capacity() + 1);
    return buffer_.space();
  }
  /// Room for exactly `bytes`, for formats that say how many come next. The caller has checked that
  /// the input can hold so many. Errc::too_large when they would exceed the bound.
  Result<MutableBytes> space_for(std::size_t bytes) {
    if (bytes > bytes_max_ - buffer_.size()) return too_large();
    if (bytes > buffer_.space().size()) grow_to(buffer_.size() + bytes);
    return buffer_.space().first(bytes);
  }
  /// After writing. Errc::too_large once there is more than the bound.
  Result<> filled(std::size_t bytes) {
    buffer_.filled(bytes);
    if (buffer_.size() > bytes_max_) return too_large();
    return {};
  }
  Buffer finish() && { return std::move(buffer_).freeze(); }

 private:
  static constexpr std::size_t start_bytes_min = 1024;

  Error too_large() const {
    return {Errc::too_large,
            "decompressed, it would be larger than " + std::to_string(bytes_max_) + " bytes"};
  }
  void grow_to(std::size_t capacity_min) {
    const auto doubled = buffer_.capacity() * 2;
    buffer_.grow(std::min(std::max(doubled, capacity_min), bytes_max_ + 1));
  }

  std::size_t bytes_max_;
  MutableBuffer buffer_;
};

}  // namespace millrace
