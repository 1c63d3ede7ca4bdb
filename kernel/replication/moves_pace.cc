#include "kernel/replication/moves_pace.h"

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "kernel/env/spawn_held.h"

namespace millrace::kernel {

namespace {

constexpr Duration probe_interval = std::chrono::milliseconds(50);
constexpr int probes_per_step = 4;

Task<Duration> since(MonoTime posted) { co_return (co_await this_shard()).now() - posted; }

// What is posted runs behind all that was asked of the shard before, as a request does.
Task<Duration> measured_wait(Shard& shard) {
  const auto posted = (co_await this_shard()).now();
  auto arrive = [posted] { return since(posted); };
  co_return co_await run_on(shard, std::move(arrive));
}

}  // namespace

MovesPace::MovesPace(Environment& environment, Metrics& metrics, ReplicationThrottle& throttle)
    : environment_(environment),
      throttle_(throttle),
      shown_(metrics.gauge("millrace_replication_moves_rate_bytes",
                           "Bytes per second that replicas may move by themselves now")),
      probe_(measured_wait) {
  apply();
}

void MovesPace::apply() {
  const auto now = environment_.control().now();
  throttle_.moves_out.set_rate(rate_.rate(), now);
  throttle_.moves_in.set_rate(rate_.rate(), now);
  shown_.set(rate_.rate());
}

void MovesPace::set_max(std::int64_t rate_max) {
  rate_.set_max(rate_max);
  apply();
}

void MovesPace::note(const TopicPartition& id, bool moving) {
  if (!moving) {
    moving_.erase(id);
    return;
  }
  moving_.insert(id);
  if (std::exchange(measuring_, true)) return;
  spawn_held(running_, environment_.control(), run(), "pace of moves", &background_);
}

Task<Duration> MovesPace::longest_wait() {
  std::vector<Pending<Duration>> waiting;
  for (auto* shard : environment_.shards()) {
    waiting.push_back(start(environment_.control(), probe_(*shard), &background_));
  }
  Duration longest{};
  for (auto& one : waiting) {
    MR_CO_TRY(const auto waited, co_await one);
    longest = std::max(longest, waited);
  }
  co_return longest;
}

// Ends when nothing moves any more: whoever rests measures nothing.
Task<> MovesPace::run() {
  auto& control = environment_.control();
  auto since = control.now();
  auto moved_before = throttle_.moved_bytes();
  Duration waited{};
  for (int probes = 1; !moving_.empty(); ++probes) {
    MR_CO_CHECK(co_await sleep(probe_interval));
    MR_CO_TRY(const auto now_waited, co_await longest_wait());
    waited = std::max(waited, now_waited);
    if (probes % probes_per_step != 0) continue;
    const auto now = control.now();
    const auto moved = throttle_.moved_bytes();
    rate_.observe(waited, moved - moved_before, now - since);
    apply();
    since = now;
    moved_before = moved;
    waited = {};
  }
  measuring_ = false;
  co_return {};
}

Task<> MovesPace::close() {
  background_.cancel();
  co_return co_await running_.close();
}

}  // namespace millrace::kernel
