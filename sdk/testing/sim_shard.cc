#include "sim_shard.h"

namespace millrace::testing {

void SimShard::resume_soon(std::coroutine_handle<> waiting) {
  check_thread();
  post([waiting] { waiting.resume(); });
}

TimerId SimShard::schedule(MonoTime when, Job job) {
  check_thread();
  const auto id = TimerId{++timers_made_};
  const auto key = scheduler_.at(when, [this, id] { post([this, id] { fire(id); }); });
  timers_.emplace(id, Timer{key, std::move(job)});
  return id;
}

void SimShard::unschedule(TimerId timer) noexcept {
  check_thread();
  const auto found = timers_.find(timer);
  if (found == timers_.end()) return;
  scheduler_.forget(found->second.key);
  timers_.erase(found);
}

void SimShard::fire(TimerId timer) {
  // It may have been unscheduled between the moment it was due and this one.
  auto due = timers_.extract(timer);
  if (!due.empty()) due.mapped().job();
}

void SimShard::report(std::string_view task, const Error& error) noexcept {
  auto line = lane_.name + " " + std::string(task) + ": " + to_string(error);
  scheduler_.note("report " + line);
  reports_.push_back(std::move(line));
}

bool SimShard::drop_timers() {
  const auto dropped = std::exchange(timers_, {});
  return !dropped.empty();
}

}  // namespace millrace::testing
