// Since when brokers that have replicas are gone, as controllers have found it: whoever is the
// controller next goes on counting.
#pragma once

#include <cstdint>
#include <map>

#include <millrace/coordination.h>
#include <millrace/observe.h>
#include <millrace/types.h>

namespace millrace::kernel {

/// Of one term.  [control thread]
class GoneBrokers {
 public:
  using Since = std::map<std::int32_t, Timestamp>;

  /// `coordination` outlives it.
  explicit GoneBrokers(Coordination& coordination) : coordination_(coordination) {}

  /// What the controller before has left.
  Task<> load(const Log& log);
  const Since& since() const noexcept { return stored_; }
  Task<> store(Since since);

 private:
  Coordination& coordination_;
  Since stored_;
};

}  // namespace millrace::kernel
