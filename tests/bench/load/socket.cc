#include "socket.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>
#include <variant>

#include <millrace/bytes.h>

#include "load.h"

namespace millrace::bench {
namespace {

[[noreturn]] void fail(const std::string& what) {
  throw LoadFailed(what + ": " + std::strerror(errno));
}

sockaddr_in parse(const std::string& address) {
  const auto colon = address.rfind(':');
  sockaddr_in parsed{};
  parsed.sin_family = AF_INET;
  if (colon == std::string::npos ||
      inet_pton(AF_INET, address.substr(0, colon).c_str(), &parsed.sin_addr) != 1) {
    throw LoadFailed("'" + address + "' is not an address of the form 127.0.0.1:9092");
  }
  parsed.sin_port = htons(static_cast<std::uint16_t>(std::stoi(address.substr(colon + 1))));
  return parsed;
}

}  // namespace

Socket::Socket(const std::string& address) : descriptor_(socket(AF_INET, SOCK_STREAM, 0)) {
  const auto peer = parse(address);
  const int on = 1;
  setsockopt(descriptor_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (connect(descriptor_, reinterpret_cast<const sockaddr*>(&peer), sizeof peer) != 0) {
    fail("connect to " + address);
  }
}

Socket::Socket(Socket&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}

Socket::~Socket() {
  if (descriptor_ >= 0) close(descriptor_);
}

void Socket::send(Bytes bytes) {
  while (!bytes.empty()) {
    const auto sent = ::send(descriptor_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0) fail("send");
    bytes = bytes.subspan(static_cast<std::size_t>(sent));
  }
}

std::size_t Socket::receive_some(MutableBytes into) {
  const auto received = recv(descriptor_, into.data(), into.size(), 0);
  if (received < 0) fail("receive");
  if (received == 0) throw LoadFailed("the broker closed the connection");
  return static_cast<std::size_t>(received);
}

void Socket::receive_all(MutableBytes into) {
  while (!into.empty()) into = into.subspan(receive_some(into));
}

Buffer Socket::receive_frame() {
  std::array<std::byte, 4> size{};
  receive_all(size);
  MutableBuffer frame(static_cast<std::size_t>(load_be<std::int32_t>(size.data())));
  const auto space = frame.space();
  receive_all(space);
  frame.filled(space.size());
  return std::move(frame).freeze();
}

Buffer flat(const Payload& payload) {
  MutableBuffer joined(payload.size());
  for (const auto& part : payload.parts()) {
    const auto& bytes = std::get<Buffer>(part);
    std::memcpy(joined.space().data(), bytes.data(), bytes.size());
    joined.filled(bytes.size());
  }
  return std::move(joined).freeze();
}

}  // namespace millrace::bench
