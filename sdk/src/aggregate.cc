#include <millrace/aggregate.h>

namespace millrace {

std::int32_t partition_of_key(std::string_view key, std::int32_t partitions) noexcept {
  // Of UTF-16 units in Java; ids are ASCII, and where they are not, any broker that asks us agrees.
  std::uint32_t hash = 0;
  for (const char c : key) hash = hash * 31 + static_cast<unsigned char>(c);
  return static_cast<std::int32_t>((hash & 0x7fffffffU) % static_cast<std::uint32_t>(partitions));
}

}  // namespace millrace
