// JSON answers. Every error has the same two members: {"error": "NAME", "message": "sentence"}.
#pragma once

#include <string>
#include <string_view>

#include <boost/json/value.hpp>

#include <millrace/error_code.h>
#include <millrace/result.h>

#include "message.h"

namespace millrace::http_transport {

/// Texts may be any bytes: those that are not UTF-8 are shown as U+FFFD.
HttpResponse json_response(const boost::json::value& value, unsigned status = 200);
HttpResponse error_response(unsigned status, std::string_view error, std::string_view message);
/// An error of the broker under its own name, UNKNOWN_TOPIC_OR_PARTITION; the status that fits.
HttpResponse error_response(ErrorCode error, std::string_view message);
/// 400: what is wrong with the request's body.
HttpResponse bad_body(const Error& error);

}  // namespace millrace::http_transport
