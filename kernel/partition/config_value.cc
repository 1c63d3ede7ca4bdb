// Values of settings: read, checked, put into one form.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include <millrace/utf8.h>

#include "kernel/partition/config_options.h"

namespace millrace::kernel {

namespace {

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  if (trimmed(text).empty()) return parts;
  while (true) {
    const auto end = text.find(separator);
    parts.push_back(trimmed(text.substr(0, end)));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

std::string joined(const std::vector<std::string_view>& parts, std::string_view between) {
  std::string text;
  for (const auto part : parts) {
    if (!text.empty()) text += between;
    text += part;
  }
  return text;
}

std::string lower(std::string_view text) {
  std::string result(text);
  std::ranges::transform(result, result.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return result;
}

Error refused(const ConfigOption& option, std::string_view value, std::string_view why) {
  std::string detail = "Invalid value ";
  detail.append(shown(value)).append(" for configuration ").append(option.option.name);
  return {Errc::invalid_argument, std::move(detail.append(": ").append(why))};
}

std::string_view type_name(ConfigType type) {
  switch (type) {
    case ConfigType::int16: return "SHORT";
    case ConfigType::int32: return "INT";
    case ConfigType::int64: return "LONG";
    default: return "DOUBLE";
  }
}

std::int64_t largest_of(ConfigType type) {
  switch (type) {
    case ConfigType::int16: return std::numeric_limits<std::int16_t>::max();
    case ConfigType::int32: return std::numeric_limits<std::int32_t>::max();
    default: return std::numeric_limits<std::int64_t>::max();
  }
}

template <class Number>
Result<> check_number(const ConfigOption& option, std::string_view value,
                      std::optional<Number> number) {
  if (!number) {
    return refused(option, value,
                   std::string("Not a number of type ").append(type_name(type_of(option))));
  }
  const auto& [minimum, maximum] = std::pair(option.option.minimum, option.option.maximum);
  if (minimum > maximum) return {};  // unbounded
  if (*number < static_cast<Number>(minimum)) {
    return refused(option, value, "Value must be at least " + std::to_string(minimum));
  }
  if (*number > static_cast<Number>(maximum)) {
    return refused(option, value, "Value must be no more than " + std::to_string(maximum));
  }
  return {};
}

std::optional<std::int64_t> integer_of_type(ConfigType type, std::string_view text) {
  const auto number = integer_of(text);
  if (!number || *number > largest_of(type) || *number < -largest_of(type) - 1) return std::nullopt;
  return number;
}

Result<> check_choice(const ConfigOption& option, std::string_view value) {
  if (!option.option.choices) return {};
  const auto choices = split(option.option.choices, '|');
  if (std::ranges::find(choices, value) != choices.end()) return {};
  return refused(option, value, "String must be one of: " + joined(choices, ", "));
}

// "partition:broker", both not negative.
bool names_replica(std::string_view text) {
  const auto colon = text.find(':');
  if (colon == std::string_view::npos) return false;
  const auto partition = integer_of(text.substr(0, colon));
  const auto broker = integer_of(text.substr(colon + 1));
  return partition && broker && *partition >= 0 && *broker >= 0;
}

// What bounds and choices cannot say.
Result<> check_meaning(const ConfigOption& option, std::string_view value) {
  const std::string_view name = option.option.name;
  if (name.ends_with(".replication.throttled.replicas")) {
    if (trimmed(value) == "*" || std::ranges::all_of(list_of(value), names_replica)) return {};
    return refused(option, value,
                   "\"*\", or replicas as partition:broker,partition:broker,... are expected");
  }
  if (name == "cluster.drain.brokers" && !std::ranges::all_of(list_of(value), [](auto id) {
        return integer_of(id).value_or(-1) >= 0;
      })) {
    return refused(option, value, "numbers of brokers are expected, as in 1,2");
  }
  if (name.ends_with("message.format.version") && !record_format_of(trimmed(value))) {
    return refused(option, value, "a release such as 0.10.2 or 2.8 is expected");
  }
  if (name == "compression.gzip.level" && integer_of(value) == 0) {
    return refused(option, value, "Value must be between 1 and 9 or equal to -1");
  }
  if (name == "remote.storage.enable" && lower(trimmed(value)) == "true") {
    return refused(option, value, "tiered storage is not available");
  }
  return {};
}

}  // namespace

ConfigType type_of(const ConfigOption& option) noexcept {
  if (option.has(config_list)) return ConfigType::list;
  switch (option.option.type) {
    case MILLRACE_OPTION_BOOLEAN: return ConfigType::boolean;
    case MILLRACE_OPTION_NUMBER: return ConfigType::number;
    case MILLRACE_OPTION_INTEGER:
      if (option.option.maximum == largest_of(ConfigType::int16)) return ConfigType::int16;
      return option.option.maximum <= largest_of(ConfigType::int32) ? ConfigType::int32
                                                                    : ConfigType::int64;
    default: return ConfigType::text;
  }
}

std::optional<std::int64_t> integer_of(std::string_view text) {
  text = trimmed(text);
  if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<double> number_of(std::string_view text) {
  text = trimmed(text);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || !std::isfinite(value)) {
    return std::nullopt;
  }
  return value;
}

std::vector<std::string_view> list_of(std::string_view value) { return split(value, ','); }
std::string list_text(const std::vector<std::string_view>& values) { return joined(values, ","); }

std::optional<std::int8_t> record_format_of(std::string_view release) {
  const auto parts = split(release.substr(0, release.find("-IV")), '.');
  if (parts.size() < 2 || parts.size() > 4) return std::nullopt;
  if (!std::ranges::all_of(parts, [](auto part) { return integer_of(part) >= 0; })) {
    return std::nullopt;
  }
  const auto major = *integer_of(parts[0]);
  const auto minor = *integer_of(parts[1]);
  if (major > 0 || minor > 10) return std::int8_t{2};
  return static_cast<std::int8_t>(minor == 10 ? 1 : 0);
}

Result<> check_value(const ConfigOption& option, std::string_view value) {
  switch (option.option.type) {
    case MILLRACE_OPTION_INTEGER:
      MR_CHECK(check_number(option, value, integer_of_type(type_of(option), value)));
      break;
    case MILLRACE_OPTION_NUMBER: MR_CHECK(check_number(option, value, number_of(value))); break;
    case MILLRACE_OPTION_BOOLEAN:
      if (const auto text = lower(trimmed(value)); text != "true" && text != "false") {
        return refused(option, value, "Expected value to be either true or false");
      }
      break;
    default:
      if (!option.has(config_list)) {
        MR_CHECK(check_choice(option, trimmed(value)));
        break;
      }
      for (const auto element : list_of(value)) MR_CHECK(check_choice(option, element));
  }
  return check_meaning(option, value);
}

std::string normal_value(const ConfigOption& option, std::string_view value) {
  if (option.has(config_list)) return list_text(list_of(value));
  const auto text = trimmed(value);
  if (option.option.type == MILLRACE_OPTION_BOOLEAN) return lower(text);
  if (option.option.type == MILLRACE_OPTION_INTEGER) {
    if (const auto number = integer_of(text)) return std::to_string(*number);
  }
  return std::string(text);
}

}  // namespace millrace::kernel
