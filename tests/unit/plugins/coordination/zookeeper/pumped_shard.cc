#include "pumped_shard.h"

#include <optional>

namespace millrace::zookeeper {

void PumpedShard::post(Job job) {
  {
    const std::scoped_lock lock(mutex_);
    jobs_.push_back(std::move(job));
  }
  posted_.notify_one();
}

void PumpedShard::resume_soon(std::coroutine_handle<> waiting) {
  post([waiting] { waiting.resume(); });
}

TimerId PumpedShard::schedule(MonoTime when, Job job) {
  const auto made = ++timers_made_;
  timers_.emplace(std::pair(when, made), std::move(job));
  return static_cast<TimerId>(made);
}

void PumpedShard::unschedule(TimerId timer) noexcept {
  std::erase_if(timers_, [timer](const auto& entry) {
    return entry.first.second == static_cast<std::uint64_t>(timer);
  });
}

void PumpedShard::report(std::string_view task, const Error& error) noexcept {
  reports_.push_back(std::string(task) + ": " + to_string(error));
}

bool PumpedShard::run_one() {
  Job job;
  {
    const std::scoped_lock lock(mutex_);
    if (jobs_.empty()) return false;
    job = std::move(jobs_.front());
    jobs_.pop_front();
  }
  job();
  return true;
}

bool PumpedShard::fire_due() {
  if (timers_.empty() || timers_.begin()->first.first > now()) return false;
  auto timer = timers_.extract(timers_.begin());
  timer.mapped()();
  return true;
}

void PumpedShard::drain() {
  while (run_one() || fire_due()) {
  }
}

bool PumpedShard::run_until(const std::function<bool()>& done, Duration limit) {
  const auto give_up_at = now() + limit;
  while (true) {
    drain();
    if (done()) return true;
    if (now() >= give_up_at) return false;
    auto until = give_up_at;
    if (!timers_.empty()) until = std::min(until, timers_.begin()->first.first);
    std::unique_lock lock(mutex_);
    posted_.wait_until(lock, until, [this] { return !jobs_.empty(); });
  }
}

}  // namespace millrace::zookeeper
