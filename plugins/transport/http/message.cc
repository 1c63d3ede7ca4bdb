#include "message.h"

#include <array>
#include <chrono>
#include <cstdio>
#include <utility>

namespace millrace::http_transport {
namespace {

std::string_view reason_of(unsigned status) {
  switch (status) {
    case 200: return "OK";
    case 201: return "Created";
    case 204: return "No Content";
    case 400: return "Bad Request";
    case 403: return "Forbidden";
    case 404: return "Not Found";
    case 405: return "Method Not Allowed";
    case 408: return "Request Timeout";
    case 409: return "Conflict";
    case 413: return "Content Too Large";
    case 415: return "Unsupported Media Type";
    case 417: return "Expectation Failed";
    case 431: return "Request Header Fields Too Large";
    case 501: return "Not Implemented";
    case 503: return "Service Unavailable";
    case 504: return "Gateway Timeout";
    case 505: return "HTTP Version Not Supported";
    default: return "Internal Server Error";
  }
}

}  // namespace

std::string http_date(Timestamp time) {
  static constexpr std::array days = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  static constexpr std::array months = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                        "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  using namespace std::chrono;
  const sys_seconds second(floor<seconds>(milliseconds(time.ms)));
  const auto day = floor<std::chrono::days>(second);
  const year_month_day date(day);
  const hh_mm_ss clock(second - day);
  std::array<char, 40> text{};
  const int size = std::snprintf(
      text.data(), text.size(), "%s, %02u %s %04d %02d:%02d:%02d GMT",
      days[weekday(day).c_encoding()], static_cast<unsigned>(date.day()),
      months[static_cast<unsigned>(date.month()) - 1], static_cast<int>(date.year()),
      static_cast<int>(clock.hours().count()), static_cast<int>(clock.minutes().count()),
      static_cast<int>(clock.seconds().count()));
  return {text.data(), static_cast<std::size_t>(size)};
}

Payload to_payload(const HttpResponse& response, Timestamp now, bool keep_alive, bool head) {
  std::string fields = "HTTP/1.1 " + std::to_string(response.status) + " ";
  fields += reason_of(response.status);
  fields += "\r\nDate: " + http_date(now);
  fields += "\r\nContent-Type: " + response.content_type;
  fields += "\r\nContent-Length: " + std::to_string(response.body.size());
  // What is shown is of this moment, and text that a browser must not take for a page.
  fields += "\r\nCache-Control: no-store\r\nX-Content-Type-Options: nosniff";
  if (!response.allow.empty()) fields += "\r\nAllow: " + response.allow;
  if (!keep_alive) fields += "\r\nConnection: close";
  fields += "\r\n\r\n";
  Payload payload(Buffer::copy_of(fields));
  if (!head) payload.add(Buffer::copy_of(response.body));
  return payload;
}

Payload continue_payload() { return Buffer::copy_of("HTTP/1.1 100 Continue\r\n\r\n"); }

}  // namespace millrace::http_transport
