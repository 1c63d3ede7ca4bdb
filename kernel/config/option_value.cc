#include "kernel/config/option_value.h"

#include <algorithm>
#include <charconv>
#include <limits>

#include "kernel/config/text.h"

namespace millrace::kernel {

namespace {

bool bounded(const MillraceOption& option) { return option.minimum <= option.maximum; }

template <class T>
std::optional<T> parse_number(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const auto end = std::min(text.find(separator), text.size());
    auto part = text.substr(0, end);
    while (part.starts_with(' ')) part.remove_prefix(1);
    while (part.ends_with(' ')) part.remove_suffix(1);
    parts.emplace_back(part);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

std::string bounds_text(const MillraceOption& option) {
  if (!bounded(option)) return "";
  if (option.maximum == std::numeric_limits<std::int64_t>::max()) {
    return concat(" not below ", option.minimum);
  }
  return concat(" from ", option.minimum, " to ", option.maximum);
}

std::string found(const MillraceOption& option, const ConfigValue& value) {
  const bool secret = (option.flags & MILLRACE_OPTION_SECRET) != 0;
  struct Describe {
    bool secret;
    std::string operator()(const std::string& text) const {
      return secret ? "a text (not shown)" : "text \"" + text + '"';
    }
    std::string operator()(std::int64_t integer) const {
      return secret ? "an integer (not shown)" : concat("integer ", integer);
    }
    std::string operator()(bool boolean) const {
      return boolean ? "boolean true" : "boolean false";
    }
    std::string operator()(double number) const {
      return secret ? "a number (not shown)" : "number " + number_text(number);
    }
    std::string operator()(const ConfigValue::List&) const { return "a list"; }
    std::string operator()(const ConfigTable&) const { return "a table"; }
    std::string operator()(ConfigDate) const { return "a date or time"; }
  };
  return std::visit(Describe{secret}, value.value);
}

std::optional<OptionValue> texts_of(const ConfigValue& value) {
  const auto* list = std::get_if<ConfigValue::List>(&value.value);
  if (list == nullptr) return std::nullopt;
  std::vector<std::string> texts;
  for (const auto& element : *list) {
    const auto* text = std::get_if<std::string>(&element.value);
    if (text == nullptr) return std::nullopt;
    texts.push_back(*text);
  }
  return texts;
}

/// The value if it has the option's type.
std::optional<OptionValue> typed(const MillraceOption& option, const ConfigEntry& entry) {
  const auto& value = entry.value.value;
  switch (option.type) {
    case MILLRACE_OPTION_TEXT:
      if (const auto* text = std::get_if<std::string>(&value)) return *text;
      if (entry.written) return *entry.written;
      break;
    case MILLRACE_OPTION_INTEGER:
      if (const auto* integer = std::get_if<std::int64_t>(&value)) return *integer;
      break;
    case MILLRACE_OPTION_BOOLEAN:
      if (const auto* boolean = std::get_if<bool>(&value)) return *boolean;
      break;
    case MILLRACE_OPTION_NUMBER:
      if (const auto* number = std::get_if<double>(&value)) return *number;
      if (const auto* integer = std::get_if<std::int64_t>(&value)) {
        return static_cast<double>(*integer);
      }
      break;
    case MILLRACE_OPTION_TEXTS: return texts_of(entry.value);
    default: break;
  }
  return std::nullopt;
}

// Whatever takes it for a name would read its front alone.
bool has_nul(const OptionValue& value) {
  const auto in = [](const std::string& text) { return contains(text, '\0'); };
  if (const auto* text = std::get_if<std::string>(&value)) return in(*text);
  const auto* texts = std::get_if<std::vector<std::string>>(&value);
  return texts != nullptr && std::ranges::any_of(*texts, in);
}

bool in_bounds(const MillraceOption& option, const OptionValue& value) {
  if (const auto* integer = std::get_if<std::int64_t>(&value)) {
    return !bounded(option) || (*integer >= option.minimum && *integer <= option.maximum);
  }
  if (const auto* number = std::get_if<double>(&value)) {
    return !bounded(option) || (*number >= static_cast<double>(option.minimum) &&
                                *number <= static_cast<double>(option.maximum));
  }
  if (const auto* text = std::get_if<std::string>(&value); text && option.choices != nullptr) {
    return contains(choices_of(option), *text);
  }
  return true;
}

std::optional<OptionValue> parse_default(const MillraceOption& option) {
  const std::string_view text = option.default_value;
  switch (option.type) {
    case MILLRACE_OPTION_TEXT: return std::string(text);
    case MILLRACE_OPTION_INTEGER: return parse_number<std::int64_t>(text);
    case MILLRACE_OPTION_BOOLEAN:
      if (text == "true" || text == "false") return text == "true";
      return std::nullopt;
    case MILLRACE_OPTION_NUMBER: return parse_number<double>(text);
    case MILLRACE_OPTION_TEXTS: return split(text, ',');
    default: return std::nullopt;
  }
}

}  // namespace

const MillraceOption* find_option(const MillraceOption* options, std::string_view name) {
  for (; options->name != nullptr; ++options) {
    if (options->name == name) return options;
  }
  return nullptr;
}

std::vector<std::string> names_of(const MillraceOption* options) {
  std::vector<std::string> names;
  for (; options->name != nullptr; ++options) names.emplace_back(options->name);
  return names;
}

std::vector<std::string> choices_of(const MillraceOption& option) {
  return option.choices == nullptr ? std::vector<std::string>{} : split(option.choices, '|');
}

std::string allowed(const MillraceOption& option) {
  const std::string unit = option.unit == nullptr ? "" : concat(" (", option.unit, ")");
  const std::string bounds = bounds_text(option);
  switch (option.type) {
    case MILLRACE_OPTION_TEXT:
      if (option.choices == nullptr) return "a text";
      return "one of \"" + joined(choices_of(option), "\", \"") + '"';
    case MILLRACE_OPTION_INTEGER: return "an integer" + bounds + unit;
    case MILLRACE_OPTION_BOOLEAN: return "true or false";
    case MILLRACE_OPTION_NUMBER: return "a number" + bounds + unit;
    case MILLRACE_OPTION_TEXTS: return "a list of texts, such as [\"a\", \"b\"]";
    default: return concat("a value of type ", option.type, ", which this kernel does not know");
  }
}

std::expected<OptionValue, std::string> value_of(const MillraceOption& option,
                                                 const ConfigEntry& entry) {
  auto value = typed(option, entry);
  if (value && has_nul(*value)) {
    return std::unexpected("expected " + allowed(option) + ", found a NUL in it");
  }
  if (value && in_bounds(option, *value)) return *std::move(value);
  auto message = "expected " + allowed(option) + ", found " + found(option, entry.value);
  if (const auto* text = std::get_if<std::string>(&entry.value.value)) {
    message += nearest_hint(*text, choices_of(option));
  }
  return std::unexpected(std::move(message));
}

std::expected<std::optional<OptionValue>, std::string> default_of(const MillraceOption& option) {
  if (option.default_value == nullptr) return std::nullopt;
  auto value = parse_default(option);
  if (value && in_bounds(option, *value)) return value;
  return std::unexpected(concat("declares the default \"", option.default_value,
                                "\", which is not ", allowed(option)));
}

std::string to_text(const OptionValue& value) {
  struct Text {
    std::string operator()(const std::string& text) const { return text; }
    std::string operator()(std::int64_t integer) const { return std::to_string(integer); }
    std::string operator()(bool boolean) const { return boolean ? "true" : "false"; }
    std::string operator()(double number) const { return number_text(number); }
    std::string operator()(const std::vector<std::string>& texts) const {
      return joined(texts, ",");
    }
  };
  return std::visit(Text{}, value);
}

}  // namespace millrace::kernel
