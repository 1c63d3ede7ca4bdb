// Messages out of parts.
#pragma once

#include <concepts>
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

}  // namespace millrace::filelog
