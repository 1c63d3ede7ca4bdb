// The first bytes of a frame, looked at before the rest is waited for or paid for: what a peer
// claims costs nothing by itself.
#pragma once

#include <cstddef>
#include <cstdint>

#include <millrace/buffer.h>

namespace millrace::kafka_transport {

inline constexpr std::size_t frame_size_bytes = 4;
/// The size, the API key and the API version: enough to refuse a request.
inline constexpr std::size_t frame_head_bytes = 8;

/// Errc::corrupt when `pending` (at least frame_size_bytes of it) begins with something that is not
/// a Kafka request, or with a size out of bounds. Well-known greetings of other protocols are
/// named: on a connection's first frame whatever size they would stand for.
Result<> check_frame_size(Bytes pending, bool first_frame, std::int32_t frame_bytes_max);

struct FrameHead {
  std::size_t frame_bytes = 0;  ///< of what follows the size
  std::int16_t api_key = 0;
  std::int16_t api_version = 0;
};
/// Of at least frame_head_bytes whose size was checked.
FrameHead read_frame_head(Bytes pending) noexcept;

}  // namespace millrace::kafka_transport
