// What the machine itself takes for the same work: one thread, epoll, no protocol. A broker is not
// expected to cost less.
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <deque>
#include <span>
#include <thread>
#include <utility>

#include <millrace/bytes.h>

#include "load.h"
#include "paced.h"
#include "socket.h"

namespace millrace::bench {
namespace {

constexpr std::size_t answer_bytes = 60;
constexpr std::size_t head_bytes = 8;  // of a request: its size, and which file it is for
constexpr std::size_t receive_bytes = 256 << 10;  // at least, of the space for requests
constexpr std::uint32_t asks_for_more =
    UINT32_MAX;  // in place of a file: whoever wants what comes next
constexpr std::uint64_t fetch_bytes = 1 << 20;
constexpr int send_buffer_bytes = 256 << 10;  // as Millrace's socket.send.buffer.bytes

int need(int outcome, const char* what) {
  if (outcome < 0) throw LoadFailed(std::string(what) + ": " + std::strerror(errno));
  return outcome;
}

int open_listener() {
  const int listener = need(socket(AF_INET, SOCK_STREAM, 0), "socket");
  setsockopt(listener, SOL_SOCKET, SO_SNDBUF, &send_buffer_bytes, sizeof send_buffer_bytes);
  setsockopt(listener, IPPROTO_TCP, TCP_CONGESTION, "reno", 4);  // as Millrace on loopback
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

struct Peer {
  int connection = -1;
  Wanted wanted;
  std::vector<std::byte> space;  ///< of requests that are not whole yet
  std::size_t filled = 0;
};

/// The logs: one file for each partition.
struct Logs {
  std::vector<int> files;
  std::vector<std::uint64_t> ends;
  Peer* waiting = nullptr;  ///< for what comes next, and has all until `wanted.offset` of the first
  std::uint32_t crc = 0;
};

void send_all(int connection, Bytes bytes) {
  need(static_cast<int>(send(connection, bytes.data(), bytes.size(), MSG_NOSIGNAL)), "send");
}

void append(Logs& logs, std::uint32_t to, Bytes records) {
  logs.crc ^= crc32c(records);
  const auto written =
      pwrite(logs.files[to], records.data(), records.size(), static_cast<off_t>(logs.ends[to]));
  if (written != static_cast<ssize_t>(records.size())) throw LoadFailed("write");
  logs.ends[to] += records.size();
}

/// What is new of the first log goes to whoever waits for it, behind its size.
void serve_waiting(Logs& logs) {
  if (!logs.waiting || logs.waiting->wanted.offset == logs.ends[0]) return;
  auto& peer = *std::exchange(logs.waiting, nullptr);
  const std::uint64_t bytes = logs.ends[0] - peer.wanted.offset;
  const auto size = std::as_bytes(std::span(&bytes, 1));
  need(static_cast<int>(send(peer.connection, size.data(), size.size(), MSG_NOSIGNAL | MSG_MORE)),
       "send");
  auto position = static_cast<off_t>(peer.wanted.offset);
  if (sendfile(peer.connection, logs.files[0], &position, bytes) != static_cast<ssize_t>(bytes)) {
    throw LoadFailed("sendfile of what came");
  }
  peer.wanted.offset = logs.ends[0];
}

// Each answers what a connection has asked; false when its peer is gone.

/// All requests that one receive has completed, by one send.
bool answer_appends(Peer& peer, Logs& logs) {
  if (peer.space.empty()) peer.space.resize(receive_bytes);
  const auto received =
      recv(peer.connection, peer.space.data() + peer.filled, peer.space.size() - peer.filled, 0);
  if (received <= 0) return received < 0 && errno == EAGAIN;
  peer.filled += static_cast<std::size_t>(received);
  std::size_t at = 0;
  std::size_t answers = 0;
  while (peer.filled - at >= head_bytes) {
    std::array<std::uint32_t, 2> head{};
    std::memcpy(head.data(), peer.space.data() + at, head_bytes);
    const auto whole = head_bytes + head[0];
    if (whole > peer.space.size()) peer.space.resize(whole);
    if (peer.filled - at < whole) break;
    if (head[1] == asks_for_more) {
      logs.waiting = &peer;
    } else {
      append(logs, head[1], Bytes(peer.space).subspan(at + head_bytes, head[0]));
      ++answers;
    }
    at += whole;
  }
  std::memmove(peer.space.data(), peer.space.data() + at, peer.filled - at);
  peer.filled -= at;
  if (answers > 0) send_all(peer.connection, std::vector<std::byte>(answers * answer_bytes));
  serve_waiting(logs);
  return true;
}

bool answer_fetch(Peer& peer, Logs& logs) {
  auto& wanted = peer.wanted;
  if (wanted.bytes == 0) {
    const auto received = recv(peer.connection, &wanted, sizeof wanted, 0);
    if (received <= 0) return received < 0 && errno == EAGAIN;
  }
  while (wanted.bytes > 0) {
    auto position = static_cast<off_t>(wanted.offset);
    const auto sent = sendfile(peer.connection, logs.files[0], &position, wanted.bytes);
    if (sent < 0) return errno == EAGAIN;
    wanted.offset += static_cast<std::uint64_t>(sent);
    wanted.bytes -= static_cast<std::uint64_t>(sent);
  }
  return true;
}

using Answer = bool (*)(Peer& peer, Logs& logs);

void serve(int listener, Logs logs, int connections, Answer answer) {
  std::deque<Peer> peers;
  const int poll = need(epoll_create1(0), "epoll_create");
  const int on = 1;
  for (int at = 0; at < connections; ++at) {
    auto& peer = peers.emplace_back();
    peer.connection = need(accept4(listener, nullptr, nullptr, SOCK_NONBLOCK), "accept");
    setsockopt(peer.connection, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    // A fetch goes on where there is room again; what appends is told as long as there is
    // something.
    const std::uint32_t events = answer == &answer_fetch ? EPOLLIN | EPOLLOUT | EPOLLET : EPOLLIN;
    epoll_event event{.events = events, .data = {.ptr = &peer}};
    need(epoll_ctl(poll, EPOLL_CTL_ADD, peer.connection, &event), "epoll_ctl");
  }
  while (connections > 0) {
    std::array<epoll_event, 16> events;
    const int count = need(epoll_wait(poll, events.data(), events.size(), 10'000), "epoll_wait");
    if (count == 0) throw LoadFailed("no request in 10 s");
    for (int at = 0; at < count; ++at) {
      auto& peer = *static_cast<Peer*>(events[static_cast<std::size_t>(at)].data.ptr);
      if (answer(peer, logs)) continue;
      close(peer.connection);
      --connections;
    }
  }
}

// Runs the server as a process of its own, and `client` with its address.
template <class Client>
Figures beside_server(const Logs& logs, int connections, Answer answer, Client client) {
  const int listener = open_listener();
  const auto child = need(fork(), "fork");
  if (child == 0) {
    try {
      serve(listener, logs, connections, answer);
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
  for (const int file : logs.files) close(file);
  return figures;
}

Logs open_logs(const Load& load) {
  Logs logs;
  for (int at = 0; at < load.partitions; ++at) {
    const auto name = load.file + "-" + std::to_string(at);
    logs.files.push_back(need(open(name.c_str(), O_RDWR | O_CREAT | O_TRUNC, 0600), name.c_str()));
    unlink(name.c_str());  // it goes with its descriptors
  }
  logs.ends.resize(logs.files.size());
  return logs;
}

/// One connection of a client that sends requests of one size, to one log after another.
class Sender {
 public:
  Sender(const std::string& address, const Load& load, int first)
      : socket_(address),
        request_(head_bytes + load.message_bytes),
        partitions_(static_cast<std::uint32_t>(load.partitions)),
        next_(static_cast<std::uint32_t>(first) % partitions_) {
    const auto size = static_cast<std::uint32_t>(load.message_bytes);
    std::memcpy(request_.data(), &size, sizeof size);
  }

  int descriptor() const { return socket_.descriptor(); }
  int in_flight() const { return in_flight_; }

  void send() {
    std::memcpy(request_.data() + 4, &next_, sizeof next_);
    next_ = (next_ + 1) % partitions_;
    socket_.send(request_);
    ++in_flight_;
  }
  /// Takes what is there; returns how many answers that completed.
  int receive() {
    std::array<std::byte, 16 << 10> space;
    received_ += socket_.receive_some(space);
    const auto answers = static_cast<int>(received_ / answer_bytes);
    received_ %= answer_bytes;
    in_flight_ -= answers;
    return answers;
  }
  void receive_all_due() {
    while (in_flight_ > 0) receive();
  }

 private:
  Socket socket_;
  std::vector<std::byte> request_;
  std::uint32_t partitions_;
  std::uint32_t next_;
  std::size_t received_ = 0;
  int in_flight_ = 0;
};

}  // namespace

Figures plain_append(const Load& load) {
  const auto logs = open_logs(load);
  return beside_server(logs, load.connections, answer_appends, [&](const std::string& address) {
    std::vector<Sender> senders;
    for (int at = 0; at < load.connections; ++at) senders.emplace_back(address, load, at);
    Figures figures;
    const auto end = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                        std::chrono::duration<double>(load.seconds));
    // By requests where there are so many of them, otherwise by time.
    std::int64_t unsent = load.messages > 0 ? load.messages : INT64_MAX;
    for (auto& sender : senders) {
      for (int at = 0; at < load.depth && unsent > 0; ++at, --unsent) sender.send();
    }
    std::vector<pollfd> waits;
    for (auto& sender : senders) waits.push_back({sender.descriptor(), POLLIN, 0});
    while (std::ranges::any_of(senders, [](const Sender& one) { return one.in_flight() > 0; })) {
      if (poll(waits.data(), waits.size(), 10'000) <= 0) throw LoadFailed("no answer in 10 s");
      for (std::size_t at = 0; at < senders.size(); ++at) {
        if ((waits[at].revents & POLLIN) == 0) continue;
        const int answers = senders[at].receive();
        figures.messages += answers;
        if (load.messages <= 0 && Clock::now() >= end) unsent = 0;
        for (int n = 0; n < answers && unsent > 0; ++n, --unsent) senders[at].send();
      }
    }
    figures.bytes = figures.messages * static_cast<std::int64_t>(load.message_bytes);
    return figures;
  });
}

Figures plain_end_to_end(const Load& load) {
  const auto logs = open_logs(load);
  const auto count = Pace(load).messages;
  const auto wanted = static_cast<std::uint64_t>(count) * load.message_bytes;
  const auto consume = [wanted](const std::string& address) {
    Socket socket(address);
    std::vector<std::byte> space;
    const std::array<std::uint32_t, 2> ask{0, asks_for_more};
    for (std::uint64_t got = 0; got < wanted;) {
      socket.send(std::as_bytes(std::span(ask)));
      std::uint64_t bytes = 0;
      socket.receive_all(std::as_writable_bytes(std::span(&bytes, 1)));
      space.resize(bytes);
      socket.receive_all(space);
      got += bytes;
    }
  };
  return beside_server(logs, 2, answer_appends, [&](const std::string& address) {
    const std::jthread consumer([&] { consume(address); });
    Sender sender(address, load, 0);
    const Pace pace(load);
    for (std::int64_t at = 0; at < count; ++at) {
      wait_until(pace.due(at));
      sender.send();
      sender.receive_all_due();
    }
    return Figures{.messages = count, .bytes = static_cast<std::int64_t>(wanted)};
  });
}

Figures plain_fetch(const Load& load) {
  const int file = need(open(load.file.c_str(), O_RDONLY), load.file.c_str());
  Logs logs{.files = {file}, .ends = {0}};
  struct stat facts{};
  need(fstat(file, &facts), "stat");
  const auto size = static_cast<std::uint64_t>(facts.st_size);
  const auto read_all = [size, &load](const std::string& address) {
    Socket socket(address);
    std::vector<std::byte> space(fetch_bytes);
    for (int pass = 0; pass < load.passes; ++pass) {
      for (Wanted wanted; wanted.offset < size; wanted.offset += wanted.bytes) {
        wanted.bytes = std::min(fetch_bytes, size - wanted.offset);
        socket.send(std::as_bytes(std::span(&wanted, 1)));
        socket.receive_all(MutableBytes(space).first(wanted.bytes));
      }
    }
  };
  return beside_server(logs, load.connections, answer_fetch, [&](const std::string& address) {
    {
      std::vector<std::jthread> readers;
      for (int at = 0; at < load.connections; ++at)
        readers.emplace_back([&] { read_all(address); });
    }
    return Figures{.bytes = static_cast<std::int64_t>(size) * load.connections * load.passes};
  });
}

}  // namespace millrace::bench
