// Which path and method is answered by which handler.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "exchange.h"

namespace millrace::http_transport {

struct Route {
  std::string_view path;  ///< "/admin/topics/NAME": a segment in capitals is any one
  std::string_view method;
  Handler handler;
};

/// Sorted by path. GET stands for HEAD too.
std::span<const Route> all_routes() noexcept;

struct Found {
  Handler handler = nullptr;
  std::vector<std::string> arguments;  ///< what stands in place of the capitals, decoded
};
/// What answers the request, or the answer itself: 404 with all paths, 405 with the methods.
std::variant<Found, HttpResponse> find_route(std::span<const Route> known,
                                             const HttpRequest& request);

}  // namespace millrace::http_transport
