#include "cutting_proxy.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <utility>
#include <vector>

namespace millrace::zookeeper {

namespace {

sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

int connect_to(std::uint16_t port) {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const auto address = loopback(port);
  if (::connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) {
    return socket;
  }
  ::close(socket);
  return -1;
}

// False when the connection is over.
bool hand_on(int from, int to) {
  std::array<char, 65536> bytes;
  const auto taken = ::recv(from, bytes.data(), bytes.size(), 0);
  if (taken <= 0) return false;
  for (ssize_t sent = 0; sent < taken;) {
    const auto more =
        ::send(to, bytes.data() + sent, static_cast<std::size_t>(taken - sent), MSG_NOSIGNAL);
    if (more <= 0) return false;
    sent += more;
  }
  return true;
}

}  // namespace

CuttingProxy::CuttingProxy(std::uint16_t target)
    : target_(target), listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  const auto any = loopback(0);
  const bool ready = ::bind(listener_, reinterpret_cast<const sockaddr*>(&any), sizeof any) == 0 &&
                     ::listen(listener_, SOMAXCONN) == 0 && ::pipe2(wake_, O_CLOEXEC) == 0;
  if (!ready) std::abort();
  thread_ = std::thread([this] { serve(); });
}

CuttingProxy::~CuttingProxy() {
  ends_ = true;
  static_cast<void>(::write(wake_[1], "x", 1));
  thread_.join();
  for (const int descriptor : {listener_, wake_[0], wake_[1]}) ::close(descriptor);
}

std::string CuttingProxy::address() const {
  sockaddr_in bound{};
  socklen_t size = sizeof bound;
  ::getsockname(listener_, reinterpret_cast<sockaddr*>(&bound), &size);
  return "127.0.0.1:" + std::to_string(ntohs(bound.sin_port));
}

void CuttingProxy::cut() {
  cut_ = true;
  static_cast<void>(::write(wake_[1], "x", 1));
}

void CuttingProxy::heal() { cut_ = false; }

void CuttingProxy::serve() const {
  std::vector<std::pair<int, int>> links;
  const auto drop = [](std::pair<int, int> link) {
    ::close(link.first);
    ::close(link.second);
  };
  while (!ends_) {
    std::vector<pollfd> watched{{.fd = wake_[0], .events = POLLIN, .revents = 0},
                                {.fd = listener_, .events = POLLIN, .revents = 0}};
    for (const auto& [client, server] : links) {
      watched.push_back({.fd = client, .events = POLLIN, .revents = 0});
      watched.push_back({.fd = server, .events = POLLIN, .revents = 0});
    }
    if (::poll(watched.data(), watched.size(), -1) < 0) continue;
    std::vector<std::pair<int, int>> kept;
    for (std::size_t at = 0; at < links.size(); ++at) {
      const auto [client, server] = links[at];
      const bool from_client = watched[2 + 2 * at].revents != 0;
      const bool from_server = watched[3 + 2 * at].revents != 0;
      const bool over = cut_ || (from_client && !hand_on(client, server)) ||
                        (from_server && !hand_on(server, client));
      if (over) {
        drop(links[at]);
      } else {
        kept.push_back(links[at]);
      }
    }
    links = std::move(kept);
    if (watched[0].revents != 0) {
      char byte = 0;
      static_cast<void>(::read(wake_[0], &byte, 1));
    }
    if (watched[1].revents != 0) {
      const int client = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      const int server = cut_ ? -1 : connect_to(target_);
      if (server >= 0) {
        links.emplace_back(client, server);
      } else {
        ::close(client);
      }
    }
  }
  for (const auto& link : links) drop(link);
}

}  // namespace millrace::zookeeper
