// What the topic is called that keeps the state of a stream. The names are ours: no stream reads or
// writes such a topic, and clients do not write to it.
#pragma once

#include <string>
#include <string_view>

namespace millrace::kernel {

inline constexpr std::string_view changelog_prefix = "__stream_";
inline constexpr std::string_view changelog_suffix = "_changelog";

inline std::string changelog_of(std::string_view stream) {
  std::string name(changelog_prefix);
  return name.append(stream).append(changelog_suffix);
}

inline bool is_changelog(std::string_view topic) noexcept {
  return topic.size() > changelog_prefix.size() + changelog_suffix.size() &&
         topic.starts_with(changelog_prefix) && topic.ends_with(changelog_suffix);
}

}  // namespace millrace::kernel
