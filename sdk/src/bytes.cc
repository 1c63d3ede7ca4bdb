#include <millrace/bytes.h>

#include <array>
#include <limits>

#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

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

// Tables for one byte at a time: for machines without the instruction, and for CRC-32.
constexpr std::array<std::uint32_t, 256> crc_table(std::uint32_t reflected_polynomial) {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t n = 0; n < 256; ++n) {
    std::uint32_t crc = n;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) ? reflected_polynomial : 0);
    table[n] = crc;
  }
  return table;
}
constexpr auto castagnoli = crc_table(0x82f63b78);
constexpr auto ieee = crc_table(0xedb88320);

std::uint32_t crc_by_table(const std::array<std::uint32_t, 256>& table, Bytes bytes,
                           std::uint32_t crc) noexcept {
  for (const auto byte : bytes) {
    crc = (crc >> 8) ^ table[(crc ^ static_cast<std::uint32_t>(byte)) & 0xff];
  }
  return crc;
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) std::uint32_t crc32c_by_instruction(Bytes bytes,
                                                                      std::uint32_t crc) noexcept {
  const auto* at = bytes.data();
  std::size_t left = bytes.size();
  std::uint64_t wide = crc;
  for (; left >= 8; left -= 8, at += 8) {
    std::uint64_t eight;
    std::memcpy(&eight, at, 8);
    wide = _mm_crc32_u64(wide, eight);
  }
  auto narrow = static_cast<std::uint32_t>(wide);
  for (; left > 0; --left, ++at) narrow = _mm_crc32_u8(narrow, static_cast<std::uint8_t>(*at));
  return narrow;
}
#endif

}  // namespace

std::size_t load_uvarint(Bytes bytes, std::uint32_t& value) noexcept {
  return load_groups(bytes, value);
}
std::size_t load_uvarint(Bytes bytes, std::uint64_t& value) noexcept {
  return load_groups(bytes, value);
}

std::uint32_t crc32c(Bytes bytes, std::uint32_t seed) noexcept {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("sse4.2")) return ~crc32c_by_instruction(bytes, ~seed);
#endif
  return ~crc_by_table(castagnoli, bytes, ~seed);
}

std::uint32_t crc32(Bytes bytes, std::uint32_t seed) noexcept {
  return ~crc_by_table(ieee, bytes, ~seed);
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
