#include "sim_scheduler.h"

namespace millrace::testing {

void SimScheduler::note(std::string_view text) {
  auto line = std::to_string(now().time_since_epoch().count());
  line += ' ';
  line += text;
  trace_.add(std::move(line));
}

SimScheduler::TimerKey SimScheduler::at(MonoTime when, Job job) {
  const TimerKey key{when, ++timers_made_};
  timers_.emplace(key, std::move(job));
  return key;
}

// A lane that has waited runs nothing before its time, so its own jobs need not be late.
void SimScheduler::post(SimLane& lane, Job job) {
  if (waited_ == Duration{} || (&lane == running_ && lane.in_order)) {
    lane.jobs.push_back(std::move(job));
    return;
  }
  late_.emplace(TimerKey{now(), ++timers_made_}, std::pair(&lane, std::move(job)));
}

void SimScheduler::wait(Duration time) {
  if (running_ != nullptr) waited_ += time;
}

void SimScheduler::pause(SimLane& lane, Duration time) { keep_busy(lane, now() + time); }

// The timer makes time go on to the end of it.
void SimScheduler::keep_busy(SimLane& lane, MonoTime until) {
  if (until <= lane.busy_until) return;
  lane.busy_until = until;
  at(until, [] {});
}

void SimScheduler::hand_over(MonoTime until) {
  while (!late_.empty() && late_.begin()->first.first <= until) {
    auto [lane, job] = std::move(late_.extract(late_.begin()).mapped());
    lane->jobs.push_back(std::move(job));
  }
}

bool SimScheduler::step(MonoTime until) {
  hand_over(now_);
  while (!timers_.empty() && timers_.begin()->first.first <= now_) {
    auto due = timers_.extract(timers_.begin());
    due.mapped()();
  }
  if (run_job()) return true;
  auto next = until;
  bool more = false;
  const auto look_at = [&](const auto& waiting) {
    if (waiting.empty() || waiting.begin()->first.first > next) return;
    next = waiting.begin()->first.first;
    more = true;
  };
  look_at(timers_);
  look_at(late_);
  now_ = std::max(now_, next);
  return more;
}

bool SimScheduler::run_job() {
  std::vector<SimLane*> ready;
  for (auto* lane : lanes_) {
    if (!lane->jobs.empty() && lane->busy_until <= now_) ready.push_back(lane);
  }
  if (ready.empty()) return false;
  auto& lane = *ready[random_.below(ready.size())];
  const auto index = lane.in_order ? 0 : random_.below(lane.jobs.size());
  const auto place = lane.jobs.begin() + static_cast<std::ptrdiff_t>(index);
  auto job = std::move(*place);
  lane.jobs.erase(place);
  note("run " + lane.name);
  running_ = &lane;
  job();
  job = {};  // what it owns goes while its lane still counts as running
  running_ = nullptr;
  if (waited_ > Duration{} && lane.in_order) keep_busy(lane, now());
  waited_ = {};
  return true;
}

void SimScheduler::run_outside(const std::function<void()>& job) {
  MR_ASSERT(running_ == nullptr);
  running_ = &outside_;
  job();
  running_ = nullptr;
  waited_ = {};
}

bool SimScheduler::drop_timers() {
  const auto dropped = std::exchange(timers_, {});
  const bool late = !late_.empty();
  hand_over(MonoTime::max());
  for (auto* lane : lanes_) lane->busy_until = {};
  return late || !dropped.empty();
}

}  // namespace millrace::testing
