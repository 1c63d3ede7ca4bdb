#include "kernel/env/network.h"

#include <cerrno>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

#include "kernel/env/socket.h"
#include "kernel/env/system_error.h"

namespace millrace::kernel {
namespace {

// What a name or a figure stands for.
struct Target {
  sockaddr_storage address{};
  socklen_t size = 0;

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&address); }
};
using Targets = std::vector<Target>;

Error resolve_error(const Address& address, int code) {
  if (code == EAI_SYSTEM) return system_error(errno, "resolve " + address.host);
  const bool unknown = code == EAI_NONAME || code == EAI_NODATA || code == EAI_ADDRFAMILY;
  return {unknown ? Errc::not_found : Errc::io,
          "resolve " + address.host + ": " + ::gai_strerror(code)};
}

struct Lookup {
  int code;
  Targets targets;
};

Lookup look_up(const Address& address, int flags) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int code =
      ::getaddrinfo(address.host.c_str(), std::to_string(address.port).c_str(), &hints, &found);
  Lookup result{code, {}};
  if (code != 0) return result;
  for (const auto* entry = found; entry; entry = entry->ai_next) {
    auto& target = result.targets.emplace_back();
    std::memcpy(&target.address, entry->ai_addr, entry->ai_addrlen);
    target.size = entry->ai_addrlen;
  }
  ::freeaddrinfo(found);
  return result;
}

// At least one target. Figures need no worker.
Task<Targets> resolve(BlockingPool& workers, Address address) {
  auto figures = look_up(address, AI_NUMERICHOST);
  if (figures.code == 0) co_return std::move(figures.targets);
  auto work = [address = std::move(address)]() -> Result<Targets> {
    auto names = look_up(address, 0);
    if (names.code != 0) return resolve_error(address, names.code);
    return std::move(names.targets);
  };
  auto looking_up = on_worker(workers, std::move(work));
  co_return co_await std::move(looking_up);
}

Result<std::unique_ptr<Descriptor>> open_socket(EventLoop& loop, const Target& target) {
  const int number =
      ::socket(target.address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (number < 0) return system_error(errno, "open a socket");
  return std::make_unique<Descriptor>(loop, number);
}

bool is_of_this_machine(const sockaddr_storage& address) {
  constexpr std::uint32_t net_mask = 0xff000000;
  constexpr std::uint32_t net = 0x7f000000;
  if (address.ss_family == AF_INET) {
    const auto& ip4 = reinterpret_cast<const sockaddr_in&>(address);
    return (ntohl(ip4.sin_addr.s_addr) & net_mask) == net;
  }
  const auto& ip6 = reinterpret_cast<const sockaddr_in6&>(address).sin6_addr;
  return IN6_IS_ADDR_LOOPBACK(&ip6) != 0;
}

// The system's choice may be one that paces what is sent (bbr): a timer for every piece, which
// costs a quarter of all that is spent on a large answer, for a network that is not there. Set on
// the listener, since a connection that was paced once stays so.
void send_without_pacing(int listener) {
  constexpr std::string_view name = "reno";  // which every system has
  ::setsockopt(listener, IPPROTO_TCP, TCP_CONGESTION, name.data(), name.size());
}

// What is accepted inherits the options of its listener.
Result<std::unique_ptr<Listener>> open_listener(EventLoop& loop, const Target& target,
                                                std::optional<int> send_buffer_bytes,
                                                BlockingPool& workers) {
  const auto failed = [&] {
    return system_error(errno, "listen on " + to_string(address_of(target.address)));
  };
  MR_TRY(auto opened, open_socket(loop, target));
  const int number = opened->number();
  const int on = 1;
  if (::setsockopt(number, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0) return failed();
  if (send_buffer_bytes) {
    const int bytes = *send_buffer_bytes;
    if (::setsockopt(number, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes) != 0) return failed();
  }
  if (is_of_this_machine(target.address)) send_without_pacing(number);
  if (::bind(number, target.get(), target.size) != 0) return failed();
  if (::listen(number, SOMAXCONN) != 0) return failed();
  sockaddr_storage local{};
  socklen_t size = sizeof local;
  if (::getsockname(number, reinterpret_cast<sockaddr*>(&local), &size) != 0) return failed();
  return std::make_unique<SocketListener>(loop, std::move(opened), address_of(local), workers);
}

Task<std::unique_ptr<Stream>> connect_to(EventLoop& loop, Target target, BlockingPool& workers) {
  const auto peer = address_of(target.address);
  const auto what = "connect to " + to_string(peer);
  MR_CO_TRY(auto opened, open_socket(loop, target));
  if (::connect(opened->number(), target.get(), target.size) != 0) {
    if (errno != EINPROGRESS) co_return system_error(errno, what);
    MR_CO_CHECK(co_await opened->writable());
    int failure = 0;
    socklen_t size = sizeof failure;
    ::getsockopt(opened->number(), SOL_SOCKET, SO_ERROR, &failure, &size);
    if (failure != 0) co_return system_error(failure, what);
  }
  co_return std::make_unique<SocketStream>(std::move(opened), peer, workers);
}

EventLoop& loop_of(Shard& shard) { return dynamic_cast<EventLoop&>(shard); }

}  // namespace

Task<std::unique_ptr<Listener>> SocketNetwork::listen(Address address) {
  Shard& here = co_await this_shard();
  auto resolving = resolve(workers_, address);
  MR_CO_TRY(const auto targets, co_await std::move(resolving));
  co_return open_listener(loop_of(here), targets.front(), send_buffer_bytes_, workers_);
}

Task<std::unique_ptr<Stream>> SocketNetwork::connect(Address address) {
  Shard& here = co_await this_shard();
  auto resolving = resolve(workers_, address);
  MR_CO_TRY(const auto targets, co_await std::move(resolving));
  Result<std::unique_ptr<Stream>> connected;
  for (const auto& target : targets) {
    auto connecting = connect_to(loop_of(here), target, workers_);
    connected = co_await std::move(connecting);
    if (connected || connected.error().code == Errc::cancelled) break;
  }
  co_return std::move(connected);
}

}  // namespace millrace::kernel
