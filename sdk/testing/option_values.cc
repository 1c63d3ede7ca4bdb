#include <millrace/testing/option_values.h>

#include <algorithm>
#include <charconv>
#include <string>
#include <string_view>
#include <vector>

#include <millrace/result.h>

namespace millrace::testing {

namespace {

template <class T>
T number_of(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  MR_ASSERT(error == std::errc{} && end == text.data() + text.size());
  return value;
}

std::vector<std::string> split(std::string_view text) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const auto end = std::min(text.find(','), text.size());
    auto part = text.substr(0, end);
    while (part.starts_with(' ')) part.remove_prefix(1);
    while (part.ends_with(' ')) part.remove_suffix(1);
    parts.emplace_back(part);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

OptionValue default_of(const MillraceOption& option) {
  const std::string_view text = option.default_value;
  switch (option.type) {
    case MILLRACE_OPTION_INTEGER: return number_of<std::int64_t>(text);
    case MILLRACE_OPTION_NUMBER: return number_of<double>(text);
    case MILLRACE_OPTION_BOOLEAN: return text == "true";
    case MILLRACE_OPTION_TEXTS: return split(text);
    default: return std::string(text);
  }
}

}  // namespace

OptionValues defaults_of(const MillraceOption* declared) {
  OptionValues values;
  for (const auto* option = declared; option->name != nullptr; ++option) {
    if (option->default_value != nullptr) values.emplace(option->name, default_of(*option));
  }
  return values;
}

}  // namespace millrace::testing
