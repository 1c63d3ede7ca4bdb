#include "connections.h"

#include <utility>

namespace millrace::http_transport {

void Connections::adopt(Shard& shard, std::unique_ptr<Stream> stream) {
  auto pass = gate_.enter();
  if (!pass) return;  // stopping
  if (open_.size() >= services_.settings.connections_max && !make_room()) {
    metrics_.connections_refused.add();
    if (!std::exchange(refusing_, true)) {
      services_.log.warning("refusing connections: max.connections are open",
                            {{"peer", to_string(stream->peer())},
                             {"max.connections", services_.settings.connections_max}});
    }
    return;
  }
  refusing_ = false;
  auto connection = std::make_unique<Connection>(services_, metrics_, std::move(stream));
  spawn(shard, serve(std::move(connection), *std::move(pass)), "http connection");
}

// Whoever makes us wait for the longest gives way: what holds connections open, or asks half, or
// reads nothing, keeps nobody from asking for the broker's health.
bool Connections::make_room() {
  Connection* oldest = nullptr;
  for (auto* connection : open_) {
    const auto since = connection->waits_since();
    if (since && (!oldest || *since < *oldest->waits_since())) oldest = connection;
  }
  if (!oldest) return false;
  std::erase(open_, oldest);  // it ends as soon as its coroutine runs
  metrics_.connections_displaced.add();
  oldest->abort();
  return true;
}

Task<> Connections::serve(std::unique_ptr<Connection> connection, Gate::Pass pass) {
  const auto leave = std::move(pass);
  open_.push_back(connection.get());
  metrics_.connections.add(1);
  MR_CO_CHECK(co_await connection->run());
  std::erase(open_, connection.get());
  metrics_.connections.add(-1);
  connection.reset();
  co_return {};
}

Task<> Connections::stop(Duration grace) {
  for (auto* connection : open_) connection->stop();
  auto finishing = with_deadline(gate_.close(), grace);
  const auto finished = co_await std::move(finishing);
  if (!finished) {
    for (auto* connection : open_) connection->abort();
  }
  co_return co_await gate_.close();
}

}  // namespace millrace::http_transport
