// Which partition a key belongs to, as Kafka's own producers choose it.
#pragma once

#include <cstdint>

#include <millrace/buffer.h>

namespace millrace::kafka {

/// MurmurHash2 (32 bits, Kafka's seed).
std::uint32_t murmur2(Bytes bytes) noexcept;

/// The default for records with a key; `partitions` is at least 1.
inline std::int32_t partition_of(Bytes key, std::int32_t partitions) noexcept {
  return static_cast<std::int32_t>(murmur2(key) & 0x7fffffff) % partitions;
}

}  // namespace millrace::kafka
