// Wakes the one coroutine that waits, as an Event does many: a connection's reader waits for its
// turn and its writer for answers, with every request.
#pragma once

#include <utility>

#include <millrace/task.h>

namespace millrace::kafka_transport {

/// [its connection's shard]. Level conditions are checked again by who waits.
class Signal {
 public:
  void notify() { waiting_.resolve(); }
  /// One waits at a time; await it at once.
  Pending<> wait() {
    auto [resolver, pending] = make_pending<>();
    waiting_ = std::move(resolver);
    return std::move(pending);
  }

 private:
  Resolver<> waiting_;
};

}  // namespace millrace::kafka_transport
