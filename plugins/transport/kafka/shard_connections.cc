#include "shard_connections.h"

#include <chrono>
#include <map>
#include <string>
#include <utility>

namespace millrace::kafka_transport {
namespace {

/// While memory for answers is scarce, a peer that reads none of its own for this long is closed;
/// where nobody begins a request any more for it, sooner.
constexpr Duration unread_max = std::chrono::seconds(10);
constexpr Duration look_interval = std::chrono::seconds(1);

/// Where others have waited so long for the memory of requests, one that has held its own for as
/// long is closed if its bytes come more slowly than this.
constexpr Duration unsent_max = std::chrono::seconds(10);
constexpr std::size_t arriving_bytes_per_second_min = 64 << 10;

/// A connection that nothing has come from for this long keeps no block for what comes next.
constexpr Duration doze_after = std::chrono::seconds(1);

/// So many connections are a crowd.
constexpr std::size_t crowd_min = 200;

/// Of what concerns many connections at once, these are told of one by one; the others are counted.
constexpr std::size_t lines_max = 5;

bool is_slow(const Connection::Arriving& arriving, MonoTime now) {
  const auto held = now - arriving.since;
  if (held < unsent_max) return false;
  const auto seconds = static_cast<std::size_t>(held / std::chrono::seconds(1));
  return arriving.received / seconds < arriving_bytes_per_second_min;
}

}  // namespace

ShardConnections::ShardConnections(const ListenerContext& context, Shard& shard,
                                   std::atomic<std::size_t>& open, std::uint64_t answer_bytes_max)
    : context_(context),
      shard_(shard),
      open_(open),
      load_{.answers{answer_bytes_max, [this](bool scarce) { answer_memory_changed(scarce); }},
            .requests{context.broker.memory(shard),
                      [this] {
                        if (!wanted_since_) wanted_since_ = shard_.now();
                        look_soon();
                      }},
            .woken = [this] {
              if (doze_timer_ != TimerId::none) return;
              doze_timer_ = shard_.schedule(shard_.now() + doze_after, [this] { let_doze(); });
            }} {}

void ShardConnections::adopt(std::unique_ptr<Stream> stream) {
  auto pass = gate_.enter();
  if (!pass) return;  // stopping
  context_.metrics.accepted.add();
  if (open_.load() >= context_.settings.connections_max) {
    --expected_;
    context_.metrics.connections_refused.add();
    if (!std::exchange(refusing_, true)) {
      context_.log.warning("refusing connections: max.connections are open",
                           {{"peer", to_string(stream->peer())},
                            {"max.connections", context_.settings.connections_max}});
    }
    return;
  }
  refusing_ = false;
  auto connection = std::make_unique<Connection>(context_, shard_, load_, std::move(stream));
  spawn(shard_, serve(std::move(connection), *std::move(pass)), "kafka connection");
}

Task<> ShardConnections::serve(std::unique_ptr<Connection> connection, Gate::Pass pass) {
  const auto leave = std::move(pass);
  const auto number = ++adopted_;
  connections_.emplace(number, connection.get());
  load_.crowded = connections_.size() >= crowd_min;
  ++open_;
  context_.metrics.connections.add(1);
  MR_CO_CHECK(co_await connection->run());
  connections_.erase(number);
  load_.crowded = connections_.size() >= crowd_min;
  --open_;
  --expected_;
  context_.metrics.connections.add(-1);
  connection.reset();
  co_return {};
}

Task<> ShardConnections::stop(Duration grace) {
  for (const auto& [number, connection] : connections_) connection->stop();
  auto finishing = with_deadline(gate_.close(), grace);
  const auto finished = co_await std::move(finishing);
  if (!finished) {
    context_.log.warning("closing connections with unanswered requests: the grace period is over",
                         {{"connections", connections_.size()}});
    for (const auto& [number, connection] : connections_) connection->abort();
  }
  auto leaving = gate_.close();
  auto left = co_await std::move(leaving);
  for (auto* timer : {&look_timer_, &doze_timer_}) {
    shard_.unschedule(std::exchange(*timer, TimerId::none));
  }
  co_return std::move(left);
}

void ShardConnections::answer_memory_changed(bool scarce) { scarce ? look_soon() : let_go_on(); }

void ShardConnections::let_go_on() {
  for (const auto& [number, connection] : connections_) connection->look_for_room();
}

void ShardConnections::look_soon() {
  if (look_timer_ != TimerId::none) return;
  look_timer_ = shard_.schedule(shard_.now() + look_interval, [this] { look(); });
}

void ShardConnections::look() {
  look_timer_ = TimerId::none;
  if (load_.answers.scarce()) close_stalled_readers();
  // Scarce it may stay, and yet be exhausted no more.
  if (load_.answers.scarce() && !load_.answers.exhausted()) let_go_on();
  if (load_.requests.waiting() == 0) {
    wanted_since_.reset();
  } else if (wanted_since_ && shard_.now() - *wanted_since_ >= unsent_max) {
    close_slow_senders();
  }
  if (load_.answers.scarce() || load_.requests.waiting() > 0) look_soon();
}

void ShardConnections::close_stalled_readers() {
  const auto now = shard_.now();
  std::multimap<MonoTime, Connection*> unread;  // by since when
  for (const auto& [number, connection] : connections_) {
    if (connection->answer_bytes() > 0) unread.emplace(connection->unread_since(), connection);
  }
  const bool exhausted = load_.answers.exhausted();
  auto left = load_.answers.bytes();
  std::size_t closed = 0;
  for (const auto& [since, connection] : unread) {
    const auto limit = exhausted && left > load_.answers.bytes_max() ? look_interval : unread_max;
    if (now - since < limit) break;
    context_.metrics.stalled_readers.add();
    if (++closed <= lines_max) {
      context_.log.warning("closing a connection that does not read its answers: memory is scarce",
                           {{"peer", to_string(connection->peer())},
                            {"answer_bytes", connection->answer_bytes()},
                            {"answer_bytes_of_all", load_.answers.bytes()}});
    }
    left -= connection->answer_bytes();
    connection->abort();
  }
  if (closed <= lines_max) return;
  context_.log.warning("closing more connections that do not read their answers",
                       {{"connections", closed - lines_max}});
}

void ShardConnections::close_slow_senders() {
  const auto now = shard_.now();
  std::size_t closed = 0;
  for (const auto& [number, connection] : connections_) {
    const auto arriving = connection->arriving();
    if (!arriving || !is_slow(*arriving, now)) continue;
    context_.metrics.slow_senders.add();
    if (++closed <= lines_max) {
      context_.log.warning(
          "closing a connection whose request comes too slowly: others wait for the memory that it "
          "holds (broker.memory)",
          {{"peer", to_string(connection->peer())},
           {"request_bytes", arriving->bytes},
           {"received_bytes", arriving->received},
           {"seconds", (now - arriving->since) / std::chrono::seconds(1)},
           {"waiting", load_.requests.waiting()}});
    }
    connection->abort();
  }
  if (closed <= lines_max) return;
  context_.log.warning("closing more connections whose requests come too slowly",
                       {{"connections", closed - lines_max}});
}

void ShardConnections::let_doze() {
  doze_timer_ = TimerId::none;
  const auto before = shard_.now() - doze_after;
  bool all = true;
  for (const auto& [number, connection] : connections_) all &= connection->doze(before);
  if (!all) load_.woken();
}

}  // namespace millrace::kafka_transport
