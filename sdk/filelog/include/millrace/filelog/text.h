// Messages out of parts, and numbers out of text.
#pragma once

#include <charconv>
#include <concepts>
#include <optional>
#include <string>
#include <string_view>

namespace millrace::filelog {

namespace detail {
inline void add_part(std::string& text, std::string_view part) { text += part; }
inline void add_part(std::string& text, std::integral auto part) { text += std::to_string(part); }
}  // namespace detail

/// say(path, ": byte ", position)
template <class... Parts>
std::string say(const Parts&... parts) {
  std::string text;
  (detail::add_part(text, parts), ...);
  return text;
}

/// The number that is all of `text`.
template <std::integral T>
std::optional<T> parse_number(std::string_view text) {
  T value{};
  const auto [at, error] = std::from_chars(text.begin(), text.end(), value);
  if (error != std::errc{} || at != text.end()) return std::nullopt;
  return value;
}

}  // namespace millrace::filelog
