#include "access.h"

#include <algorithm>
#include <string_view>

#include "json.h"

namespace millrace::http_transport {
namespace {

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c; }

bool same_name(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, {}, lower, lower);
}

/// No name of the DNS consists of digits and dots alone or has a colon.
bool is_address(std::string_view host) {
  if (host.find(':') != host.npos) return true;
  return host.find_first_not_of("0123456789.") == host.npos && host.find('.') != host.npos;
}

bool is_known(const HttpRequest& request, const Settings& settings) {
  const auto& host = request.host;
  if (is_address(host) || same_name(host, "localhost")) return true;
  return std::ranges::any_of(settings.hosts,
                             [&host](const auto& known) { return same_name(known, host); });
}

bool is_same_origin(const HttpRequest& request) {
  return request.origin.empty() || same_name(request.origin, "http://" + request.authority);
}

bool is_json(std::string_view content_type) {
  auto type = content_type.substr(0, content_type.find(';'));
  while (type.ends_with(' ')) type.remove_suffix(1);
  return same_name(type, "application/json");
}

}  // namespace

std::optional<HttpResponse> refuse_access(const HttpRequest& request, const Settings& settings) {
  if (!is_known(request, settings)) {
    return error_response(403, "unknown_host",
                          "Host is \"" + request.host +
                              "\": /admin is called by an address, by localhost, or by a name that "
                              "stands in transport.http.hosts");
  }
  if (!is_same_origin(request)) {
    return error_response(403, "cross_origin",
                          "this request comes from a page of " + request.origin +
                              ": /admin is not for pages of other origins");
  }
  if (!request.body.empty() && !is_json(request.content_type)) {
    return error_response(
        415, "unsupported_media_type",
        "expected Content-Type: application/json, found \"" + request.content_type + "\"");
  }
  return std::nullopt;
}

}  // namespace millrace::http_transport
