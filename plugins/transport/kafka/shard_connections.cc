#include "shard_connections.h"

#include <string>
#include <utility>

namespace millrace::kafka_transport {

void ShardConnections::adopt(std::unique_ptr<Stream> stream) {
  auto pass = gate_.enter();
  if (!pass) return;  // stopping
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
  auto connection = std::make_unique<Connection>(context_, shard_, std::move(stream));
  spawn(shard_, serve(std::move(connection), *std::move(pass)), "kafka connection");
}

Task<> ShardConnections::serve(std::unique_ptr<Connection> connection, Gate::Pass pass) {
  const auto leave = std::move(pass);
  connections_.insert(connection.get());
  ++open_;
  context_.metrics.connections.add(1);
  MR_CO_CHECK(co_await connection->run());
  connections_.erase(connection.get());
  --open_;
  context_.metrics.connections.add(-1);
  connection.reset();
  co_return {};
}

Task<> ShardConnections::stop(Duration grace) {
  for (auto* connection : connections_) connection->stop();
  auto finishing = with_deadline(gate_.close(), grace);
  const auto finished = co_await std::move(finishing);
  if (!finished) {
    context_.log.warning("closing connections with unanswered requests: the grace period is over",
                         {{"connections", connections_.size()}});
    for (auto* connection : connections_) connection->abort();
  }
  co_return co_await gate_.close();
}

}  // namespace millrace::kafka_transport
