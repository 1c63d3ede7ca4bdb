// How long nobody else may think this broker dead, where every shard can ask. A leader whose lease
// may have ended must neither acknowledge nor serve: another one may lead by then.
#pragma once

#include <atomic>
#include <chrono>

#include <millrace/types.h>

namespace millrace::kernel {

/// A copy of Lease::valid_until(). Before the first extend() nothing is valid.
class LeaseClock {
 public:
  /// [control thread]
  void extend(MonoTime valid_until) noexcept {
    valid_until_.store(valid_until.time_since_epoch().count(), std::memory_order_release);
  }
  /// The session is gone.  [control thread]
  void end() noexcept { extend(MonoTime::min()); }
  /// [any thread]
  bool holds(MonoTime now) const noexcept {
    return now.time_since_epoch().count() < valid_until_.load(std::memory_order_acquire);
  }

 private:
  std::atomic<MonoTime::rep> valid_until_{MonoTime::min().time_since_epoch().count()};
};

}  // namespace millrace::kernel
