#include "kernel/partition/rate_limit.h"

#include <algorithm>

namespace millrace::kernel {

namespace {

// So that no number of bytes runs over.
constexpr double owed_ns_max = 86'400e9;

Duration::rep ns_of(MonoTime time) noexcept { return time.time_since_epoch().count(); }

Duration::rep time_for(double bytes, std::int64_t rate) noexcept {
  return static_cast<Duration::rep>(std::min(bytes * 1e9 / static_cast<double>(rate), owed_ns_max));
}

}  // namespace

void RateLimit::set_rate(std::int64_t bytes_per_second, MonoTime now) noexcept {
  const auto rate = std::max<std::int64_t>(bytes_per_second, 1);
  const auto before = rate_.exchange(rate, std::memory_order_relaxed);
  if (before == rate) return;
  auto paid_at = paid_at_.load(std::memory_order_relaxed);
  while (paid_at > ns_of(now)) {
    const auto owed = static_cast<double>(paid_at - ns_of(now)) / 1e9 * static_cast<double>(before);
    const auto later = rate == unlimited ? 0 : time_for(owed, rate);
    if (paid_at_.compare_exchange_weak(paid_at, ns_of(now) + later, std::memory_order_relaxed)) {
      break;
    }
  }
}

Duration RateLimit::wait(MonoTime now) const noexcept {
  if (rate() == unlimited) return Duration::zero();
  const auto paid_at = paid_at_.load(std::memory_order_relaxed);
  return paid_at <= ns_of(now) ? Duration::zero() : Duration(paid_at - ns_of(now));
}

void RateLimit::charge(std::uint64_t bytes, MonoTime now) noexcept {
  if (counter_) counter_->add(bytes);
  const auto rate = this->rate();
  if (rate == unlimited || bytes == 0) return;
  const auto cost = time_for(static_cast<double>(bytes), rate);
  const auto saved_from = ns_of(now) - saved_max.count();
  auto paid_at = paid_at_.load(std::memory_order_relaxed);
  while (!paid_at_.compare_exchange_weak(paid_at, std::max(paid_at, saved_from) + cost,
                                         std::memory_order_relaxed)) {
  }
}

}  // namespace millrace::kernel
