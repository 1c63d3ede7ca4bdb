// Cuts a stream of bytes into frames: a four-byte size, then that many bytes. Bytes are received
// straight into the block whose slices the frames are, so a frame that arrives whole is not copied.
#pragma once

#include <cstddef>
#include <optional>

#include <millrace/buffer.h>

namespace millrace::kafka {

/// Used as: while there is no next(), receive into space() and call filled().  [one owner]
class FrameReader {
 public:
  /// A connection reads this much at once.
  static constexpr std::size_t block_bytes = 64 << 10;
  /// A larger frame gets its memory in steps, as its bytes arrive: announcing it costs nothing.
  static constexpr std::size_t frame_bytes_at_once = 1 << 20;

  explicit FrameReader(std::size_t frame_bytes_max) : frame_bytes_max_(frame_bytes_max) {}

  /// Where the next bytes belong; never empty.
  MutableBytes space();
  /// `bytes` were put at the front of space().
  void filled(std::size_t bytes) { block_.filled(bytes); }

  /// The next complete frame, without its size; nullopt when more bytes are needed. Errc::too_large
  /// or Errc::corrupt for a size that cannot be: the stream is of no use after that.
  Result<std::optional<Buffer>> next();

  /// Bytes received and not handed out yet: those of the frame that has begun, size first, and of
  /// what follows it. For looking at a frame before it is whole.
  Bytes pending() const noexcept { return block_.bytes().subspan(taken_); }

  /// The size of the frame that has begun; nullopt before its four bytes are there.
  std::optional<std::size_t> frame_bytes() const;

 private:
  std::size_t left() const noexcept { return block_.size() - taken_; }

  std::size_t frame_bytes_max_;
  MutableBuffer block_;
  std::size_t taken_ = 0;  // of the block's bytes, those that went out in frames
};

}  // namespace millrace::kafka
