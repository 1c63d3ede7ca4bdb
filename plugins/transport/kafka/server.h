// The transport: one listener, its accept loop on the control thread, and connections spread over
// the data shards: each goes to one that has the fewest, in turn.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <millrace/broker.h>
#include <millrace/plugin.h>
#include <millrace/transport.h>

#include "shard_connections.h"

namespace millrace::kafka_transport {

class Server final : public Transport {
 public:
  /// `lost`: what peers are noted in that cannot be reached; outlives it.
  Server(Host& host, Settings settings, LostBrokers* lost = nullptr);

  Task<Endpoint> listen(Broker& broker) override;
  Task<> stop(Duration grace) override;

 private:
  Task<> accept_connections();
  /// Of the next connection, after one of shard `last`.
  std::size_t next_shard(std::size_t last) const;
  void hand_over(ShardConnections& connections, std::unique_ptr<Stream> stream);

  Environment& environment_;
  const std::string instance_;
  const std::int32_t node_id_;
  const Log log_;
  const Settings settings_;
  Metrics& kept_metrics_;
  LostBrokers* const lost_;

  // once there is a broker
  std::optional<ApiSet> apis_;
  std::optional<TransportMetrics> metrics_;
  std::optional<ListenerContext> context_;

  std::unique_ptr<Listener> listener_;
  Gate accepting_;
  std::atomic<std::size_t> open_ = 0;
  std::vector<std::unique_ptr<ShardConnections>> shards_;
};

}  // namespace millrace::kafka_transport
