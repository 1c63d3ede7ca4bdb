#include "members.h"

#include <utility>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

namespace millrace::http_transport {
namespace {

Error expected(std::string_view name, const std::string& what, const boost::json::value& found) {
  return {Errc::invalid_argument,
          std::string(name) + ": expected " + what + ", found " + boost::json::serialize(found)};
}

}  // namespace

Result<Members> Members::read(std::string_view body) {
  if (body.empty()) return Error{Errc::invalid_argument, "expected a JSON object as body"};
  boost::json::error_code error;
  auto value = boost::json::parse(body, error);
  if (error) return Error{Errc::invalid_argument, "the body is not JSON: " + error.message()};
  if (!value.is_object()) return expected("body", "a JSON object", value);
  return Members(std::move(value.get_object()));
}

std::optional<boost::json::value> Members::take(std::string_view name) {
  known_.emplace_back(name);
  const auto found = left_.find(name);
  if (found == left_.end()) return std::nullopt;
  auto value = std::move(found->value());
  left_.erase(found);
  return value;
}

Result<std::optional<std::string>> Members::text(std::string_view name) {
  const auto value = take(name);
  if (!value) return std::nullopt;
  if (!value->is_string()) return expected(name, "a text", *value);
  const auto& text = value->get_string();
  return std::string(text.data(), text.size());
}

Result<std::optional<std::int64_t>> Members::integer(std::string_view name, std::int64_t minimum,
                                                     std::int64_t maximum) {
  const auto value = take(name);
  if (!value) return std::nullopt;
  boost::json::error_code error;
  const auto number = value->is_number() ? value->to_number<std::int64_t>(error) : minimum;
  if (!value->is_number() || error || number < minimum || number > maximum) {
    return expected(name,
                    "an integer from " + std::to_string(minimum) + " to " + std::to_string(maximum),
                    *value);
  }
  return number;
}

Result<std::optional<bool>> Members::boolean(std::string_view name) {
  const auto value = take(name);
  if (!value) return std::nullopt;
  if (!value->is_bool()) return expected(name, "true or false", *value);
  return value->get_bool();
}

Result<std::optional<boost::json::object>> Members::object(std::string_view name) {
  auto value = take(name);
  if (!value) return std::nullopt;
  if (!value->is_object()) return expected(name, "an object", *value);
  return std::move(value->get_object());
}

Result<boost::json::value> Members::any(std::string_view name) {
  auto value = take(name);
  if (value) return *std::move(value);
  return Error{Errc::not_found, std::string(name) + " is missing"};
}

Result<> Members::end() const {
  if (left_.empty()) return {};
  std::string known;
  for (const auto& name : known_) known += (known.empty() ? "" : ", ") + name;
  const auto key = left_.begin()->key();
  return Error{Errc::invalid_argument, "unknown member \"" + std::string(key.data(), key.size()) +
                                           "\"; known are " + known};
}

Result<std::optional<std::string>> setting_text(std::string_view name,
                                                const boost::json::value& value) {
  if (value.is_null()) return std::nullopt;
  if (value.is_number() || value.is_bool()) return boost::json::serialize(value);
  if (!value.is_string()) return expected(name, "a text, a number, a boolean or null", value);
  return std::string(value.get_string().data(), value.get_string().size());
}

}  // namespace millrace::http_transport
