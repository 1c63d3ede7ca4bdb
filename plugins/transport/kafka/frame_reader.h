// Cuts what a connection receives into frames. Bytes are received into a large block and frames are
// slices of it: nothing is copied but the beginning of a frame that does not end in the block it
// began in. A frame larger than a block gets one of exactly its size, and only once its size was
// accepted: what a peer claims costs nothing by itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include <millrace/buffer.h>

namespace millrace::kafka_transport {

/// The size in front of each frame.
inline constexpr std::size_t frame_size_bytes = 4;
/// The size, the API key and the API version: enough to refuse a request.
inline constexpr std::size_t frame_head_bytes = 8;
inline constexpr std::size_t receive_block_bytes = 64 * 1024;

/// [its connection's shard]
class FrameReader {
 public:
  struct Head {
    std::int32_t size = 0;  ///< of what follows it; as claimed, not yet checked
    std::int16_t api_key = 0;
    std::int16_t api_version = 0;
  };

  /// Where to receive into; never empty. Tell filled() how much arrived.
  MutableBytes space();
  void filled(std::size_t bytes) { block_.filled(bytes); }

  /// Bytes received and not taken yet, of the frame at the front and those behind it.
  Bytes pending() const noexcept { return block_.bytes().subspan(taken_); }
  /// Of the frame at the front; there must be frame_size_bytes or frame_head_bytes pending.
  std::int32_t frame_size() const noexcept;
  Head head() const noexcept;

  /// Makes room for the whole frame at the front, whose size the caller has checked.
  void accept(std::size_t frame_size) { make_room(frame_size_bytes + frame_size); }
  /// The frame at the front without its size, once all of it is there.
  std::optional<Buffer> take();

 private:
  /// Afterwards the block can hold `bytes` from the start of the frame at the front.
  void make_room(std::size_t bytes);

  MutableBuffer block_;
  std::size_t taken_ = 0;  // bytes of the block that were handed out
};

/// Errc::corrupt when `pending` (at least frame_size_bytes of it) begins with something that is not
/// a Kafka request, or with a size out of bounds. Well-known greetings of other protocols are
/// named, on a connection's first frame whatever size they would stand for.
Result<> check_frame_size(Bytes pending, bool first_frame, std::int32_t frame_bytes_max);

}  // namespace millrace::kafka_transport
