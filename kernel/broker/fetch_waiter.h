// A long poll, seen from the shards that it waits for. It lives on its own shard; whatever grows
// tells it, and all together post one wake-up.
#pragma once

#include <atomic>
#include <memory>

#include <millrace/shard.h>

namespace millrace::kernel {

/// Shared by the poll and the groups of partitions that it reads. `notify` may be called from any
/// shard; it wakes the poll once.
class FetchWaiter : public std::enable_shared_from_this<FetchWaiter> {
 public:
  explicit FetchWaiter(Shard& home) : home_(home) {}

  /// [any shard]
  void notify() {
    if (notified_.exchange(true, std::memory_order_acq_rel)) return;
    if (home_.is_current()) return woken_.resolve();
    home_.post([self = shared_from_this()] { self->woken_.resolve(); });
  }
  bool notified() const noexcept { return notified_.load(std::memory_order_acquire); }

  /// Completes after notify(), also if that was before. For one who waits.  [home shard]
  Task<> wait() {
    if (notified()) co_return {};
    auto [resolver, pending] = make_pending<>();
    woken_ = std::move(resolver);
    co_return co_await pending;
  }

 private:
  Shard& home_;
  std::atomic<bool> notified_{false};
  Resolver<> woken_;
};

}  // namespace millrace::kernel
