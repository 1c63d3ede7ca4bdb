// The header of an LZ4 frame, and the wrong checksum that old Kafka clients put into it.
#pragma once

#include <array>
#include <cstddef>

#include <millrace/buffer.h>

namespace millrace {

/// A header with the checksum that the format asks for.
struct Lz4FrameHeader {
  std::array<std::byte, 15> bytes;
  std::size_t size = 0;
  Bytes view() const noexcept { return Bytes(bytes).first(size); }
};

/// Reads the header at the front of `input`. Its last byte is a checksum of what stands between it
/// and the magic number; clients of message format V0 included the magic number (KAFKA-3160), and
/// both are accepted. Errc::corrupt for anything else.
Result<Lz4FrameHeader> read_lz4_frame_header(Bytes input);

}  // namespace millrace
