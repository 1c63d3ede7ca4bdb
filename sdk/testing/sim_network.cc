#include "sim_network.h"

#include <algorithm>
#include <cstring>

namespace millrace::testing {

namespace {

using ConnectionPtr = std::shared_ptr<SimConnection>;
using Kind = SimPipe::Piece::Kind;

// What a connection holds before send() waits for its reader.
constexpr std::size_t pipe_bytes_max = 256 << 10;
constexpr std::size_t piece_bytes_max = 16 << 10;
constexpr std::size_t short_bytes_max = 64;

// Mostly `bytes`, now and then only a few of them.
std::size_t chunk(SimRandom& random, std::size_t bytes) {
  if (bytes <= 1 || !random.one_in(4)) return bytes;
  return 1 + random.below(std::min(bytes, short_bytes_max));
}

Error closed_here() { return {Errc::closed, "the connection was closed here"}; }
Error reset_by(const Address& peer) {
  return {Errc::closed, "the connection was reset by " + to_string(peer)};
}

// The coroutines take the connection by value, so that they outlive their stream.
Task<std::size_t> receive_from(SimScheduler& scheduler, ConnectionPtr connection, int side,
                               MutableBytes space) {
  auto& pipe = connection->pipes[1 - side];
  while (true) {
    if (connection->closed[side]) co_return closed_here();
    if (pipe.reset) co_return reset_by(connection->ends[1 - side]);
    if (!pipe.arrived.empty()) break;
    if (pipe.ended) co_return 0;
    MR_CO_CHECK(co_await pipe.readable.wait());
  }
  const auto bytes = chunk(scheduler.random(), std::min(space.size(), pipe.arrived.size()));
  std::memcpy(space.data(), pipe.arrived.data(), bytes);
  pipe.arrived.erase(0, bytes);
  pipe.bytes -= bytes;
  wake(pipe.writer, connection, pipe.writable);
  co_return bytes;
}

Task<> send_over(SimScheduler& scheduler, SimWire& wire, ConnectionPtr connection, int side,
                 Payload payload) {
  MR_CO_TRY(const auto content, payload.flatten());
  auto& pipe = connection->pipes[side];
  for (std::size_t sent = 0; sent < content.size();) {
    if (connection->closed[side]) co_return closed_here();
    if (connection->pipes[1 - side].reset) co_return reset_by(connection->ends[1 - side]);
    if (pipe.bytes >= pipe_bytes_max) {
      MR_CO_CHECK(co_await pipe.writable.wait());
      continue;
    }
    const auto bytes = chunk(scheduler.random(), std::min(content.size() - sent, piece_bytes_max));
    wire.send(connection, side, std::string(content.text().substr(sent, bytes)));
    sent += bytes;
  }
  co_return {};
}

class SimStream final : public Stream {
 public:
  SimStream(SimScheduler& scheduler, SimWire& wire, ConnectionPtr connection, int side)
      : scheduler_(scheduler), wire_(wire), connection_(std::move(connection)), side_(side) {}
  ~SimStream() override { close(); }

  Task<std::size_t> receive(MutableBytes space) override {
    return receive_from(scheduler_, connection_, side_, space);
  }
  Task<> send(Payload payload) override {
    return send_over(scheduler_, wire_, connection_, side_, std::move(payload));
  }
  void close() noexcept override { wire_.close(connection_, side_, Kind::end); }
  const Address& peer() const noexcept override { return connection_->ends[1 - side_]; }

 private:
  SimScheduler& scheduler_;
  SimWire& wire_;
  ConnectionPtr connection_;
  int side_;
};

Task<std::unique_ptr<Stream>> accept_from(SimScheduler& scheduler, SimWire& wire,
                                          std::shared_ptr<SimBacklog> backlog, Shard& owner) {
  while (backlog->waiting.empty()) {
    if (backlog->closed) co_return Error{Errc::closed, "the listener was closed"};
    MR_CO_CHECK(co_await backlog->arrived.wait());
  }
  auto connection = std::move(backlog->waiting.front());
  backlog->waiting.pop_front();
  connection->pipes[0].reader = connection->pipes[1].writer = &owner;
  co_return std::make_unique<SimStream>(scheduler, wire, std::move(connection), 1);
}

class SimListener final : public Listener {
 public:
  SimListener(SimScheduler& scheduler, SimWire& wire, std::shared_ptr<SimBacklog> backlog)
      : scheduler_(scheduler), wire_(wire), backlog_(std::move(backlog)) {}
  ~SimListener() override { close(); }

  Task<std::unique_ptr<Stream>> accept(Shard& owner) override {
    return accept_from(scheduler_, wire_, backlog_, owner);
  }
  const Address& local() const noexcept override { return backlog_->local; }
  void close() noexcept override { wire_.close(*backlog_); }

 private:
  SimScheduler& scheduler_;
  SimWire& wire_;
  std::shared_ptr<SimBacklog> backlog_;
};

}  // namespace

Result<> SimNetwork::check_up() const {
  if (!down_) return {};
  return Error{Errc::closed, "the machine " + host_ + " has crashed"};
}

Task<std::unique_ptr<Listener>> SimNetwork::listen(Address address) {
  MR_CO_CHECK(check_up());
  MR_CO_TRY(const auto host, wire_.resolve(host_, address.host));
  if (host != host_) {
    co_return Error{Errc::invalid_argument,
                    "listen on " + to_string(address) + ": not an address of " + host_};
  }
  Shard& owner = co_await this_shard();
  MR_CO_TRY(auto backlog, wire_.listen({host, address.port}, owner));
  co_return std::make_unique<SimListener>(scheduler_, wire_, std::move(backlog));
}

Task<std::unique_ptr<Stream>> SimNetwork::connect(Address address) {
  MR_CO_CHECK(check_up());
  MR_CO_TRY(auto host, wire_.resolve(host_, address.host));
  Shard& caller = co_await this_shard();
  auto connecting = wire_.connect(host_, {std::move(host), address.port}, caller);
  MR_CO_TRY(auto connection, co_await connecting);
  co_return std::make_unique<SimStream>(scheduler_, wire_, std::move(connection), 0);
}

}  // namespace millrace::testing
