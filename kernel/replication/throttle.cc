#include "kernel/replication/throttle.h"

#include <algorithm>

#include "kernel/partition/config_options.h"

namespace millrace::kernel {

namespace {

Counter& counter_of(Metrics& metrics, const char* limit) {
  return metrics.counter("millrace_replication_throttled_bytes_total",
                         "Bytes of replicas that catch up, by what holds them back",
                         {{"limit", limit}});
}

}  // namespace

ReplicationThrottle::ReplicationThrottle(Metrics& metrics)
    : sent_(counter_of(metrics, "moves_out")), fetched_(counter_of(metrics, "moves_in")) {
  leader.count_with(counter_of(metrics, "leader"));
  follower.count_with(counter_of(metrics, "follower"));
  moves_out.count_with(sent_);
  moves_in.count_with(fetched_);
}

ThrottledReplicas::ThrottledReplicas(std::string_view value) {
  for (const auto one : list_of(value)) {
    if (one == "*") all_ = true;
    const auto colon = one.find(':');
    if (colon == std::string_view::npos) continue;
    const auto partition = integer_of(one.substr(0, colon));
    const auto broker = integer_of(one.substr(colon + 1));
    if (!partition || !broker) continue;
    replicas_.emplace_back(static_cast<std::int32_t>(*partition),
                           static_cast<std::int32_t>(*broker));
  }
  std::ranges::sort(replicas_);
}

bool ThrottledReplicas::has(std::int32_t partition, std::int32_t broker) const noexcept {
  return all_ || std::ranges::binary_search(replicas_, std::pair(partition, broker));
}

YieldingRate::YieldingRate(std::int64_t rate_max) noexcept
    : rate_max_(rate_max), rate_(std::min(rate_first, rate_max)) {}

std::int64_t YieldingRate::least() const noexcept { return std::min(rate_min, rate_max_); }

void YieldingRate::set_max(std::int64_t rate_max) noexcept {
  rate_max_ = rate_max;
  rate_ = std::clamp(rate_, least(), rate_max_);
}

void YieldingRate::observe(Duration waited, std::uint64_t moved_bytes, Duration interval) noexcept {
  if (waited >= patience) {
    rate_ = std::max(rate_ / 2, least());
    return;
  }
  // What nobody makes use of says nothing of what could be borne.
  const auto possible =
      static_cast<double>(rate_) * std::chrono::duration<double>(interval).count();
  if (static_cast<double>(moved_bytes) * 2 < possible) return;
  rate_ = rate_ > rate_max_ - rate_ / 4 ? rate_max_ : rate_ + rate_ / 4;
}

}  // namespace millrace::kernel
