// Big-endian integers, variable-length integers and checksums, as Kafka's formats use them.
#pragma once

#include <bit>
#include <concepts>
#include <cstdint>
#include <cstring>

#include <millrace/buffer.h>

namespace millrace {

/// The integer at `from`, which must have sizeof(T) readable bytes.
template <std::integral T>
inline T load_be(const std::byte* from) noexcept {
  T value;
  std::memcpy(&value, from, sizeof value);
  if constexpr (std::endian::native == std::endian::little) value = std::byteswap(value);
  return value;
}
template <std::integral T>
inline void store_be(std::byte* to, T value) noexcept {
  if constexpr (std::endian::native == std::endian::little) value = std::byteswap(value);
  std::memcpy(to, &value, sizeof value);
}

/// The most bytes that a variable-length 32- or 64-bit integer takes.
inline constexpr std::size_t varint_bytes_max = 5;
inline constexpr std::size_t varlong_bytes_max = 10;

/// Base-128 groups, least significant first (Kafka's unsigned varint).
std::size_t uvarint_bytes(std::uint64_t value) noexcept;
/// Writes at `to`, which must have room; returns the number of bytes written.
std::size_t store_uvarint(std::byte* to, std::uint64_t value) noexcept;
/// Reads from the front of `bytes`. Returns the number of bytes read; 0 when they end early, are
/// longer than the type can need, or do not fit it.
std::size_t load_uvarint(Bytes bytes, std::uint32_t& value) noexcept;
std::size_t load_uvarint(Bytes bytes, std::uint64_t& value) noexcept;

/// Zigzag: small negatives stay small. varint = zigzag, then base-128 groups.
constexpr std::uint32_t zigzag(std::int32_t n) noexcept {
  return (static_cast<std::uint32_t>(n) << 1) ^ static_cast<std::uint32_t>(n >> 31);
}
constexpr std::uint64_t zigzag(std::int64_t n) noexcept {
  return (static_cast<std::uint64_t>(n) << 1) ^ static_cast<std::uint64_t>(n >> 63);
}
constexpr std::int32_t unzigzag(std::uint32_t n) noexcept {
  return static_cast<std::int32_t>((n >> 1) ^ (0U - (n & 1)));
}
constexpr std::int64_t unzigzag(std::uint64_t n) noexcept {
  return static_cast<std::int64_t>((n >> 1) ^ (0ULL - (n & 1)));
}

/// CRC-32C (Castagnoli, RFC 3720), of record batches. `seed` is the crc of the bytes before.
/// Uses the processor's instruction where it has one.
std::uint32_t crc32c(Bytes bytes, std::uint32_t seed = 0) noexcept;
/// CRC-32 (IEEE 802.3), of messages in format V0 and V1.
std::uint32_t crc32(Bytes bytes, std::uint32_t seed = 0) noexcept;
/// XXH32 with seed 0, of fewer than 16 bytes: what the headers of LZ4 frames are checked by.
std::uint32_t xxh32_of_few(Bytes bytes) noexcept;

}  // namespace millrace
