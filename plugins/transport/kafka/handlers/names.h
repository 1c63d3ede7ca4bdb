// Between topics as the wire names them (views, ids) and as the broker does.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include <millrace/broker.h>

namespace millrace::kafka_transport {

inline TopicName topic_name(std::string_view name, const Uuid& id) {
  return {std::string(name), id};
}
/// Where the wire tells "none" from "empty".
inline std::optional<std::string_view> unless_empty(std::string_view text) {
  return text.empty() ? std::nullopt : std::optional(text);
}
inline std::optional<std::string> owned(const std::optional<std::string_view>& text) {
  return text ? std::optional<std::string>(*text) : std::nullopt;
}
inline std::int16_t code_of(ErrorCode error) { return static_cast<std::int16_t>(error); }
inline Duration milliseconds(std::int32_t count) { return std::chrono::milliseconds(count); }

}  // namespace millrace::kafka_transport
