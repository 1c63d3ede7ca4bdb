#include <millrace/kafka/partitioner.h>

namespace millrace::kafka {

std::uint32_t murmur2(Bytes bytes) noexcept {
  constexpr std::uint32_t m = 0x5bd1e995;
  auto hash = std::uint32_t{0x9747b28c} ^ static_cast<std::uint32_t>(bytes.size());
  std::size_t at = 0;
  for (; at + 4 <= bytes.size(); at += 4) {
    std::uint32_t word = 0;  // little-endian
    for (std::size_t i = 0; i < 4; ++i) {
      word |= std::to_integer<std::uint32_t>(bytes[at + i]) << (8 * i);
    }
    word *= m;
    word ^= word >> 24;
    hash = hash * m ^ word * m;
  }
  if (at < bytes.size()) {
    for (std::size_t i = 0; at + i < bytes.size(); ++i) {
      hash ^= std::to_integer<std::uint32_t>(bytes[at + i]) << (8 * i);
    }
    hash *= m;
  }
  hash ^= hash >> 13;
  hash *= m;
  return hash ^ hash >> 15;
}

}  // namespace millrace::kafka
