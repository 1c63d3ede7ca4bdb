// Who runs next, and when time moves. Nothing here knows of networks or disks.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <millrace/environment.h>
#include <millrace/testing/sim_random.h>
#include <millrace/testing/sim_trace.h>

namespace millrace::testing {

/// Jobs of a shard, which run in the order in which they were posted, or of a pool, which run in
/// any order, as on several threads.
struct SimLane {
  std::string name;
  bool in_order = true;
  std::deque<Job> jobs;
};

class SimScheduler {
 public:
  /// Names a timer; never reused.
  using TimerKey = std::pair<MonoTime, std::uint64_t>;

  explicit SimScheduler(std::uint64_t seed) : random_(seed) {}

  MonoTime now() const noexcept { return now_; }
  SimRandom& random() noexcept { return random_; }
  const SimTrace& trace() const noexcept { return trace_; }
  /// Adds a line to the trace, with the time.
  void note(std::string_view text);

  /// Lanes outlive the scheduler's last step.
  void add(SimLane& lane) { lanes_.push_back(&lane); }
  /// Of the job that runs now; null between jobs and in timers.
  const SimLane* running() const noexcept { return running_; }

  /// `job` runs once `when` is reached, on no lane: it hands on to one.
  TimerKey at(MonoTime when, Job job);
  void forget(TimerKey timer) { timers_.erase(timer); }

  /// Runs what is due, then one job of a lane that chance chooses; when there is none, moves time
  /// to the next timer, not beyond `until`. False when nothing is left before `until`.
  bool step(MonoTime until);
  /// Drops every timer; true when there was one.
  bool drop_timers();

 private:
  bool run_job();

  MonoTime now_{std::chrono::hours(1)};
  SimRandom random_;
  SimTrace trace_;
  std::vector<SimLane*> lanes_;
  const SimLane* running_ = nullptr;
  std::map<TimerKey, Job> timers_;
  std::uint64_t timers_made_ = 0;
};

}  // namespace millrace::testing
