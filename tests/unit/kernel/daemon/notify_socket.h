// Where a service manager would listen.
#pragma once

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace millrace::kernel {

/// A datagram socket under an abstract name that the system has chosen.
class NotifySocket {
 public:
  NotifySocket() : socket_(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
    sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
    auto* any = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(::bind(socket_, any, sizeof address.sun_family), 0);
    socklen_t length = sizeof address;
    EXPECT_EQ(::getsockname(socket_, any, &length), 0);
    const auto name = length - offsetof(sockaddr_un, sun_path) - 1;
    name_ = "@" + std::string(address.sun_path + 1, name);
  }
  ~NotifySocket() { close(); }
  NotifySocket(const NotifySocket&) = delete;
  NotifySocket& operator=(const NotifySocket&) = delete;

  /// For NOTIFY_SOCKET.
  const std::string& name() const { return name_; }
  /// What has come since the last call, a datagram each: it is there when the sender's call is
  /// over.
  std::vector<std::string> told() {
    std::vector<std::string> datagrams;
    std::array<char, 4096> bytes;
    ssize_t count = 0;
    while ((count = ::recv(socket_, bytes.data(), bytes.size(), 0)) >= 0) {
      datagrams.emplace_back(bytes.data(), static_cast<std::size_t>(count));
    }
    return datagrams;
  }
  void close() {
    if (socket_ >= 0) ::close(socket_);
    socket_ = -1;
  }

 private:
  int socket_;
  std::string name_;
};

}  // namespace millrace::kernel
