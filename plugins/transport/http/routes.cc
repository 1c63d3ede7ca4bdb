#include "routes.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include <boost/json/array.hpp>

#include "handlers/handlers.h"
#include "json.h"

namespace millrace::http_transport {
namespace {

constexpr Route routes[] = {
    {"/admin/aggregates", "GET", handle_list_aggregates},
    {"/admin/aggregates/NAME", "PATCH", handle_replace_aggregate},
    {"/admin/aggregates/NAME/KEY", "GET", handle_query},
    {"/admin/aggregates/NAME/KEY", "POST", handle_command},
    {"/admin/brokers", "GET", handle_brokers},
    {"/admin/brokers/ID/configs", "GET", handle_broker_configs},
    {"/admin/brokers/ID/configs", "PATCH", handle_change_broker_configs},
    {"/admin/config", "GET", handle_config},
    {"/admin/groups", "GET", handle_list_groups},
    {"/admin/groups/NAME", "GET", handle_show_group},
    {"/admin/groups/NAME", "DELETE", handle_delete_group},
    {"/admin/log-level", "GET", handle_log_levels},
    {"/admin/log-level", "PUT", handle_change_log_level},
    {"/admin/plugins", "GET", handle_plugins},
    {"/admin/streams", "GET", handle_list_streams},
    {"/admin/streams", "POST", handle_create_stream},
    {"/admin/streams/NAME", "GET", handle_show_stream},
    {"/admin/streams/NAME", "DELETE", handle_delete_stream},
    {"/admin/streams/NAME/replace", "POST", handle_replace_operator},
    {"/admin/streams/NAME/start", "POST", handle_start_stream},
    {"/admin/streams/NAME/stop", "POST", handle_stop_stream},
    {"/admin/topics", "GET", handle_list_topics},
    {"/admin/topics", "POST", handle_create_topic},
    {"/admin/topics/NAME", "GET", handle_show_topic},
    {"/admin/topics/NAME", "PATCH", handle_grow_topic},
    {"/admin/topics/NAME", "DELETE", handle_delete_topic},
    {"/admin/topics/NAME/configs", "GET", handle_topic_configs},
    {"/admin/topics/NAME/configs", "PATCH", handle_change_topic_configs},
    {"/healthz", "GET", handle_health},
    {"/metrics", "GET", handle_metrics},
};

std::vector<std::string_view> segments_of(std::string_view path) {
  std::vector<std::string_view> segments;
  while (!path.empty()) {
    path.remove_prefix(1);  // the slash
    const auto end = std::min(path.find('/'), path.size());
    segments.push_back(path.substr(0, end));
    path.remove_prefix(end);
  }
  return segments;
}

bool is_open(std::string_view segment) {
  return !segment.empty() && segment.front() >= 'A' && segment.front() <= 'Z';
}

/// "a%2Fb" to "a/b"; a % that is no escape stands for itself.
std::string decoded(std::string_view segment) {
  std::string text;
  for (std::size_t at = 0; at < segment.size(); ++at) {
    unsigned char byte = 0;
    const auto* digits = segment.data() + at + 1;
    if (segment[at] == '%' && at + 2 < segment.size() &&
        std::from_chars(digits, digits + 2, byte, 16).ptr == digits + 2) {
      text += static_cast<char>(byte);
      at += 2;
    } else {
      text += segment[at];
    }
  }
  return text;
}

/// The arguments when `path` is one of the route's.
std::optional<std::vector<std::string>> match(const Route& route,
                                              const std::vector<std::string_view>& path) {
  const auto wanted = segments_of(route.path);
  if (wanted.size() != path.size()) return std::nullopt;
  std::vector<std::string> arguments;
  for (std::size_t at = 0; at < path.size(); ++at) {
    if (is_open(wanted[at])) {
      arguments.push_back(decoded(path[at]));
    } else if (wanted[at] != path[at]) {
      return std::nullopt;
    }
  }
  return arguments;
}

HttpResponse unknown_path(std::span<const Route> known, const std::string& path) {
  boost::json::array paths;
  for (const auto& route : known) {
    if (paths.empty() || paths.back().as_string() != route.path) paths.emplace_back(route.path);
  }
  return json_response({{"error", "not_found"},
                        {"message", "there is no path " + path},
                        {"paths", std::move(paths)}},
                       404);
}

HttpResponse wrong_method(const HttpRequest& request, std::string allow) {
  auto response = error_response(405, "method_not_allowed",
                                 request.path + " takes " + allow + ", found " + request.method);
  response.allow = std::move(allow);
  return response;
}

}  // namespace

std::span<const Route> all_routes() noexcept { return routes; }

std::variant<Found, HttpResponse> find_route(std::span<const Route> known,
                                             const HttpRequest& request) {
  if (!request.path.starts_with('/')) return unknown_path(known, request.path);
  const auto path = segments_of(request.path);
  std::string_view method = request.method;
  if (method == "HEAD") method = "GET";
  std::string allow;
  for (const auto& route : known) {
    auto arguments = match(route, path);
    if (!arguments) continue;
    if (route.method == method) return Found{route.handler, *std::move(arguments)};
    if (!allow.empty()) allow += ", ";
    allow += route.method == "GET" ? "GET, HEAD" : route.method;
  }
  if (allow.empty()) return unknown_path(known, request.path);
  return wrong_method(request, std::move(allow));
}

}  // namespace millrace::http_transport
