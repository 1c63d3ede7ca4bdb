// JSON answers. Every error has the same two members: {"error": "NAME", "message": "sentence"}.
#pragma once

#include <string>
#include <string_view>

#include <boost/json/value.hpp>

#include <millrace/error_code.h>
#include <millrace/result.h>

#include "message.h"

namespace millrace::http_transport {

HttpResponse json_response(const boost::json::value& value, unsigned status = 200);
HttpResponse error_response(unsigned status, std::string_view error, std::string_view message);
/// An error of the broker under its own name, UNKNOWN_TOPIC_OR_PARTITION; the status that fits.
HttpResponse error_response(ErrorCode error, std::string_view message);

/// The object that a body must be; the error says what is wrong with it.
Result<boost::json::object> read_object(std::string_view body);

}  // namespace millrace::http_transport
