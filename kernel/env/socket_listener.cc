#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>

#include "kernel/env/socket.h"
#include "kernel/env/system_error.h"

namespace millrace::kernel {
namespace {

// How long to leave connections in the backlog when there is no descriptor for them.
constexpr Duration exhausted_wait = std::chrono::milliseconds(100);
// One line about it per so much time.
constexpr Duration exhausted_log_interval = std::chrono::seconds(10);

// The rest is for files, or a crowd of clients would keep logs from being written.
constexpr rlim_t files_share = 4;  // of all: a quarter

// A new descriptor has the lowest number that is free: from this one on so many are open that
// connections may have no more. The limit can be changed at any time.
bool is_for_files(int descriptor) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return false;
  return static_cast<rlim_t>(descriptor) >= limit.rlim_cur - limit.rlim_cur / files_share;
}

enum class Refusal { none_waiting, this_one_failed, exhausted, broken };

// accept(2): errors of the new connection's network are given here; they concern that one alone.
Refusal refusal_of(int number) {
  switch (number) {
    case EAGAIN: return Refusal::none_waiting;
    case EMFILE:
    case ENFILE:
    case ENOBUFS:
    case ENOMEM: return Refusal::exhausted;
    case EBADF:
    case EINVAL:
    case ENOTSOCK:
    case EFAULT: return Refusal::broken;
    default: return Refusal::this_one_failed;
  }
}

struct Accepted {
  int descriptor;
  Address peer;
};

}  // namespace

// Shared with the calls that wait, so that the listener may be destroyed meanwhile.
struct SocketListener::Socket {
  EventLoop& loop;
  std::unique_ptr<Descriptor> descriptor;
  Address local;
  BlockingPool& workers;
  std::optional<MonoTime> exhausted_logged_at{};
  std::optional<MonoTime> refused_at{};  // last

  // Once for a crowd: it is over when nobody was refused for a while.
  void log_refused() {
    const bool told = refused_at && loop.now() < *refused_at + exhausted_log_interval;
    refused_at = loop.now();
    if (told) return;
    loop.log().warning(
        "connections are refused: they have three quarters of the files that may be open, and the "
        "rest is for logs; raise the limit of open files (ulimit -n, LimitNOFILE=)",
        {{"listener", to_string(local)}});
  }
  void log_exhausted(int number) {
    if (exhausted_logged_at && loop.now() < *exhausted_logged_at + exhausted_log_interval) return;
    exhausted_logged_at = loop.now();
    loop.log().warning(
        "connections wait: the system has no descriptor or memory for them; raise the limit of "
        "open files (ulimit -n, LimitNOFILE=)",
        {{"listener", to_string(local)}, {"reason", std::strerror(number)}});
  }
};

namespace {

Task<Accepted> accept_one(std::shared_ptr<SocketListener::Socket> socket) {
  while (true) {
    if (socket->descriptor->closed()) co_return Error{Errc::closed, "the listener was closed"};
    sockaddr_storage peer{};
    socklen_t size = sizeof peer;
    const int descriptor =
        ::accept4(socket->descriptor->number(), reinterpret_cast<sockaddr*>(&peer), &size,
                  SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (descriptor >= 0 && is_for_files(descriptor)) {
      ::close(descriptor);
      socket->log_refused();
      continue;
    }
    if (descriptor >= 0) co_return Accepted{descriptor, address_of(peer)};
    const int number = errno;
    switch (refusal_of(number)) {
      case Refusal::none_waiting: MR_CO_CHECK(co_await socket->descriptor->readable()); break;
      case Refusal::this_one_failed: break;
      case Refusal::exhausted:
        socket->log_exhausted(number);
        MR_CO_CHECK(co_await sleep(exhausted_wait));
        break;
      case Refusal::broken: co_return system_error(number, "accept on " + to_string(socket->local));
    }
  }
}

Task<std::unique_ptr<Stream>> accept_stream(std::shared_ptr<SocketListener::Socket> socket,
                                            EventLoop& owner) {
  auto accepting = accept_one(socket);
  MR_CO_TRY(auto accepted, co_await std::move(accepting));
  auto connected = std::make_unique<Descriptor>(owner, accepted.descriptor);
  co_return std::make_unique<SocketStream>(std::move(connected), std::move(accepted.peer),
                                           socket->workers);
}

}  // namespace

Address address_of(const sockaddr_storage& socket_address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (socket_address.ss_family == AF_INET) {
    const auto& ip4 = reinterpret_cast<const sockaddr_in&>(socket_address);
    ::inet_ntop(AF_INET, &ip4.sin_addr, text.data(), text.size());
    return {text.data(), ntohs(ip4.sin_port)};
  }
  const auto& ip6 = reinterpret_cast<const sockaddr_in6&>(socket_address);
  if (IN6_IS_ADDR_V4MAPPED(&ip6.sin6_addr)) {
    ::inet_ntop(AF_INET, ip6.sin6_addr.s6_addr + 12, text.data(), text.size());
  } else {
    ::inet_ntop(AF_INET6, &ip6.sin6_addr, text.data(), text.size());
  }
  return {text.data(), ntohs(ip6.sin6_port)};
}

SocketListener::SocketListener(EventLoop& loop, std::unique_ptr<Descriptor> listening,
                               Address local, BlockingPool& workers)
    : socket_(std::make_shared<Socket>(loop, std::move(listening), std::move(local), workers)) {}

Task<std::unique_ptr<Stream>> SocketListener::accept(Shard& owner) {
  return accept_stream(socket_, dynamic_cast<EventLoop&>(owner));
}

const Address& SocketListener::local() const noexcept { return socket_->local; }

void SocketListener::close() noexcept { socket_->descriptor->close(); }

}  // namespace millrace::kernel
