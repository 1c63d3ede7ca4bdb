// What every generated message header builds on. A message is a plain struct that holds the fields
// of all its versions; `read` and `write` know which of them a version has, nothing else does.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include <millrace/buffer.h>
#include <millrace/payload.h>
#include <millrace/types.h>

namespace millrace::kafka {

class WireReader;  // wire_reader.h
class WireWriter;  // wire_writer.h

/// Longer strings do not exist in Kafka, in either form.
inline constexpr std::size_t string_bytes_max = 0x7fff;

/// Both ends are included.
struct VersionRange {
  std::int16_t min = 0;
  std::int16_t max = 0;
  constexpr bool contains(std::int16_t version) const noexcept {
    return min <= version && version <= max;
  }
  friend constexpr bool operator==(VersionRange, VersionRange) = default;
};

/// A tagged field (KIP-482) that no schema knows. It is kept as it came and written again, in its
/// place, so that a message passes through us unharmed.
struct UnknownTag {
  std::uint32_t tag = 0;
  Buffer value;
  friend bool operator==(const UnknownTag& a, const UnknownTag& b) noexcept {
    return a.tag == b.tag && std::ranges::equal(a.value.bytes(), b.value.bytes());
  }
};
/// In ascending order of tags.
using UnknownTags = std::vector<UnknownTag>;

}  // namespace millrace::kafka
