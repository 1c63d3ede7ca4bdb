// What the machine itself takes for the same work: one thread, epoll, no protocol. A broker is not
// expected to cost less.
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <deque>
#include <thread>

#include "load.h"
#include "socket.h"

namespace millrace::bench {
namespace {

constexpr std::size_t small_request_bytes = 250;  // a produce of one record of 100 B
constexpr std::size_t small_answer_bytes = 60;
constexpr std::uint64_t fetch_bytes = 1 << 20;
constexpr int send_buffer_bytes = 256 << 10;  // as Millrace's socket.send.buffer.bytes

int need(int outcome, const char* what) {
  if (outcome < 0) throw LoadFailed(std::string(what) + ": " + std::strerror(errno));
  return outcome;
}

int open_listener() {
  const int listener = need(socket(AF_INET, SOCK_STREAM, 0), "socket");
  setsockopt(listener, SOL_SOCKET, SO_SNDBUF, &send_buffer_bytes, sizeof send_buffer_bytes);
  sockaddr_in any{.sin_family = AF_INET, .sin_port = 0, .sin_addr = {}, .sin_zero = {}};
  any.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  need(bind(listener, reinterpret_cast<const sockaddr*>(&any), sizeof any), "bind");
  need(listen(listener, SOMAXCONN), "listen");
  return listener;
}

std::string address_of(int listener) {
  sockaddr_in local{};
  socklen_t size = sizeof local;
  need(getsockname(listener, reinterpret_cast<sockaddr*>(&local), &size), "getsockname");
  return "127.0.0.1:" + std::to_string(ntohs(local.sin_port));
}

struct Wanted {
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
};

// Each answers what a connection has asked; false when its peer is gone.

bool answer_small(int connection, int file, Wanted& written) {
  std::array<std::byte, small_request_bytes> request;
  const auto received = recv(connection, request.data(), request.size(), 0);
  if (received <= 0) return received < 0 && errno == EAGAIN;
  // The log of a broker: a write for each request, into the page cache.
  need(static_cast<int>(
           pwrite(file, request.data(), request.size(), static_cast<off_t>(written.offset))),
       "write");
  written.offset += request.size();
  const std::array<std::byte, small_answer_bytes> answer{};
  need(static_cast<int>(send(connection, answer.data(), answer.size(), MSG_NOSIGNAL)), "send");
  return true;
}

bool answer_fetch(int connection, int file, Wanted& wanted) {
  if (wanted.bytes == 0) {
    const auto received = recv(connection, &wanted, sizeof wanted, 0);
    if (received <= 0) return received < 0 && errno == EAGAIN;
  }
  while (wanted.bytes > 0) {
    auto position = static_cast<off_t>(wanted.offset);
    const auto sent = sendfile(connection, file, &position, wanted.bytes);
    if (sent < 0) return errno == EAGAIN;
    wanted.offset += static_cast<std::uint64_t>(sent);
    wanted.bytes -= static_cast<std::uint64_t>(sent);
  }
  return true;
}

using Answer = bool (*)(int connection, int file, Wanted& state);

void serve(int listener, int file, int connections, Answer answer) {
  struct Peer {
    int connection;
    Wanted state;
  };
  std::deque<Peer> peers;
  const int poll = need(epoll_create1(0), "epoll_create");
  const int on = 1;
  for (int at = 0; at < connections; ++at) {
    auto& peer =
        peers.emplace_back(need(accept4(listener, nullptr, nullptr, SOCK_NONBLOCK), "accept"));
    setsockopt(peer.connection, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    epoll_event event{.events = EPOLLIN | EPOLLOUT | EPOLLET, .data = {.ptr = &peer}};
    need(epoll_ctl(poll, EPOLL_CTL_ADD, peer.connection, &event), "epoll_ctl");
  }
  while (connections > 0) {
    std::array<epoll_event, 16> events;
    const int count = need(epoll_wait(poll, events.data(), events.size(), 10'000), "epoll_wait");
    if (count == 0) throw LoadFailed("no request in 10 s");
    for (int at = 0; at < count; ++at) {
      auto& peer = *static_cast<Peer*>(events[static_cast<std::size_t>(at)].data.ptr);
      if (answer(peer.connection, file, peer.state)) continue;
      close(peer.connection);
      --connections;
    }
  }
}

// Runs the server as a process of its own, and `client` with its address.
template <class Client>
Figures beside_server(int file, int connections, Answer answer, Client client) {
  const int listener = open_listener();
  const auto child = need(fork(), "fork");
  if (child == 0) {
    try {
      serve(listener, file, connections, answer);
    } catch (const std::exception& failure) {
      std::fprintf(stderr, "bench-load: the plain server: %s\n", failure.what());
      _exit(1);
    }
    _exit(0);
  }
  const auto started = Clock::now();
  Figures figures = client(address_of(listener));
  figures.seconds = std::chrono::duration<double>(Clock::now() - started).count();
  int status = 0;
  rusage usage{};
  need(wait4(child, &status, 0, &usage), "wait");
  if (status != 0) throw LoadFailed("the plain server failed");
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  figures.server_cpu_seconds = seconds(usage.ru_utime) + seconds(usage.ru_stime);
  close(listener);
  close(file);
  return figures;
}

}  // namespace

Figures plain_small(const Load& load) {
  const int file =
      need(open(load.file.c_str(), O_RDWR | O_CREAT | O_TRUNC, 0600), load.file.c_str());
  return beside_server(file, 1, answer_small, [&](const std::string& address) {
    Socket socket(address);
    const std::array<std::byte, small_request_bytes> request{};
    std::array<std::byte, small_answer_bytes> answer;
    Figures figures;
    const auto end = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                        std::chrono::duration<double>(load.seconds));
    for (; Clock::now() < end; ++figures.messages) {
      socket.send(request);
      socket.receive_all(answer);
    }
    return figures;
  });
}

Figures plain_fetch(const Load& load) {
  const int file = need(open(load.file.c_str(), O_RDONLY), load.file.c_str());
  struct stat facts{};
  need(fstat(file, &facts), "stat");
  const auto size = static_cast<std::uint64_t>(facts.st_size);
  const auto read_all = [size](const std::string& address) {
    Socket socket(address);
    std::vector<std::byte> space(fetch_bytes);
    for (Wanted wanted; wanted.offset < size; wanted.offset += wanted.bytes) {
      wanted.bytes = std::min(fetch_bytes, size - wanted.offset);
      socket.send(std::as_bytes(std::span(&wanted, 1)));
      socket.receive_all(MutableBytes(space).first(wanted.bytes));
    }
  };
  return beside_server(file, load.connections, answer_fetch, [&](const std::string& address) {
    {
      std::vector<std::jthread> readers;
      for (int at = 0; at < load.connections; ++at)
        readers.emplace_back([&] { read_all(address); });
    }
    return Figures{.bytes = static_cast<std::int64_t>(size) * load.connections};
  });
}

}  // namespace millrace::bench
