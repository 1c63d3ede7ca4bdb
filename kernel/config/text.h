// Small helpers for messages: joining, and "nearest known", what somebody may have meant.
#pragma once

#include <algorithm>
#include <concepts>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace millrace::kernel {

/// Shortest text that reads back as the same number.
std::string number_text(double number);

namespace concat_detail {
inline void append(std::string& to, std::string_view text) { to += text; }
template <std::integral N>
  requires(!std::same_as<N, bool>)
void append(std::string& to, N number) {
  to += std::to_string(number);
}
}  // namespace concat_detail

/// Texts and numbers, one behind the other.
template <class... Parts>
std::string concat(const Parts&... parts) {
  std::string result;
  (concat_detail::append(result, parts), ...);
  return result;
}

template <class Range, class Value>
bool contains(const Range& range, const Value& value) {
  return std::ranges::find(range, value) != std::ranges::end(range);
}

/// How many letters must be inserted, removed, replaced or swapped with their neighbour.
std::size_t edit_distance(std::string_view a, std::string_view b);

/// The candidate nearest to `name`, when it is near enough to be a slip.
std::optional<std::string> nearest(std::string_view name,
                                   const std::vector<std::string>& candidates);

/// "; nearest known: X", or nothing.
std::string nearest_hint(std::string_view name, const std::vector<std::string>& candidates);

/// "a, b, c"
std::string joined(const std::vector<std::string>& names, std::string_view separator = ", ");

}  // namespace millrace::kernel
