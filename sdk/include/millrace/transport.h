// Brings requests in and answers out. One object per `[transport.NAME]`.
#pragma once

#include <string>

#include <millrace/environment.h>
#include <millrace/task.h>

namespace millrace {

class Broker;

/// Where clients find a listener, and what the broker advertises for it.
struct Endpoint {
  std::string listener;  ///< the instance's name
  Address bound;         ///< with the real port when 0 was asked for
  Address advertised;    ///< no host: the cluster's clients are told of nothing
};

/// Its connections live on data shards; `listen` and `stop` run on the control thread.
class Transport {
 public:
  virtual ~Transport() = default;
  /// Binds, and serves until stop(). Completes when connections are accepted.
  virtual Task<Endpoint> listen(Broker& broker) = 0;
  /// Accepts no more, answers what is in flight until `grace` is over, then closes.
  virtual Task<> stop(Duration grace) = 0;
};

}  // namespace millrace
