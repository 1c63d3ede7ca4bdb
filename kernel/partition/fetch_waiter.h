// A long poll, seen from the partitions it waits for. The poll lives on its connection's shard;
// each partition that grows tells it, and all of them together post one wake-up.
#pragma once

#include <atomic>
#include <memory>

#include <millrace/shard.h>

namespace millrace::kernel {

/// Shared by the poll and the partitions that it is registered with. `notify` may be called from
/// any partition's shard; it wakes the poll once.
class FetchWaiter : public std::enable_shared_from_this<FetchWaiter> {
 public:
  explicit FetchWaiter(Shard& home) : home_(home) {}

  /// [any shard]
  void notify() {
    if (notified_.exchange(true, std::memory_order_acq_rel)) return;
    home_.post([self = shared_from_this()] { self->woken_.notify_all(); });
  }
  bool notified() const noexcept { return notified_.load(std::memory_order_acquire); }

  /// Completes after notify(), also if that was before.  [home shard]
  Task<> wait() {
    if (!notified()) MR_CO_CHECK(co_await woken_.wait());
    co_return {};
  }

 private:
  Shard& home_;
  std::atomic<bool> notified_{false};
  Event woken_;
};

}  // namespace millrace::kernel
