#include "sim_wire.h"

#include <algorithm>

#include <millrace/bytes.h>

namespace millrace::testing {

namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Duration connect_retry = seconds(1);
constexpr Duration connect_wait_max = seconds(30);
constexpr std::uint16_t first_free_port = 32768;
constexpr Duration retransmission_after = milliseconds(200);  // TCP's shortest
constexpr std::uint64_t lost_one_in = 20;                     // on a link that is late

}  // namespace

struct SimWire::Attempt {
  std::string from;
  Address to;
  Shard& caller;
  MonoTime begun;
  Resolver<std::shared_ptr<SimConnection>> done;
};

void wake(Shard* shard, std::shared_ptr<void> owner, Event& event) {
  if (shard == nullptr) return;
  shard->post([owner = std::move(owner), &event] { event.notify_all(); });
}

Result<std::string> SimWire::resolve(const std::string& from, const std::string& name) const {
  if (name == "localhost" || name == "127.0.0.1" || name == "0.0.0.0") return from;
  for (const auto& [node, host] : hosts_) {
    if (name == node || name == host) return host;
  }
  return Error{Errc::not_found, "look up " + name + ": no node of the simulation has this name"};
}

Result<std::shared_ptr<SimBacklog>> SimWire::listen(Address local, Shard& owner) {
  auto& next = ports_.try_emplace(local.host, first_free_port).first->second;
  if (local.port == 0) local.port = next++;
  auto backlog = std::make_shared<SimBacklog>();
  backlog->local = local;
  backlog->owner = &owner;
  if (!listening_.emplace(std::pair(local.host, local.port), backlog).second) {
    return Error{Errc::conflict, "listen on " + to_string(local) + ": Address already in use"};
  }
  return backlog;
}

void SimWire::close(SimBacklog& backlog) {
  if (std::exchange(backlog.closed, true)) return;
  auto taken = listening_.extract({backlog.local.host, backlog.local.port});
  for (const auto& connection : std::exchange(backlog.waiting, {})) {
    close(connection, 1, SimPipe::Piece::Kind::reset);
  }
  if (!taken.empty()) wake(backlog.owner, taken.mapped(), backlog.arrived);
}

Pending<std::shared_ptr<SimConnection>> SimWire::connect(const std::string& host, Address to,
                                                         Shard& caller) {
  auto [resolver, pending] = make_pending<std::shared_ptr<SimConnection>>();
  auto begun = std::make_shared<Attempt>(
      Attempt{host, std::move(to), caller, scheduler_.now(), std::move(resolver)});
  const auto after = delay(host, begun->to.host);
  scheduler_.at(scheduler_.now() + after,
                [this, begun = std::move(begun)]() mutable { attempt(std::move(begun)); });
  return std::move(pending);
}

void SimWire::attempt(std::shared_ptr<Attempt> attempt) {
  const auto& to = attempt->to;
  if (blocked(attempt->from, to.host) || blocked(to.host, attempt->from)) {
    if (scheduler_.now() - attempt->begun >= connect_wait_max) {
      answer(std::move(attempt),
             Error{Errc::timed_out, "connect to " + to_string(to) + ": no answer"});
      return;
    }
    scheduler_.at(scheduler_.now() + connect_retry,
                  [this, attempt]() mutable { this->attempt(std::move(attempt)); });
    return;
  }
  const auto found = listening_.find({to.host, to.port});
  if (found == listening_.end()) {
    answer(std::move(attempt),
           Error{Errc::io, "connect to " + to_string(to) + ": Connection refused"});
    return;
  }
  auto connection = std::make_shared<SimConnection>();
  auto& port = ports_.try_emplace(attempt->from, first_free_port).first->second;
  connection->ends[0] = {attempt->from, port++};
  connection->ends[1] = to;
  auto& [there, back] = connection->pipes;
  there.from = back.to = attempt->from;
  there.to = back.from = to.host;
  there.writer = back.reader = &attempt->caller;
  connections_.push_back(connection);
  scheduler_.note("connect " + to_string(connection->ends[0]) + " to " + to_string(to));
  auto& backlog = *found->second;
  backlog.waiting.push_back(connection);
  wake(backlog.owner, found->second, backlog.arrived);
  answer(std::move(attempt), std::move(connection));
}

void SimWire::answer(std::shared_ptr<Attempt> attempt,
                     Result<std::shared_ptr<SimConnection>> result) {
  const auto after = delay(attempt->to.host, attempt->from);
  auto arrived = [this, attempt, result = std::move(result)]() mutable {
    attempt->caller.post([this, attempt, result = std::move(result)]() mutable {
      if (attempt->done.abandoned() && result) close(*result, 0, SimPipe::Piece::Kind::reset);
      attempt->done.resolve(std::move(result));
    });
  };
  scheduler_.at(scheduler_.now() + after, std::move(arrived));
}

