// A rate in bytes per second that all shards of a broker share: a token bucket without a lock, kept
// as the moment at which all that has moved is paid for.
#pragma once

#include <atomic>
#include <cstdint>
#include <limits>

#include <millrace/observe.h>
#include <millrace/types.h>

namespace millrace::kernel {

/// What moves is charged when it has moved: a batch is moved whole, and more than fits is waited
/// for afterwards. Time in which nothing moved is saved up for at most `saved_max`.  [any thread]
class RateLimit {
 public:
  static constexpr std::int64_t unlimited = std::numeric_limits<std::int64_t>::max();
  static constexpr Duration saved_max = std::chrono::milliseconds(100);

  /// Counts what is charged. Before the first charge().
  void count_with(Counter& counter) noexcept { counter_ = &counter; }

  /// What is owed is paid at the new rate. At least a byte per second, so that nothing stands still
  /// for ever.  [control thread]
  void set_rate(std::int64_t bytes_per_second, MonoTime now) noexcept;
  std::int64_t rate() const noexcept { return rate_.load(std::memory_order_relaxed); }

  /// How long nothing may move; zero: it may now.
  Duration wait(MonoTime now) const noexcept;
  void charge(std::uint64_t bytes, MonoTime now) noexcept;

 private:
  std::atomic<std::int64_t> rate_{unlimited};
  std::atomic<Duration::rep> paid_at_{std::numeric_limits<Duration::rep>::min()};
  Counter* counter_ = nullptr;
};

}  // namespace millrace::kernel
