#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <mutex>
#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <millrace/cached_file.h>

#include "environment_fixture.h"
#include "kernel/env/metrics.h"

namespace millrace::kernel {
namespace {

using testing::HasSubstr;

const Address loopback{"127.0.0.1", 0};

std::vector<std::byte> pattern(std::size_t bytes) {
  std::vector<std::byte> content(bytes);
  std::uint32_t state = 1;
  for (auto& byte : content) byte = std::byte((state = state * 1664525 + 1013904223) >> 24);
  return content;
}

Task<> receive_exactly(Stream& stream, std::vector<std::byte>& into, std::size_t bytes) {
  while (into.size() < bytes) {
    const auto before = into.size();
    into.resize(bytes);
    auto receiving = stream.receive(MutableBytes(into).subspan(before));
    MR_CO_TRY(const auto received, co_await std::move(receiving));
    if (received == 0) co_return Error{Errc::closed, "ended after " + std::to_string(before)};
    into.resize(before + received);
  }
  co_return {};
}

/// Two streams of one connection, the accepted end on shard 1 and the other on shard 0.
class SocketTest : public EnvironmentTest {
 protected:
  void connect() {
    auto listening =
        run(environment().control(), [&] { return environment().network().listen(loopback); });
    ASSERT_TRUE(listening) << listening.error().detail;
    listener_ = *std::move(listening);
    auto connecting =
        run(shard(0), [&] { return environment().network().connect(listener_->local()); });
    ASSERT_TRUE(connecting) << connecting.error().detail;
    client_ = *std::move(connecting);
    auto accepting = run(environment().control(), [&] { return listener_->accept(shard(1)); });
    ASSERT_TRUE(accepting) << accepting.error().detail;
    server_ = *std::move(accepting);
  }

  /// Each ends on the shard it belongs to.
  void TearDown() override {
    drop(shard(0), client_);
    drop(shard(1), server_);
    drop(environment().control(), listener_);
  }
  template <class T>
  static void drop(Shard& owner, std::unique_ptr<T>& what) {
    auto dropping = [](std::unique_ptr<T>& object) -> Task<> {
      object.reset();
      co_return {};
    };
    EXPECT_TRUE(run(owner, [&] { return dropping(what); }));
  }

  Result<> send(Payload payload) {
    return run(shard(0), [this, payload = std::move(payload)]() mutable {
      return client_->send(std::move(payload));
    });
  }
  Result<std::vector<std::byte>> receive_at_server(std::size_t bytes) {
    std::vector<std::byte> content;
    MR_CHECK(run(shard(1), [&] { return receive_exactly(*server_, content, bytes); }));
    return content;
  }

