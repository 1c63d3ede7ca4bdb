// Text as UTF-8 has it, and what to make of bytes that are not.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
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

/// `text` with U+FFFD for each byte that is not UTF-8.
inline std::string utf8_of(std::string text) {
  constexpr std::string_view replacement = "\xef\xbf\xbd";
  std::string valid;
  std::size_t kept = 0;  // of `text`, in `valid`
  for (std::size_t at = 0; at < text.size();) {
    const auto next = first_code_point(std::string_view(text).substr(at));
    if (!next.is_valid()) {
      valid.append(text, kept, at - kept).append(replacement);
      kept = at + next.bytes;
    }
    at += next.bytes;
  }
  if (kept == 0) return text;
  return valid.append(text, kept);
}

/// The front of `text`, of at most so many bytes; no code point is cut.
constexpr std::string_view front_of(std::string_view text, std::size_t bytes_max) noexcept {
  if (text.size() <= bytes_max) return text;
  auto end = bytes_max;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0U) == 0x80) --end;
  return text.substr(0, end);
}

/// What somebody else has sent, as it is put into a message: of text that is too long the front,
/// and how long it is; in one line, without what a terminal takes for a command (U+0080 to U+009F
/// are some terminals' too).
inline std::string shown(std::string_view text, std::size_t bytes_max = 256) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string front;
  const auto whole = utf8_of(std::string(front_of(text, bytes_max)));
  for (std::string_view rest = whole; !rest.empty();) {
    const auto next = first_code_point(rest);
    const auto point = static_cast<std::uint32_t>(next.point);
    if (point < 0x20 || (point >= 0x7f && point < 0xa0)) {
      front.append("\\x").append({digits[point >> 4U], digits[point & 0xfU]});
    } else {
      front.append(rest.substr(0, next.bytes));
    }
    rest.remove_prefix(next.bytes);
  }
  if (text.size() <= bytes_max) return front;
  return front.append("... (").append(std::to_string(text.size())).append(" bytes)");
}

}  // namespace millrace
