#include <millrace/bytes.h>

#include <limits>

#include "crc.h"

namespace millrace {

std::size_t uvarint_bytes(std::uint64_t value) noexcept {
  return static_cast<std::size_t>(std::bit_width(value | 1) + 6) / 7;
}

std::size_t store_uvarint(std::byte* to, std::uint64_t value) noexcept {
  std::size_t at = 0;
  while (value >= 0x80) {
    to[at++] = static_cast<std::byte>(value | 0x80);
    value >>= 7;
  }
  to[at++] = static_cast<std::byte>(value);
  return at;
}

namespace {

template <class T>
std::size_t load_groups(Bytes bytes, T& value) noexcept {
  constexpr int bits = std::numeric_limits<T>::digits;
  T result = 0;
  int shift = 0;
  for (std::size_t at = 0; at < bytes.size() && shift < bits; ++at, shift += 7) {
    const auto group = static_cast<T>(bytes[at]);
    const T payload = group & 0x7f;
    if (shift + 7 > bits && (payload >> (bits - shift)) != 0) return 0;
    result |= payload << shift;
    if ((group & 0x80) == 0) {
      value = result;
      return at + 1;
    }
  }
  return 0;
}

}  // namespace

std::size_t load_uvarint(Bytes bytes, std::uint32_t& value) noexcept {
  return load_groups(bytes, value);
}
std::size_t load_uvarint(Bytes bytes, std::uint64_t& value) noexcept {
  return load_groups(bytes, value);
}

std::uint32_t crc32c(Bytes bytes, std::uint32_t seed) noexcept {
#if defined(__x86_64__)
  if (detail::has_crc32c_three_way()) return ~detail::crc32c_three_way(bytes, ~seed);
  if (detail::has_crc32c_instruction()) return ~detail::crc32c_by_instruction(bytes, ~seed);
#endif
  return ~detail::crc32c_portable(bytes, ~seed);
}

std::uint32_t crc32(Bytes bytes, std::uint32_t seed) noexcept {
#if defined(__x86_64__)
  if (detail::has_crc32_folding()) return ~detail::crc32_by_folding(bytes, ~seed);
#endif
  return ~detail::crc32_portable(bytes, ~seed);
}

std::uint32_t xxh32_of_few(Bytes bytes) noexcept {
  constexpr std::uint32_t prime1 = 2654435761U;
  constexpr std::uint32_t prime2 = 2246822519U;
  constexpr std::uint32_t prime3 = 3266489917U;
  constexpr std::uint32_t prime4 = 668265263U;
  constexpr std::uint32_t prime5 = 374761393U;
  MR_ASSERT(bytes.size() < 16);
  auto hash = prime5 + static_cast<std::uint32_t>(bytes.size());
  for (; bytes.size() >= 4; bytes = bytes.subspan(4)) {
    const auto word = std::byteswap(load_be<std::uint32_t>(bytes.data()));
    hash = std::rotl(hash + word * prime3, 17) * prime4;
  }
  for (const auto byte : bytes) {
    hash = std::rotl(hash + static_cast<std::uint32_t>(byte) * prime5, 11) * prime1;
  }
  hash = (hash ^ hash >> 15) * prime2;
  hash = (hash ^ hash >> 13) * prime3;
  return hash ^ hash >> 16;
}

}  // namespace millrace
