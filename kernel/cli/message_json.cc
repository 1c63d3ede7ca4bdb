#include "kernel/cli/message_json.h"

#include <charconv>

#include <boost/json.hpp>

#include <millrace/utf8.h>

#include "kernel/config/text.h"

namespace millrace::kernel::cli {

namespace {

namespace json = boost::json;

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const auto next = first_code_point(text);
    if (!next.is_valid()) return false;
    text.remove_prefix(next.bytes);
  }
  return true;
}

json::value value_of(const std::optional<Bytes>& bytes) {
  if (!bytes) return nullptr;
  if (is_utf8(as_text(*bytes))) return json::string(as_text(*bytes));
  static constexpr char digits[] = "0123456789abcdef";
  std::string hex;
  for (const auto byte : *bytes) {
    hex += digits[static_cast<unsigned>(byte) >> 4];
    hex += digits[static_cast<unsigned>(byte) & 15];
  }
  return json::object{{"hex", hex}};
}

Error malformed(std::string_view member, std::string_view expected) {
  return {Errc::invalid_argument, concat("\"", shown(member), "\": expected ", expected)};
}

Result<std::string> bytes_of_hex(std::string_view member, std::string_view hex) {
  std::string bytes;
  if (hex.size() % 2 != 0) return malformed(member, "an even count of hexadecimal digits");
  for (; !hex.empty(); hex.remove_prefix(2)) {
    unsigned byte = 0;
    const auto [end, failed] = std::from_chars(hex.begin(), hex.begin() + 2, byte, 16);
    if (failed != std::errc{} || end != hex.begin() + 2) {
      return malformed(member, "hexadecimal digits");
    }
    bytes += static_cast<char>(byte);
  }
  return bytes;
}

Result<std::optional<std::string>> bytes_of(std::string_view member, const json::value& value) {
  if (value.is_null()) return std::optional<std::string>();
  if (value.is_string()) return std::optional<std::string>(value.get_string());
  if (value.is_object() && value.get_object().size() == 1) {
    const auto* hex = value.get_object().if_contains("hex");
    if (hex != nullptr && hex->is_string()) {
      MR_TRY(auto bytes, bytes_of_hex(member, hex->get_string()));
      return std::optional<std::string>(std::move(bytes));
    }
  }
  return malformed(member, "a text, null, or {\"hex\": \"00ff\"}");
}

Result<> read_headers(const json::value& value, Message& message) {
  constexpr std::string_view expected = "an array of {\"key\": \"...\", \"value\": ...}";
  if (!value.is_array()) return malformed("headers", expected);
  for (const auto& element : value.get_array()) {
    if (!element.is_object()) return malformed("headers", expected);
    const auto& header = element.get_object();
    const auto* key = header.if_contains("key");
    const auto* of_it = header.if_contains("value");
    if (key == nullptr || !key->is_string() || header.size() > 2 ||
        (header.size() == 2 && of_it == nullptr)) {
      return malformed("headers", expected);
    }
    std::optional<std::string> bytes;
    if (of_it != nullptr) {
      MR_TRY(bytes, bytes_of("headers", *of_it));
    }
    message.headers.emplace_back(key->get_string(), std::move(bytes));
  }
  return {};
}

Result<std::int64_t> number_of(std::string_view member, const json::value& value,
                               std::int64_t max) {
  const auto* number = value.if_int64();
  if (number != nullptr && *number >= 0 && *number <= max) return *number;
  return malformed(member, "an integer from 0");
}

Result<> read_member(std::string_view name, const json::value& value, Message& message) {
  static const std::vector<std::string> names{"key",       "value", "headers", "partition",
                                              "timestamp", "topic", "offset"};
  if (name == "key") {
    MR_TRY(message.key, bytes_of(name, value));
  } else if (name == "value") {
    MR_TRY(message.value, bytes_of(name, value));
  } else if (name == "headers") {
    MR_CHECK(read_headers(value, message));
  } else if (name == "partition") {
    MR_TRY(const auto number, number_of(name, value, INT32_MAX));
    message.partition = static_cast<std::int32_t>(number);
  } else if (name == "timestamp") {
    // A message of the oldest format has none.
    if (value == json::value(-1)) return {};
    MR_TRY(const auto number, number_of(name, value, INT64_MAX));
    message.timestamp = Timestamp{number};
  } else if (name != "topic" && name != "offset") {
    return Error{Errc::invalid_argument,
                 concat("\"", shown(name), "\" is no member of a message",
                        nearest_hint(name, names), "; there are ", joined(names))};
  }
  return {};
}

}  // namespace

json::object object_of(std::string_view topic, std::int32_t partition, const RecordView& record) {
  json::array headers;
  for (const auto& header : record.headers) {
    headers.emplace_back(json::object{{"key", header.key}, {"value", value_of(header.value)}});
  }
  return {{"topic", topic},
          {"partition", partition},
          {"offset", record.offset.value},
          {"timestamp", record.timestamp.ms},
          {"key", value_of(record.key)},
          {"value", value_of(record.value)},
          {"headers", std::move(headers)}};
}

Result<Message> message_of(std::string_view line) {
  boost::system::error_code failed;
  const auto value = json::parse(line, failed);
  if (failed || !value.is_object()) {
    return Error{Errc::invalid_argument,
                 concat("expected an object such as {\"key\": \"k\", \"value\": \"v\"}, found ",
                        shown(line, 80), failed ? "; this is no JSON: " + failed.message() : "")};
  }
  Message message;
  for (const auto& member : value.get_object()) {
    MR_CHECK(read_member(member.key(), member.value(), message));
  }
  return message;
}

}  // namespace millrace::kernel::cli
