// The transport: one listener, its accept loop on the control thread, its connections on a data
// shard.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include <millrace/plugin.h>
#include <millrace/transport.h>

#include "connections.h"

namespace millrace::http_transport {

class Server final : public Transport {
 public:
  Server(Host& host, Settings settings);

  Task<Endpoint> listen(Broker& broker) override;
  Task<> stop(Duration grace) override;

 private:
  Task<> accept_connections();

  Environment& environment_;
  const std::string instance_;
  const Log log_;
  const Settings settings_;
  Metrics& all_metrics_;
  TransportMetrics metrics_;

  std::optional<Services> services_;  // once there is a broker
  std::unique_ptr<Connections> connections_;
  std::unique_ptr<Listener> listener_;
  Gate accepting_;
};

}  // namespace millrace::http_transport
