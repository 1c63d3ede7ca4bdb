#include <millrace/aggregate.h>

#include <millrace/utf8.h>

namespace millrace {

std::int32_t partition_of_key(std::string_view key, std::int32_t partitions) noexcept {
  std::uint32_t hash = 0;
  const auto add = [&hash](char32_t unit) { hash = hash * 31 + static_cast<std::uint32_t>(unit); };
  while (!key.empty()) {
    if (static_cast<unsigned char>(key.front()) < 0x80) {
      add(static_cast<unsigned char>(key.front()));
      key.remove_prefix(1);
      continue;
    }
    const auto [point, bytes] = first_code_point(key);
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
