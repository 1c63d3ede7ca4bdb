#include "frame_reader.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include <millrace/bytes.h>

namespace millrace::kafka_transport {

MutableBytes FrameReader::space() {
  if (block_.space().empty()) make_room(pending().size() + 1);
  return block_.space();
}

std::int32_t FrameReader::frame_size() const noexcept {
  return load_be<std::int32_t>(pending().data());
}

FrameReader::Head FrameReader::head() const noexcept {
  const auto* from = pending().data();
  return {load_be<std::int32_t>(from), load_be<std::int16_t>(from + 4),
          load_be<std::int16_t>(from + 6)};
}

std::optional<Buffer> FrameReader::take() {
  const auto size = static_cast<std::size_t>(frame_size());
  if (pending().size() < frame_size_bytes + size) return std::nullopt;
  auto frame = block_.share(taken_ + frame_size_bytes, size);
  taken_ += frame_size_bytes + size;
  return frame;
}

void FrameReader::make_room(std::size_t bytes) {
  if (bytes <= block_.capacity() - taken_) return;
  MutableBuffer block(std::max(bytes, receive_block_bytes));
  block.append(pending());
  block_ = std::move(block);
  taken_ = 0;
}

namespace {

/// What other protocols begin with.
std::string_view foreign_greeting(Bytes pending) {
  static constexpr std::array http = {"GET ", "POST", "PUT ", "HEAD", "OPTI",
                                      "DELE", "PATC", "CONN", "PRI "};
  const auto text = as_text(pending.first(frame_size_bytes));
  if (std::ranges::find(http, text) != http.end()) {
    return "an HTTP request; HTTP is served by the http transport, on its own port";
  }
  if (text == "SSH-") return "an SSH greeting";
  const bool handshake = pending[0] == std::byte{0x16} && pending[1] == std::byte{0x03};
  if (handshake) {
    return "a TLS handshake; this listener is plaintext: set security.protocol=PLAINTEXT in the "
           "client";
  }
  return {};
}

}  // namespace

Result<> check_frame_size(Bytes pending, bool first_frame, std::int32_t frame_bytes_max) {
  const auto size = load_be<std::int32_t>(pending.data());
  // The smallest request is a header of version 0: key, version and correlation id.
  static constexpr std::int32_t frame_bytes_min = 8;
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

}  // namespace millrace::kafka_transport
