#include "sim_scheduler.h"

namespace millrace::testing {

void SimScheduler::note(std::string_view text) {
  auto line = std::to_string(now_.time_since_epoch().count());
  line += ' ';
  line += text;
  trace_.add(std::move(line));
}

SimScheduler::TimerKey SimScheduler::at(MonoTime when, Job job) {
  const TimerKey key{when, ++timers_made_};
  timers_.emplace(key, std::move(job));
  return key;
}

bool SimScheduler::step(MonoTime until) {
  while (!timers_.empty() && timers_.begin()->first.first <= now_) {
    auto due = timers_.extract(timers_.begin());
    due.mapped()();
  }
  if (run_job()) return true;
  if (timers_.empty() || timers_.begin()->first.first > until) {
    now_ = std::max(now_, until);
    return false;
  }
  now_ = timers_.begin()->first.first;
  return true;
}

bool SimScheduler::run_job() {
  std::vector<SimLane*> ready;
  for (auto* lane : lanes_) {
    if (!lane->jobs.empty()) ready.push_back(lane);
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
  return true;
}

bool SimScheduler::drop_timers() {
  const auto dropped = std::exchange(timers_, {});
  return !dropped.empty();
}

}  // namespace millrace::testing
