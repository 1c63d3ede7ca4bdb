#include "frame_header.h"

#include <algorithm>
#include <cstdint>
#include <string>

#include <millrace/bytes.h>

namespace millrace {
namespace {

constexpr std::array<std::uint8_t, 4> magic{0x04, 0x22, 0x4d, 0x18};
constexpr std::size_t flags_at = 4;
constexpr std::size_t header_bytes_min = 7;  // magic, flags, block size, checksum
constexpr std::size_t content_size_bytes = 8;
constexpr std::uint8_t version_mask = 0xc0;
constexpr std::uint8_t version_1 = 0x40;
constexpr std::uint8_t has_content_size = 0x08;
constexpr std::uint8_t has_dictionary = 0x01;

Error corrupt(const std::string& reason) { return {Errc::corrupt, "lz4: " + reason}; }

// The second byte of the hash.
std::byte header_checksum(Bytes bytes) {
  return static_cast<std::byte>(xxh32_of_few(bytes) >> 8 & 0xff);
}

}  // namespace

Result<Lz4FrameHeader> read_lz4_frame_header(Bytes input) {
  if (input.size() < header_bytes_min) return corrupt("ends in the frame's header");
  if (!std::ranges::equal(input.first(magic.size()), std::as_bytes(std::span(magic)))) {
    return corrupt("not an LZ4 frame");
  }
  const auto flags = static_cast<std::uint8_t>(input[flags_at]);
  if ((flags & version_mask) != version_1) return corrupt("a frame of an unknown version");
  if ((flags & has_dictionary) != 0) return corrupt("the frame needs a dictionary");

  Lz4FrameHeader header;
  header.size = header_bytes_min + ((flags & has_content_size) != 0 ? content_size_bytes : 0);
  if (input.size() < header.size) return corrupt("ends in the frame's header");
  std::ranges::copy(input.first(header.size), header.bytes.begin());
  const auto summed = input.first(header.size - 1);
  auto& checksum = header.bytes[header.size - 1];
  const auto right = header_checksum(summed.subspan(magic.size()));
  if (checksum != right && checksum != header_checksum(summed)) {
    return corrupt("the header's checksum is " + std::to_string(static_cast<int>(checksum)) +
                   ", expected " + std::to_string(static_cast<int>(right)));
  }
  checksum = right;
  return header;
}

}  // namespace millrace
