#include "shard_connections.h"

#include <string>
#include <utility>

namespace millrace::kafka_transport {
namespace {

/// While memory for answers is scarce, a peer that reads none of its own for this long is closed.
constexpr Duration unread_max = std::chrono::seconds(10);
constexpr Duration look_interval = std::chrono::seconds(1);

}  // namespace

ShardConnections::ShardConnections(const ListenerContext& context, Shard& shard,
                                   std::atomic<std::size_t>& open, std::uint64_t answer_bytes_max)
    : context_(context),
      shard_(shard),
      open_(open),
      memory_(answer_bytes_max, [this](bool scarce) { memory_changed(scarce); }) {}

void ShardConnections::adopt(std::unique_ptr<Stream> stream) {
  auto pass = gate_.enter();
  if (!pass) return;  // stopping
  context_.metrics.accepted.add();
  if (open_.load() >= context_.settings.connections_max) {
    context_.metrics.connections_refused.add();
    if (!std::exchange(refusing_, true)) {
      context_.log.warning("refusing connections: max.connections are open",
                           {{"peer", to_string(stream->peer())},
                            {"max.connections", context_.settings.connections_max}});
    }
    return;
  }
  refusing_ = false;
  auto connection = std::make_unique<Connection>(context_, shard_, memory_, std::move(stream));
  spawn(shard_, serve(std::move(connection), *std::move(pass)), "kafka connection");
}

Task<> ShardConnections::serve(std::unique_ptr<Connection> connection, Gate::Pass pass) {
  const auto leave = std::move(pass);
  const auto number = ++adopted_;
  connections_.emplace(number, connection.get());
  ++open_;
  context_.metrics.connections.add(1);
  MR_CO_CHECK(co_await connection->run());
  connections_.erase(number);
  --open_;
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
  co_return co_await gate_.close();
}

void ShardConnections::memory_changed(bool scarce) {
  if (scarce) {
    look_timer_ = shard_.schedule(shard_.now() + look_interval, [this] { look_for_stalled(); });
    return;
  }
  shard_.unschedule(std::exchange(look_timer_, TimerId::none));
  for (const auto& [number, connection] : connections_) connection->look_for_room();
}

void ShardConnections::look_for_stalled() {
  const auto now = shard_.now();
  look_timer_ = shard_.schedule(now + look_interval, [this] { look_for_stalled(); });
  for (const auto& [number, connection] : connections_) {
    if (connection->answer_bytes() == 0 || now - connection->unread_since() < unread_max) continue;
    context_.metrics.stalled_readers.add();
    context_.log.warning("closing a connection that does not read its answers: memory is scarce",
                         {{"peer", to_string(connection->peer())},
                          {"answer_bytes", connection->answer_bytes()},
                          {"answer_bytes_of_all", memory_.bytes()}});
    connection->abort();
  }
}

}  // namespace millrace::kafka_transport
