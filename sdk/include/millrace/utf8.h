// Text as UTF-8 has it, and what to make of bytes that are not.
#pragma once

#include <cstddef>
#include <string_view>

namespace millrace {

/// The code point at the front of a text, and how many bytes it takes. A byte that is not UTF-8
/// stands for U+FFFD, as where Java reads it.
struct CodePoint {
  char32_t point = 0xfffd;
  std::size_t bytes = 1;
  /// U+FFFD itself takes three bytes.
  bool is_valid() const noexcept { return bytes > 1 || point < 0x80; }
};

/// `text` is not empty.
constexpr CodePoint first_code_point(std::string_view text) noexcept {
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

}  // namespace millrace
