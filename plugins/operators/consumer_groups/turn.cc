#include "turn.h"

namespace millrace::consumer_groups {
namespace {

constexpr std::string_view group_timer = "group/";

}  // namespace

std::string timer_of(std::string_view group) {
  return std::string(group_timer) + std::string(group);
}

std::optional<std::string> group_of_timer(std::string_view timer) {
  if (!timer.starts_with(group_timer)) return std::nullopt;
  return std::string(timer.substr(group_timer.size()));
}

std::string java_text(const Uuid& id) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  text.reserve(36);
  for (std::size_t at = 0; at < id.bytes.size(); ++at) {
    if (at == 4 || at == 6 || at == 8 || at == 10) text += '-';
    text += digits[id.bytes[at] >> 4];
    text += digits[id.bytes[at] & 15];
  }
  return text;
}

}  // namespace millrace::consumer_groups
