// All connections of a listener. They live on one data shard: few, slow and rarely busy, they are
// not worth spreading.
#pragma once

#include <memory>
#include <vector>

#include "connection.h"

namespace millrace::http_transport {

/// [its shard]
class Connections {
 public:
  Connections(const Services& services, TransportMetrics& metrics)
      : services_(services), metrics_(metrics) {}
  Connections(const Connections&) = delete;
  Connections& operator=(const Connections&) = delete;

  /// Serves a stream of `shard` until it ends. When there are too many, the one that has waited for
  /// its peer for the longest is closed; the new one when all are being answered.
  void adopt(Shard& shard, std::unique_ptr<Stream> stream);
  /// Lets answers end until `grace` is over. Completes when no connection is left.
  Task<> stop(Duration grace);

 private:
  bool make_room();
  Task<> serve(std::unique_ptr<Connection> connection, Gate::Pass pass);

  const Services& services_;
  TransportMetrics& metrics_;
  std::vector<Connection*> open_;  // in the order in which they came
  bool refusing_ = false;          // and it was logged
  Gate gate_;
};

}  // namespace millrace::http_transport
