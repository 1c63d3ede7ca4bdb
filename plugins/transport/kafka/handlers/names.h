// Between topics as the wire names them (views, ids) and as the broker does.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include <millrace/broker.h>
#include <millrace/utf8.h>

namespace millrace::kafka_transport {

inline constexpr std::size_t message_bytes_max = 4096;

inline TopicName topic_name(std::string_view name, const Uuid& id) {
  return {std::string(name), id};
}
/// Where the wire tells "none" from "empty".
inline std::optional<std::string_view> unless_empty(std::string_view text) {
  return text.empty() ? std::nullopt : std::optional(text);
}
/// What explains an error. The wire has no room for more than 32767 bytes; so long a one echoes
/// what the client has sent, and is cut.
inline std::string_view bounded_message(std::string_view text) {
  return front_of(text, message_bytes_max);
}
inline std::optional<std::string_view> message_of(std::string_view text) {
  return unless_empty(bounded_message(text));
}
inline std::optional<std::string> owned(const std::optional<std::string_view>& text) {
  return text ? std::optional<std::string>(*text) : std::nullopt;
}
inline std::int16_t code_of(ErrorCode error) { return static_cast<std::int16_t>(error); }
inline Duration milliseconds(std::int32_t count) { return std::chrono::milliseconds(count); }

}  // namespace millrace::kafka_transport
