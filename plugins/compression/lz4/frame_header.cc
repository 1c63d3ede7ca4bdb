#include "frame_header.h"

#include <algorithm>
#include <bit>
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

// XXH32 with seed 0 for inputs below 16 bytes; the format's header checksum is its second byte.
std::byte header_checksum(Bytes bytes) {
  constexpr std::uint32_t prime1 = 2654435761U;
  constexpr std::uint32_t prime2 = 2246822519U;
  constexpr std::uint32_t prime3 = 3266489917U;
  constexpr std::uint32_t prime4 = 668265263U;
  constexpr std::uint32_t prime5 = 374761393U;
  MR_ASSERT(bytes.size() < 16);
  auto hash = prime5 + static_cast<std::uint32_t>(bytes.size());
  for (; bytes.size() >= 4; bytes = bytes.subspan(4)) {
    std::uint32_t word = 0;
    for (int i = 3; i >= 0; --i) {
      word = word << 8 | static_cast<std::uint32_t>(bytes[static_cast<std::size_t>(i)]);
    }
    hash = std::rotl(hash + word * prime3, 17) * prime4;
  }
  for (const auto byte : bytes) {
    hash = std::rotl(hash + static_cast<std::uint32_t>(byte) * prime5, 11) * prime1;
  }
  hash = (hash ^ hash >> 15) * prime2;
  hash = (hash ^ hash >> 13) * prime3;
  hash ^= hash >> 16;
  return static_cast<std::byte>(hash >> 8 & 0xff);
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
