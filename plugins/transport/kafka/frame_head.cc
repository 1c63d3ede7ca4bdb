#include "frame_head.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include <millrace/bytes.h>

namespace millrace::kafka_transport {
namespace {

/// The smallest request is a header of version 0: key, version and correlation id.
constexpr std::int32_t frame_bytes_min = 8;

/// What other protocols begin with; empty for what may be ours.
std::string_view foreign_greeting(Bytes pending) {
  static constexpr std::array<std::string_view, 9> http = {"GET ", "POST", "PUT ", "HEAD", "OPTI",
                                                           "DELE", "PATC", "CONN", "PRI "};
  const auto text = as_text(pending.first(frame_size_bytes));
  if (std::ranges::find(http, text) != http.end()) {
    return "an HTTP request: HTTP is served by the http transport, on a port of its own";
  }
  if (pending[0] == std::byte{0x16} && pending[1] == std::byte{0x03}) {
    return "a TLS handshake: this listener is plaintext, so set security.protocol=PLAINTEXT in the "
           "client";
  }
  return {};
}

}  // namespace

Result<> check_frame_size(Bytes pending, bool first_frame, std::int32_t frame_bytes_max) {
  const auto size = load_be<std::int32_t>(pending.data());
  const bool in_bounds = frame_bytes_min <= size && size <= frame_bytes_max;
  if (in_bounds && !first_frame) return {};
  const auto greeting = foreign_greeting(pending);
  if (in_bounds && greeting.empty()) return {};
  const auto found =
      greeting.empty() ? "a request size of " + std::to_string(size) : std::string(greeting);
  return Error{Errc::corrupt, "expected a Kafka request of " + std::to_string(frame_bytes_min) +
                                  " to " + std::to_string(frame_bytes_max) +
                                  " bytes (socket.request.max.bytes), found " + found};
}

FrameHead read_frame_head(Bytes pending) noexcept {
  const auto* from = pending.data();
  return {static_cast<std::size_t>(load_be<std::int32_t>(from)), load_be<std::int16_t>(from + 4),
          load_be<std::int16_t>(from + 6)};
}

}  // namespace millrace::kafka_transport
