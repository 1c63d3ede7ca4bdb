// A request and its answer, as the handlers see them: no bytes, no connection.
#pragma once

#include <string>
#include <string_view>

#include <millrace/payload.h>
#include <millrace/types.h>

namespace millrace::http_transport {

/// What a handler needs of a request. Texts are "" where the request has none.
struct HttpRequest {
  std::string method;
  std::string path;       ///< as sent: percent-encoded; without scheme, host and query
  std::string host;       ///< without the port
  std::string authority;  ///< the Host field: with the port
  std::string origin;
  std::string content_type;
  std::string body;
  bool keep_alive = false;
};

struct HttpResponse {
  unsigned status = 200;
  std::string body;
  std::string content_type = "application/json";
  std::string allow;  ///< of 405: the methods that there are
};

/// Status line, fields and body. Without the body when the request was a HEAD.
Payload to_payload(const HttpResponse& response, Timestamp now, bool keep_alive, bool head);
/// What is sent to a client that waits before it sends its body.
Payload continue_payload();

/// "Sun, 06 Nov 1994 08:49:37 GMT".
std::string http_date(Timestamp time);

}  // namespace millrace::http_transport