void SimWire::send(const std::shared_ptr<SimConnection>& connection, int side, std::string bytes) {
  put(connection, side, {SimPipe::Piece::Kind::bytes, std::move(bytes)});
}

void SimWire::close(const std::shared_ptr<SimConnection>& connection, int side,
                    SimPipe::Piece::Kind how) {
  if (std::exchange(connection->closed[side], true)) return;
  auto& outgoing = connection->pipes[side];
  auto& incoming = connection->pipes[1 - side];
  wake(outgoing.writer, connection, outgoing.writable);
  wake(incoming.reader, connection, incoming.readable);
  put(connection, side, {how, ""});
}

void SimWire::put(const std::shared_ptr<SimConnection>& connection, int side,
                  SimPipe::Piece piece) {
  auto& pipe = connection->pipes[side];
  pipe.bytes += piece.bytes.size();
  pipe.in_flight.push_back(std::move(piece));
  schedule_delivery(connection, side);
}

void SimWire::schedule_delivery(const std::shared_ptr<SimConnection>& connection, int side) {
  auto& pipe = connection->pipes[side];
  const auto after = delay(pipe.from, pipe.to);
  pipe.last_arrival = std::max(pipe.last_arrival, scheduler_.now() + after);
  scheduler_.at(pipe.last_arrival, [this, connection, side] { deliver(connection, side); });
}

// One piece per call; on a blocked link it stays in flight until heal().
void SimWire::deliver(const std::shared_ptr<SimConnection>& connection, int side) {
  auto& pipe = connection->pipes[side];
  if (pipe.in_flight.empty() || blocked(pipe.from, pipe.to)) return;
  auto piece = std::move(pipe.in_flight.front());
  pipe.in_flight.pop_front();
  const auto route =
      to_string(connection->ends[side]) + " to " + to_string(connection->ends[1 - side]);
  using Kind = SimPipe::Piece::Kind;
  if (piece.kind == Kind::bytes) {
    scheduler_.note("deliver " + route + " bytes " + std::to_string(piece.bytes.size()) + " crc " +
                    std::to_string(crc32c(as_bytes(piece.bytes))));
    if (connection->closed[1 - side]) {
      // Nobody reads any more; the sender learns that its peer is gone.
      connection->pipes[1 - side].in_flight.clear();
      put(connection, 1 - side, {Kind::reset, ""});
      return;
    }
    pipe.arrived += piece.bytes;
  } else {
    scheduler_.note((piece.kind == Kind::end ? "end " : "reset ") + route);
    pipe.ended = true;
    if (piece.kind == Kind::reset) {
      pipe.reset = true;
      auto& other = connection->pipes[1 - side];
      wake(other.writer, connection, other.writable);
    }
  }
  wake(pipe.reader, connection, pipe.readable);
}

Duration SimWire::delay(const std::string& from, const std::string& to) {
  auto& random = scheduler_.random();
  Duration longest{};
  for (const auto* host : {&from, &to}) {
    const auto found = late_.find(*host);
    if (found != late_.end()) longest = std::max(longest, found->second);
  }
  Duration more{};
  if (longest > Duration{}) {
    const auto part = random.below(static_cast<std::uint64_t>(longest.count()));
    more = Duration(static_cast<Duration::rep>(part));
    if (random.one_in(lost_one_in)) more += retransmission_after;
  }
  if (random.one_in(64)) return more + milliseconds(10);
  return more + microseconds(50 + random.below(950));
}

std::vector<std::shared_ptr<SimConnection>> SimWire::live() {
  std::vector<std::shared_ptr<SimConnection>> found;
  std::erase_if(connections_, [](const auto& connection) { return connection.expired(); });
  for (const auto& weak : connections_) found.push_back(weak.lock());
  return found;
}

void SimWire::drop(const std::string& host) {
  std::vector<std::shared_ptr<SimBacklog>> backlogs;
  for (const auto& [address, backlog] : listening_) {
    if (address.first == host) backlogs.push_back(backlog);
  }
  for (const auto& backlog : backlogs) close(*backlog);
  for (const auto& connection : live()) {
    for (const int side : {0, 1}) {
      if (connection->ends[side].host == host) close(connection, side, SimPipe::Piece::Kind::reset);
    }
  }
}

void SimWire::heal() {
  blocked_.clear();
  late_.clear();
  for (const auto& connection : live()) {
    for (const int side : {0, 1}) {
      const auto pieces = connection->pipes[side].in_flight.size();
      for (std::size_t i = 0; i < pieces; ++i) schedule_delivery(connection, side);
    }
  }
}

void SimWire::cut(const std::string& a, const std::string& b) {
  for (const auto& connection : live()) {
    if (link(connection->ends[0].host, connection->ends[1].host) != link(a, b)) continue;
    scheduler_.note("cut " + to_string(connection->ends[0]));
    for (const int side : {0, 1}) {
      connection->pipes[side].in_flight.clear();
      put(connection, side, {SimPipe::Piece::Kind::reset, ""});
    }
  }
}

}  // namespace millrace::testing
