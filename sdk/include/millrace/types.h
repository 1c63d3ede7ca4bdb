// The nouns of the log. Strong types where two integers would stand side by side in a signature.
#pragma once

#include <array>
#include <chrono>
#include <compare>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace millrace {

/// The position of a record in its partition; -1 is "none".
struct Offset {
  std::int64_t value = -1;
  friend constexpr auto operator<=>(Offset, Offset) = default;
  friend constexpr Offset operator+(Offset a, std::int64_t records) { return {a.value + records}; }
  friend constexpr std::int64_t operator-(Offset a, Offset b) { return a.value - b.value; }
};

/// Counts the leaders that a partition has had (KIP-101); -1 is "none".
struct Epoch {
  std::int32_t value = -1;
  friend constexpr auto operator<=>(Epoch, Epoch) = default;
};

/// Milliseconds since 1970-01-01 UTC; -1 is "none".
struct Timestamp {
  std::int64_t ms = -1;
  friend constexpr auto operator<=>(Timestamp, Timestamp) = default;
};

/// A span of time, and a reading of the clock that never goes back.
using Duration = std::chrono::nanoseconds;
using MonoTime = std::chrono::time_point<std::chrono::steady_clock, Duration>;

/// A topic's id (KIP-516): 16 bytes, written as 22 characters of base64url. All zero is "none".
struct Uuid {
  std::array<std::uint8_t, 16> bytes{};
  friend constexpr auto operator<=>(const Uuid&, const Uuid&) = default;
  constexpr bool is_none() const noexcept { return *this == Uuid{}; }
};
std::string to_string(const Uuid& id);
std::optional<Uuid> parse_uuid(std::string_view text);

struct TopicPartition {
  std::string topic;
  std::int32_t partition = 0;
  friend auto operator<=>(const TopicPartition&, const TopicPartition&) = default;
  friend bool operator==(const TopicPartition&, const TopicPartition&) = default;
};
/// "orders-3", which is also the name of its folder.
std::string to_string(const TopicPartition& partition);

/// Whose records a reader sees: all below the high watermark, or only those of transactions that
/// were committed, below the last stable offset.
enum class Isolation : std::int8_t { read_uncommitted = 0, read_committed = 1 };

/// Codec ids as they stand in a batch's attributes.
enum class CompressionId : std::uint8_t { none = 0, gzip = 1, snappy = 2, lz4 = 3, zstd = 4 };
std::string_view name_of(CompressionId id) noexcept;

}  // namespace millrace

template <>
struct std::hash<millrace::TopicPartition> {
  std::size_t operator()(const millrace::TopicPartition& p) const noexcept {
    return std::hash<std::string>{}(p.topic) * 31 + static_cast<std::size_t>(p.partition);
  }
};
template <>
struct std::hash<millrace::Uuid> {
  std::size_t operator()(const millrace::Uuid& id) const noexcept {
    return std::hash<std::string_view>{}(
        {reinterpret_cast<const char*>(id.bytes.data()), id.bytes.size()});
  }
};
