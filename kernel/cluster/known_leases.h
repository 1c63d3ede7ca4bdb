// Which lease each broker had when a controller last acted on it. Who has another one by now was
// gone in between, and may have lost what it had: also when the controller died with it, and
// whoever is elected next finds everybody there.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include <millrace/coordination.h>
#include <millrace/observe.h>

#include "kernel/cluster/cluster_state.h"

namespace millrace::kernel {

/// Of one term.  [control thread]
class KnownLeases {
 public:
  /// `coordination` outlives it.
  explicit KnownLeases(Coordination& coordination) : coordination_(coordination) {}

  /// What the controller before has left.
  Task<> load(const Log& log);
  /// It has had another lease, or none, when a controller last looked; nobody has where none did.
  bool bounced(const BrokerState& broker) const;
  /// From here on these are known: all that follows from their leases is done, and written.
  Task<> store(const std::map<std::int32_t, BrokerState>& brokers);

 private:
  using Leases = std::map<std::string, std::string>;

  Coordination& coordination_;
  bool any_ = false;  // a controller has looked
  Leases leases_;     // by broker, as they are stored
};

}  // namespace millrace::kernel
