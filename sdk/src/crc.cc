#include "crc.h"

#include <array>
#include <cstddef>
#include <cstring>

#if defined(__x86_64__)
#include <nmmintrin.h>
#include <wmmintrin.h>
#endif

namespace millrace::detail {

namespace {

constexpr std::uint32_t castagnoli = 0x82f63b78;  // reflected, as the next
constexpr std::uint32_t ieee = 0xedb88320;

constexpr std::uint32_t times_x(std::uint32_t crc, std::uint32_t polynomial) {
  return (crc >> 1) ^ ((crc & 1) != 0 ? polynomial : 0);
}

// Eight tables take eight bytes at a time: table n is of a byte with n bytes behind it.
using Tables = std::array<std::array<std::uint32_t, 256>, 8>;

constexpr Tables tables_of(std::uint32_t polynomial) {
  Tables tables{};
  for (std::uint32_t n = 0; n < 256; ++n) {
    std::uint32_t crc = n;
    for (int bit = 0; bit < 8; ++bit) crc = times_x(crc, polynomial);
    tables[0][n] = crc;
  }
  for (std::size_t behind = 1; behind < tables.size(); ++behind) {
    for (std::size_t n = 0; n < 256; ++n) {
      const auto before = tables[behind - 1][n];
      tables[behind][n] = (before >> 8) ^ tables[0][before & 0xff];
    }
  }
  return tables;
}
constexpr Tables castagnoli_tables = tables_of(castagnoli);
constexpr Tables ieee_tables = tables_of(ieee);

std::uint32_t by_tables(const Tables& tables, Bytes bytes, std::uint32_t crc) noexcept {
  const auto byte_at = [&bytes](std::size_t at) {
    return std::to_integer<std::uint32_t>(bytes[at]);
  };
  const auto word_at = [&byte_at](std::size_t at) {
    return byte_at(at) | byte_at(at + 1) << 8 | byte_at(at + 2) << 16 | byte_at(at + 3) << 24;
  };
  for (; bytes.size() >= 8; bytes = bytes.subspan(8)) {
    const auto low = word_at(0) ^ crc;
    const auto high = word_at(4);
    crc = tables[7][low & 0xff] ^ tables[6][low >> 8 & 0xff] ^ tables[5][low >> 16 & 0xff] ^
          tables[4][low >> 24] ^ tables[3][high & 0xff] ^ tables[2][high >> 8 & 0xff] ^
          tables[1][high >> 16 & 0xff] ^ tables[0][high >> 24];
  }
  for (const auto byte : bytes) {
    crc = (crc >> 8) ^ tables[0][(crc ^ std::to_integer<std::uint32_t>(byte)) & 0xff];
  }
  return crc;
}

}  // namespace

std::uint32_t crc32c_portable(Bytes bytes, std::uint32_t crc) noexcept {
  return by_tables(castagnoli_tables, bytes, crc);
}

std::uint32_t crc32_portable(Bytes bytes, std::uint32_t crc) noexcept {
  return by_tables(ieee_tables, bytes, crc);
}

#if defined(__x86_64__)

namespace {

std::uint64_t eight_at(const std::byte* at) noexcept {
  std::uint64_t eight;
  std::memcpy(&eight, at, sizeof eight);
  return eight;
}

// What a crc is multiplied by to stand `bytes` earlier. The product has 64 bits; the crc
// instruction over them, which brings it back to 32, multiplies by x^33 as it does.
constexpr std::uint32_t factor_of(std::size_t bytes) {
  std::uint32_t power = 0x80000000;  // x^0, reflected
  for (std::size_t n = 8 * bytes - 33; n > 0; --n) power = times_x(power, castagnoli);
  return power;
}

__attribute__((target("sse4.2,pclmul"))) std::uint64_t product(std::uint64_t crc,
                                                               std::uint32_t factor) noexcept {
  const auto left = _mm_cvtsi64_si128(static_cast<long long>(crc));
  const auto right = _mm_cvtsi64_si128(static_cast<long long>(factor));
  return static_cast<std::uint64_t>(_mm_cvtsi128_si64(_mm_clmulepi64_si128(left, right, 0)));
}

// x^n, reflected. The product of two reflected factors is short of one x, which this has too many.
constexpr std::uint64_t folding_factor(std::size_t n) {
  std::uint32_t power = 0x80000000;
  for (; n > 0; --n) power = times_x(power, ieee);
  return std::uint64_t{power} << 1;
}

// What 16 bytes are to the remainder when `stream_bits` follow them. The factors are of their first
// eight bytes and of the others; each has 32 bits, so the products stay within 128.
template <std::size_t stream_bits>
__attribute__((target("sse4.2,pclmul"))) __m128i folded(__m128i sixteen) noexcept {
  constexpr auto of_first = folding_factor(stream_bits + 32);
  constexpr auto of_others = folding_factor(stream_bits - 32);
  const auto factors =
      _mm_set_epi64x(static_cast<long long>(of_others), static_cast<long long>(of_first));
  return _mm_xor_si128(_mm_clmulepi64_si128(sixteen, factors, 0x00),
                       _mm_clmulepi64_si128(sixteen, factors, 0x11));
}

__attribute__((target("sse4.2,pclmul"))) __m128i sixteen_at(const std::byte* at) noexcept {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
}

// As many runs of three streams as there are, each of `stream_bytes`; the rest stays.
template <std::size_t stream_bytes>
__attribute__((target("sse4.2,pclmul"))) std::uint64_t three_streams(Bytes& bytes,
                                                                     std::uint64_t crc) noexcept {
  constexpr auto factor_of_first = factor_of(2 * stream_bytes);
  constexpr auto factor_of_second = factor_of(stream_bytes);
  while (bytes.size() >= 3 * stream_bytes) {
    std::uint64_t second = 0;
    std::uint64_t third = 0;
    const auto* at = bytes.data();
    for (const auto* end = at + stream_bytes; at != end; at += 8) {
      crc = _mm_crc32_u64(crc, eight_at(at));
      second = _mm_crc32_u64(second, eight_at(at + stream_bytes));
      third = _mm_crc32_u64(third, eight_at(at + 2 * stream_bytes));
    }
    crc =
        _mm_crc32_u64(0, product(crc, factor_of_first) ^ product(second, factor_of_second)) ^ third;
    bytes = bytes.subspan(3 * stream_bytes);
  }
  return crc;
}

}  // namespace

bool has_crc32c_instruction() noexcept { return __builtin_cpu_supports("sse4.2") != 0; }

bool has_crc32c_three_way() noexcept {
  return has_crc32c_instruction() && __builtin_cpu_supports("pclmul") != 0;
}

__attribute__((target("sse4.2"))) std::uint32_t crc32c_by_instruction(Bytes bytes,
                                                                      std::uint32_t crc) noexcept {
  const auto* at = bytes.data();
  std::size_t left = bytes.size();
  std::uint64_t wide = crc;
  for (; left >= 8; left -= 8, at += 8) wide = _mm_crc32_u64(wide, eight_at(at));
  auto narrow = static_cast<std::uint32_t>(wide);
  for (; left > 0; --left, ++at) narrow = _mm_crc32_u8(narrow, static_cast<std::uint8_t>(*at));
  return narrow;
}

std::uint32_t crc32c_three_way(Bytes bytes, std::uint32_t crc) noexcept {
  constexpr std::size_t long_stream = 2048;
  constexpr std::size_t short_stream = 128;
  std::uint64_t wide = three_streams<long_stream>(bytes, crc);
  wide = three_streams<short_stream>(bytes, wide);
  return crc32c_by_instruction(bytes, static_cast<std::uint32_t>(wide));
}

bool has_crc32_folding() noexcept { return has_crc32c_three_way(); }

// What is left of all before the last bytes is 16 bytes with the same remainder.
__attribute__((target("sse4.2,pclmul"))) std::uint32_t crc32_by_folding(
    Bytes bytes, std::uint32_t crc) noexcept {
  constexpr std::size_t block_bytes = 64;
  constexpr std::size_t streams = 4;
  if (bytes.size() < 2 * block_bytes) return crc32_portable(bytes, crc);
  std::array<__m128i, streams> stream;
  for (std::size_t n = 0; n < streams; ++n) stream[n] = sixteen_at(bytes.data() + 16 * n);
  stream[0] = _mm_xor_si128(stream[0], _mm_cvtsi32_si128(static_cast<int>(crc)));
  for (bytes = bytes.subspan(block_bytes); bytes.size() >= block_bytes;
       bytes = bytes.subspan(block_bytes)) {
    for (std::size_t n = 0; n < streams; ++n) {
      stream[n] =
          _mm_xor_si128(folded<8 * block_bytes>(stream[n]), sixteen_at(bytes.data() + 16 * n));
    }
  }
  auto all = stream[0];
  for (std::size_t n = 1; n < streams; ++n) all = _mm_xor_si128(folded<128>(all), stream[n]);
  std::array<std::byte, 16> left{};
  std::memcpy(left.data(), &all, left.size());
  return crc32_portable(bytes, crc32_portable(left, 0));
}

#endif

}  // namespace millrace::detail
