// The members of a request's body, taken one by one: what is left over was misspelt.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <boost/json/object.hpp>

#include <millrace/result.h>

namespace millrace::http_transport {

/// Errors are Errc::invalid_argument and say what was expected and what was found.
class Members {
 public:
  /// Of a body, which must be a JSON object.
  static Result<Members> read(std::string_view body);

  Result<std::optional<std::string>> text(std::string_view name);
  Result<std::optional<std::int64_t>> integer(std::string_view name, std::int64_t minimum,
                                              std::int64_t maximum);
  Result<std::optional<bool>> boolean(std::string_view name);
  Result<std::optional<boost::json::object>> object(std::string_view name);
  /// Errc::not_found when it is not there; null is a value.
  Result<boost::json::value> any(std::string_view name);

  /// Whether everything was taken.
  Result<> end() const;

 private:
  explicit Members(boost::json::object object) : left_(std::move(object)) {}
  std::optional<boost::json::value> take(std::string_view name);

  boost::json::object left_;
  std::vector<std::string> known_;
};

/// A setting's value as text, also where it was written as a number or a boolean; none: null.
Result<std::optional<std::string>> setting_text(std::string_view name,
                                                const boost::json::value& value);

}  // namespace millrace::http_transport