  std::unique_ptr<Listener> listener_;
  std::unique_ptr<Stream> client_;
  std::unique_ptr<Stream> server_;
};

TEST_F(SocketTest, TellsBothEndsWhoTheOtherIs) {
  connect();
  EXPECT_EQ(client_->peer(), listener_->local());
  EXPECT_EQ(server_->peer().host, "127.0.0.1");
  EXPECT_NE(server_->peer().port, 0);
  EXPECT_NE(listener_->local().port, 0);
}

TEST_F(SocketTest, EchoesManySmallMessages) {
  connect();
  auto echo = [](Stream& stream) -> Task<> {
    std::array<std::byte, 100> space;
    while (true) {
      auto receiving = stream.receive(space);
      MR_CO_TRY(const auto bytes, co_await std::move(receiving));
      if (bytes == 0) co_return {};
      auto sending = stream.send(Buffer::copy_of(Bytes(space).first(bytes)));
      MR_CO_CHECK(co_await std::move(sending));
    }
  };
  shard(1).post([&] { spawn(shard(1), echo(*server_), "echo"); });
  auto ask = [](Stream& stream) -> Task<int> {
    int equal = 0;
    for (int i = 0; i < 2000; ++i) {
      const auto text = "message " + std::to_string(i);
      auto sending = stream.send(Buffer::copy_of(text));
      MR_CO_CHECK(co_await std::move(sending));
      std::vector<std::byte> answer;
      auto receiving = receive_exactly(stream, answer, text.size());
      MR_CO_CHECK(co_await std::move(receiving));
      equal += as_text(answer) == text;
    }
    stream.close();
    co_return equal;
  };
  EXPECT_EQ(run(shard(0), [&] { return ask(*client_); }).value_or(0), 2000);
}

TEST_F(SocketTest, SendsBuffersAndFileRangesInOrder) {
  connect();
  const auto content = pattern(24 << 20);
  auto opened = environment().files().open(folder_ / "log", OpenMode::create);
  ASSERT_TRUE(opened);
  const Bytes whole(content);
  ASSERT_TRUE((*opened)->write_at(0, std::span(&whole, 1)));

  // Many buffers, so that one call does not take them all, around ranges of the file.
  Payload payload;
  std::vector<std::byte> expected;
  const auto add_buffers = [&](std::size_t count, std::size_t bytes) {
    for (std::size_t i = 0; i < count; ++i) {
      const auto part = Bytes(content).subspan(i * bytes, bytes);
      payload.add(Buffer::copy_of(part));
      expected.insert(expected.end(), part.begin(), part.end());
    }
  };
  const auto add_range = [&](std::size_t at, std::size_t bytes) {
    payload.add(FileRange{*opened, at, bytes});
    expected.insert(expected.end(), content.begin() + static_cast<std::ptrdiff_t>(at),
                    content.begin() + static_cast<std::ptrdiff_t>(at + bytes));
  };
  add_buffers(200, 77);
  add_range(12'345, 20 << 20);
  add_buffers(1, 3 << 20);
  add_range(1, 1);
  add_range(content.size() - 4096, 4096);
  add_buffers(3, 10'000);

  auto sent = [](Stream& stream, Payload bytes, Gate::Pass) -> Task<> {
    auto sending = stream.send(std::move(bytes));
    co_return co_await std::move(sending);
  };
  Gate sending;
  shard(0).post(
      [&] { spawn(shard(0), sent(*client_, std::move(payload), *sending.enter()), "send"); });
  const auto received = receive_at_server(expected.size());
  ASSERT_TRUE(received) << received.error().detail;
  EXPECT_TRUE(*received == expected);
  ASSERT_TRUE(run(shard(0), [&] { return sending.close(); }));

  const EnvironmentMetrics counted(metrics_);
  EXPECT_EQ(counted.received_bytes.value(), expected.size());
  EXPECT_EQ(counted.sent_from_files_bytes.value(), (20U << 20) + 1 + 4096);
  EXPECT_EQ(counted.sent_from_memory_bytes.value(), 200U * 77 + (3U << 20) + 30'000);
}

/// A file that the system does not know.
class MemoryFile final : public File {
 public:
  explicit MemoryFile(std::vector<std::byte> content) : content_(std::move(content)) {}
  Result<std::size_t> read_at(std::uint64_t position, MutableBytes into) const override {
    const auto from = Bytes(content_).subspan(std::min<std::size_t>(position, content_.size()));
    const auto bytes = std::min(from.size(), into.size());
    std::ranges::copy(from.first(bytes), into.begin());
    return bytes;
  }
  Result<> write_at(std::uint64_t, std::span<const Bytes>) override { return {}; }
  Result<> truncate(std::uint64_t) override { return {}; }
  Result<> sync() override { return {}; }
  Result<std::uint64_t> size() const override { return content_.size(); }
  bool resident(std::uint64_t, std::uint64_t) const noexcept override { return true; }
  const std::string& path() const noexcept override { return path_; }

 private:
  std::vector<std::byte> content_;
  std::string path_ = "memory";
};

TEST_F(SocketTest, ReadsFilesThatHaveNoDescriptor) {
  connect();
  const auto content = pattern(1'000'000);
  Payload payload(Buffer::copy_of("head"));
  payload.add(FileRange{std::make_shared<MemoryFile>(content), 5, content.size() - 5});
  payload.add(Buffer::copy_of("tail"));
  const auto bytes = payload.size();
  shard(0).post([&] { spawn(shard(0), client_->send(std::move(payload)), "send"); });
  const auto received = receive_at_server(bytes);
  ASSERT_TRUE(received) << received.error().detail;
  EXPECT_EQ(as_text(Bytes(*received).first(4)), "head");
  EXPECT_EQ(as_text(Bytes(*received).last(4)), "tail");
  EXPECT_TRUE(std::equal(content.begin() + 5, content.end(), received->begin() + 4));
}

TEST_F(SocketTest, AFileShorterThanItsRangeFailsTheSend) {
  connect();
  auto opened = environment().files().open(folder_ / "short", OpenMode::create);
  ASSERT_TRUE(opened);
  Payload payload;
  payload.add(FileRange{*opened, 100, 10});
  const auto sent = send(std::move(payload));
  ASSERT_FALSE(sent);
  EXPECT_EQ(sent.error().code, Errc::corrupt);
  EXPECT_THAT(sent.error().detail, HasSubstr("short: ends at or before byte 100"));
}

/// A file that is never in memory, and says which threads bring it in.
class ForgottenFile final : public File, public CachedFile {
 public:
  explicit ForgottenFile(std::shared_ptr<File> file) : file_(std::move(file)) {}
  Result<std::size_t> read_at(std::uint64_t position, MutableBytes into) const override {
    return file_->read_at(position, into);
  }
  Result<> write_at(std::uint64_t, std::span<const Bytes>) override { return {}; }
  Result<> truncate(std::uint64_t) override { return {}; }
  Result<> sync() override { return {}; }
  Result<std::uint64_t> size() const override { return file_->size(); }
  bool resident(std::uint64_t, std::uint64_t) const noexcept override { return false; }
  const std::string& path() const noexcept override { return file_->path(); }
  int descriptor() const noexcept override { return file_->descriptor(); }
  Result<> bring_in(std::uint64_t, std::uint64_t) const override {
    std::array<char, 16> name{};
    ::pthread_getname_np(::pthread_self(), name.data(), name.size());
    const std::lock_guard lock(mutex_);
    by_.emplace_back(name.data());
    return {};
  }
  void forget(std::uint64_t, std::uint64_t) const noexcept override {}
  std::vector<std::string> brought_in_by() const {
    const std::lock_guard lock(mutex_);
    return by_;
  }

 private:
  std::shared_ptr<File> file_;
  mutable std::mutex mutex_;
  mutable std::vector<std::string> by_;
};

TEST_F(SocketTest, WhatASlowPeerHasNoRoomForIsBroughtBackByAWorker) {
  connect();
  const auto content = pattern(16 << 20);  // more than the system keeps for a peer
  auto opened = environment().files().open(folder_ / "old", OpenMode::create);
  ASSERT_TRUE(opened);
  const Bytes part(content);
  ASSERT_TRUE((*opened)->write_at(0, std::span(&part, 1)));
  const auto file = std::make_shared<ForgottenFile>(*opened);
  Payload payload;
  payload.add(FileRange{file, 0, content.size()});
  shard(0).post([&] { spawn(shard(0), client_->send(std::move(payload)), "send"); });
  // The peer takes its time.
  ASSERT_TRUE(run(shard(1), [] { return sleep(std::chrono::milliseconds(150)); }));
  const auto received = receive_at_server(content.size());
  ASSERT_TRUE(received) << received.error().detail;
  EXPECT_TRUE(*received == content);
  const auto by = file->brought_in_by();
  EXPECT_FALSE(by.empty());
  for (const auto& thread : by) EXPECT_THAT(thread, testing::StartsWith("mr-worker-"));
}

// Whoever else has something to do goes on in the next round.
TEST_F(SocketTest, HoweverManyReadMuchARoundOfTheLoopSendsABoundedPart) {
  constexpr std::size_t connections = 8;
  constexpr std::size_t bytes = 16 << 20;
  auto opened = environment().files().open(folder_ / "log", OpenMode::create);
  ASSERT_TRUE(opened);
  const auto content = pattern(bytes);
  const Bytes whole(content);
  ASSERT_TRUE((*opened)->write_at(0, std::span(&whole, 1)));

  std::vector<std::unique_ptr<Stream>> clients;
  std::vector<std::unique_ptr<Stream>> servers;
  for (std::size_t at = 0; at < connections; ++at) {
    ASSERT_NO_FATAL_FAILURE(connect());
    clients.push_back(std::move(client_));
    servers.push_back(std::move(server_));
    drop(environment().control(), listener_);
  }
  const EnvironmentMetrics counted(metrics_);
  std::uint64_t most_of_a_round = 0;
  std::uint64_t before = 0;
  std::function<void()> each_round = [&] {
    const auto now = counted.sent_from_files_bytes.value();
    most_of_a_round = std::max(most_of_a_round, now - std::exchange(before, now));
    if (now < connections * bytes) shard(0).post([&] { each_round(); });
  };
  auto read_all = [](std::vector<std::unique_ptr<Stream>>& streams) -> Task<> {
    std::vector<std::byte> space(1 << 20);
    for (auto& stream : streams) {
      for (std::size_t got = 0; got < bytes;) {
        auto receiving = stream->receive(space);
        MR_CO_TRY(const auto received, co_await std::move(receiving));
        got += received;
      }
    }
    co_return {};
  };
  shard(0).post([&] {
    for (auto& client : clients) {
      Payload payload;
      payload.add(FileRange{*opened, 0, bytes});
      spawn(shard(0), client->send(std::move(payload)), "send");
    }
    each_round();
  });
  const auto read = run(shard(1), [&] { return read_all(servers); });
  EXPECT_TRUE(read) << read.error().detail;
  const auto rest = run(shard(0), [] { return sleep(std::chrono::milliseconds(1)); });
  EXPECT_TRUE(rest);
  EXPECT_GT(most_of_a_round, 64U << 10);
  EXPECT_LE(most_of_a_round, 4U << 20);
  for (auto& client : clients) drop(shard(0), client);
  for (auto& server : servers) drop(shard(1), server);
}

TEST_F(SocketTest, CloseWakesTheReceiverAndTheSender) {
  connect();
  std::vector<Errc> ends;
  auto receive = [](Stream& stream, std::vector<Errc>& codes) -> Task<> {
    std::array<std::byte, 10> space;
    auto receiving = stream.receive(space);
    const auto received = co_await std::move(receiving);
    codes.push_back(received ? Errc::ok : received.error().code);
    co_return {};
  };
  auto send_much = [](Stream& stream, std::vector<Errc>& codes) -> Task<> {
    auto sending = stream.send(MutableBuffer(1).freeze());
    MR_CO_CHECK(co_await std::move(sending));
    const auto much = pattern(64 << 20);
    sending = stream.send(Buffer::copy_of(much));
    const auto sent = co_await std::move(sending);
    codes.push_back(sent ? Errc::ok : sent.error().code);
    co_return {};
  };
  auto scenario = [&]() -> Task<> {
    return [](Stream& stream, auto first, auto second, std::vector<Errc>& codes) -> Task<> {
      Shard& here = co_await this_shard();
      auto receiving = start(here, first(stream, codes));
      auto sending = start(here, second(stream, codes));
      stream.close();
      stream.close();
      MR_CO_CHECK(co_await receiving);
      co_return co_await sending;
    }(*client_, receive, send_much, ends);
  };
  EXPECT_TRUE(run(shard(0), scenario));
  EXPECT_THAT(ends, testing::ElementsAre(Errc::closed, Errc::closed));
}

TEST_F(SocketTest, AStreamMayBeDestroyedWhileItIsWaitedFor) {
  connect();
  auto scenario = [](std::unique_ptr<Stream> stream) -> Task<> {
    Shard& here = co_await this_shard();
    std::array<std::byte, 10> space;
    auto receiving = start(here, stream->receive(space));
    stream.reset();
    const auto received = co_await receiving;
    if (!received && received.error().code == Errc::closed) co_return {};
    co_return Error{Errc::internal, "not closed"};
  };
  EXPECT_TRUE(run(shard(0), [&] { return scenario(std::move(client_)); }));
}

TEST_F(SocketTest, ACancelledReceiveLosesNothing) {
  connect();
  auto scenario = [](Stream& stream) -> Task<> {
    std::array<std::byte, 10> space;
    auto receiving = with_deadline(stream.receive(space), std::chrono::milliseconds(1));
    const auto received = co_await std::move(receiving);
    if (received || received.error().code != Errc::timed_out) {
      co_return Error{Errc::internal, "did not time out"};
    }
    co_return {};
  };
  EXPECT_TRUE(run(shard(1), [&] { return scenario(*server_); }));
  ASSERT_TRUE(send(Buffer::copy_of("later")));
  const auto received = receive_at_server(5);
  ASSERT_TRUE(received) << received.error().detail;
  EXPECT_EQ(as_text(*received), "later");
}

TEST_F(SocketTest, APeerThatVanishesIsAClosedStream) {
  connect();
  // Bytes it has not read make the system answer with a reset.
  ASSERT_TRUE(send(Buffer::copy_of("unread")));
  drop(shard(1), server_);
  auto provoke = [](Stream& stream) -> Task<> {
    while (true) {
      auto sending = stream.send(Buffer::copy_of("x"));
      MR_CO_CHECK(co_await std::move(sending));
      MR_CO_CHECK(co_await sleep(std::chrono::milliseconds(1)));
    }
  };
  const auto result = run(shard(0), [&] { return provoke(*client_); });
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, Errc::closed) << result.error().detail;
  EXPECT_THAT(result.error().detail, HasSubstr("send to 127.0.0.1:"));
}

// How the system holds back what this end of an accepted connection sends; "" if it is not found.
std::string congestion_control_of(const Address& local) {
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    const int number = std::stoi(entry.path().filename());
    sockaddr_in here{};
    sockaddr_in there{};
    socklen_t here_size = sizeof here;
    socklen_t there_size = sizeof there;
    if (::getsockname(number, reinterpret_cast<sockaddr*>(&here), &here_size) != 0) continue;
    if (here.sin_family != AF_INET || ntohs(here.sin_port) != local.port) continue;
    if (::getpeername(number, reinterpret_cast<sockaddr*>(&there), &there_size) != 0) continue;
    std::array<char, 16> name{};
    socklen_t size = name.size() - 1;
    ::getsockopt(number, IPPROTO_TCP, TCP_CONGESTION, name.data(), &size);
    return name.data();
  }
  return "";
}

TEST_F(SocketTest, WhatStaysOnThisMachineIsNotPaced) {
  connect();
  EXPECT_EQ(congestion_control_of(listener_->local()), "reno");
}

/// A plain blocking socket: what a client of another make does.
int plain_connection(const Address& to) {
  const int number = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in target{
      .sin_family = AF_INET, .sin_port = htons(to.port), .sin_addr = {}, .sin_zero = {}};
  ::inet_pton(AF_INET, to.host.c_str(), &target.sin_addr);
  EXPECT_EQ(::connect(number, reinterpret_cast<sockaddr*>(&target), sizeof target), 0);
  return number;
}

TEST_F(SocketTest, AnswersAPeerThatHasClosedItsSide) {
  connect();
  const int peer = plain_connection(listener_->local());
  ASSERT_EQ(::send(peer, "question", 8, 0), 8);
  ::shutdown(peer, SHUT_WR);
  auto accepting = run(environment().control(), [&] { return listener_->accept(shard(1)); });
  ASSERT_TRUE(accepting);
  auto serve = [](std::unique_ptr<Stream> stream) -> Task<std::size_t> {
    std::vector<std::byte> question;
    auto receiving = receive_exactly(*stream, question, 8);
    MR_CO_CHECK(co_await std::move(receiving));
    std::array<std::byte, 10> space;
    auto ending = stream->receive(space);
    MR_CO_TRY(const auto at_end, co_await std::move(ending));
    auto sending = stream->send(Buffer::copy_of("answer"));
    MR_CO_CHECK(co_await std::move(sending));
    co_return at_end;
  };
  const auto at_end = run(shard(1), [&] { return serve(*std::move(accepting)); });
  EXPECT_EQ(at_end.value_or(99), 0);
  char answer[10];
  EXPECT_EQ(::recv(peer, answer, sizeof answer, MSG_WAITALL), 6);
  ::close(peer);
}

// What is there to be read and what has ended is told for as long as it lasts.
TEST_F(SocketTest, WhatNobodyReadsKeepsNoLoopBusy) {
  connect();
  ASSERT_TRUE(send(Buffer::copy_of("first")));
  ASSERT_TRUE(receive_at_server(5));
  ASSERT_TRUE(send(Buffer::copy_of("second")));
  drop(shard(0), client_);
  const auto cpu_time = [] {
    timespec time{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
  };
  auto measure = [&cpu_time]() -> Task<Duration> {
    const auto before = cpu_time();
    MR_CO_CHECK(co_await sleep(std::chrono::milliseconds(200)));
    co_return Duration(cpu_time() - before);
  };
  const auto busy = run(shard(1), measure);
  ASSERT_TRUE(busy);
  EXPECT_LT(*busy, std::chrono::milliseconds(20));
  EXPECT_TRUE(receive_at_server(6)) << "it is there when somebody asks";
}

// ---- listening and connecting ----

TEST_F(SocketTest, CloseWakesTheAcceptor) {
  connect();
  auto scenario = [](Listener& listener) -> Task<> {
    Shard& here = co_await this_shard();
    auto accepting = start(here, listener.accept(here));
    listener.close();
    const auto accepted = co_await accepting;
    if (!accepted && accepted.error().code == Errc::closed) co_return {};
    co_return Error{Errc::internal, "not closed"};
  };
  EXPECT_TRUE(run(environment().control(), [&] { return scenario(*listener_); }));
}

TEST_F(SocketTest, ACancelledAcceptLosesNoConnection) {
  connect();
  auto scenario = [](Listener& listener) -> Task<> {
    Shard& here = co_await this_shard();
    auto accepting = with_deadline(listener.accept(here), std::chrono::milliseconds(1));
    const auto accepted = co_await std::move(accepting);
    if (!accepted && accepted.error().code == Errc::timed_out) co_return {};
    co_return Error{Errc::internal, "did not time out"};
  };
  ASSERT_TRUE(run(environment().control(), [&] { return scenario(*listener_); }));
  const int peer = plain_connection(listener_->local());
  auto accepting = run(environment().control(), [&] { return listener_->accept(shard(1)); });
  ASSERT_TRUE(accepting) << accepting.error().detail;
  drop(shard(1), *accepting);
  ::close(peer);
}

TEST_F(SocketTest, ACancelledConnectEnds) {
  // A listener whose backlog is full drops further requests: connecting to it takes for ever.
  const int full = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in local{.sin_family = AF_INET, .sin_port = 0, .sin_addr = {}, .sin_zero = {}};
  local.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof local;
  ASSERT_EQ(::bind(full, reinterpret_cast<sockaddr*>(&local), size), 0);
  ASSERT_EQ(::listen(full, 0), 0);
  ASSERT_EQ(::getsockname(full, reinterpret_cast<sockaddr*>(&local), &size), 0);
  const Address address{"127.0.0.1", ntohs(local.sin_port)};
  const int waiting = plain_connection(address);

  const auto connected = block_on(shard(0), [&] {
    return with_deadline(environment().network().connect(address), std::chrono::milliseconds(20));
  });
  ASSERT_FALSE(connected);
  EXPECT_EQ(connected.error().code, Errc::timed_out) << connected.error().detail;
  ::close(waiting);
  ::close(full);
}

TEST_F(SocketTest, AnAddressInUseIsAConflictThatNamesIt) {
  connect();
  const auto again = run(environment().control(),
                         [&] { return environment().network().listen(listener_->local()); });
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, Errc::conflict);
  EXPECT_EQ(again.error().detail,
            "listen on " + to_string(listener_->local()) + ": Address already in use");
}

TEST_F(SocketTest, AnAddressOfAnotherMachineIsRefused) {
  const auto listening = run(environment().control(),
                             [&] { return environment().network().listen({"192.0.2.1", 0}); });
  ASSERT_FALSE(listening);
  EXPECT_EQ(listening.error().code, Errc::invalid_argument) << listening.error().detail;
}

TEST_F(SocketTest, ResolvesNames) {
  connect();
  auto connecting = run(shard(0), [&] {
    return environment().network().connect({"localhost", listener_->local().port});
  });
  ASSERT_TRUE(connecting) << connecting.error().detail;
  EXPECT_EQ((*connecting)->peer(), listener_->local());
  drop(shard(0), *connecting);
  const auto unknown =
      run(shard(0), [&] { return environment().network().connect({"nobody.invalid", 1}); });
  ASSERT_FALSE(unknown);
  EXPECT_THAT(unknown.error().detail, HasSubstr("resolve nobody.invalid: "));
}

TEST_F(SocketTest, AClosedPortRefusesTheConnection) {
  connect();
  const auto address = listener_->local();
  drop(environment().control(), listener_);
  const auto refused = run(shard(0), [&] { return environment().network().connect(address); });
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().detail, "connect to " + to_string(address) + ": Connection refused");
}

TEST_F(SocketTest, RunningOutOfDescriptorsIsWaitedOut) {
  connect();
  const int peer = plain_connection(listener_->local());
  // The lowest free number is the limit: not one more can be opened.
  const int lowest_free = ::dup(peer);
  ::close(lowest_free);
  rlimit before{};
  ::getrlimit(RLIMIT_NOFILE, &before);
  const rlimit none{static_cast<rlim_t>(lowest_free), before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);

  auto scenario = [](Listener& listener, Shard& owner, KeptLog& log, rlimit limit) -> Task<> {
    Shard& here = co_await this_shard();
    auto accepting = start(here, listener.accept(owner));
    while (log.lines().empty()) MR_CO_CHECK(co_await sleep(std::chrono::milliseconds(1)));
    ::setrlimit(RLIMIT_NOFILE, &limit);
    MR_CO_TRY(const auto stream, co_await accepting);
    co_return {};
  };
  const auto result =
      run(environment().control(), [&] { return scenario(*listener_, shard(1), log_, before); });
  ::setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_TRUE(result) << result.error().detail;
  EXPECT_THAT(log_.lines(), testing::ElementsAre(HasSubstr("Too many open files")));
  ::close(peer);
}

TEST_F(SocketTest, StopCancelsWhoWaitsForAPeer) {
  connect();
  std::vector<Errc> ends;
  auto receive = [](Stream& stream, std::vector<Errc>& codes) -> Task<> {
    std::array<std::byte, 10> space;
    auto receiving = stream.receive(space);
    const auto received = co_await std::move(receiving);
    codes.push_back(received ? Errc::ok : received.error().code);
    co_return {};
  };
  auto begin = [&]() -> Task<> {
    return [](Stream& stream, auto wait, std::vector<Errc>& codes) -> Task<> {
      Shard& here = co_await this_shard();
      spawn(here, wait(stream, codes), "receiver");
      co_return {};
    }(*client_, receive, ends);
  };
  ASSERT_TRUE(run(shard(0), begin));
  environment().stop();
  EXPECT_THAT(ends, testing::ElementsAre(Errc::cancelled));
  client_.reset();
  server_.reset();
  listener_.reset();
  environment_.reset();
  SetUp();  // for TearDown
}

}  // namespace
}  // namespace millrace::kernel
