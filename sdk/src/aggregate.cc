#include <millrace/aggregate.h>

namespace millrace {

namespace {

constexpr char32_t replacement = 0xfffd;

struct Decoded {
  char32_t point = replacement;
  std::size_t bytes = 1;
};

// The code point at the front of what is left. A byte that is not UTF-8 stands for U+FFFD, as where
// Java reads it.
Decoded decode(std::string_view text) noexcept {
  const auto byte = [text](std::size_t at) { return static_cast<unsigned char>(text[at]); };
  const auto lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  const std::size_t length = lead >= 0xf0 && lead < 0xf5   ? 4
                             : lead >= 0xe0 && lead < 0xf0 ? 3
                             : lead >= 0xc2 && lead < 0xe0 ? 2
                                                           : 0;
  if (length == 0 || text.size() < length) return {};
  char32_t point = lead & (0x7fU >> length);
  for (std::size_t at = 1; at < length; ++at) {
    if ((byte(at) & 0xc0U) != 0x80) return {};
    point = point << 6 | (byte(at) & 0x3fU);
  }
  constexpr char32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = point >= 0xd800 && point < 0xe000;
  if (point < smallest[length] || point > 0x10ffff || surrogate) return {};
  return {point, length};
}

}  // namespace

std::int32_t partition_of_key(std::string_view key, std::int32_t partitions) noexcept {
  std::uint32_t hash = 0;
  const auto add = [&hash](char32_t unit) { hash = hash * 31 + static_cast<std::uint32_t>(unit); };
  while (!key.empty()) {
    const auto [point, bytes] = decode(key);
    key.remove_prefix(bytes);
    if (point < 0x10000) {
      add(point);
    } else {
      add(0xd800 + ((point - 0x10000) >> 10));
      add(0xdc00 + ((point - 0x10000) & 0x3ff));
    }
  }
  // The absolute value of what is a signed number there; of the smallest, which has none, zero.
  const bool negative = hash >> 31 != 0;
  const auto distance = negative ? (0U - hash) & 0x7fffffffU : hash;
  return static_cast<std::int32_t>(distance % static_cast<std::uint32_t>(partitions));
}

}  // namespace millrace
