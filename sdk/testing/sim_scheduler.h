// Who runs next, and when time moves. Nothing here knows of networks or disks.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
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
  MonoTime busy_until;  // its thread waits for something, and runs nothing before
};

class SimScheduler {
 public:
  /// Names a timer; never reused.
  using TimerKey = std::pair<MonoTime, std::uint64_t>;

  explicit SimScheduler(std::uint64_t seed) : random_(seed) {}

  /// For the job that runs, with what it has waited for.
  MonoTime now() const noexcept { return now_ + waited_; }
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
  /// `job` is one of the lane's from now on.
  void post(SimLane& lane, Job job);

  /// The job that runs waits for so long, and its thread with it: what it does from here on is seen
  /// by others only then. A pool has other threads. Without effect between jobs.
  void wait(Duration time);
  /// Nothing of this lane runs for so long.
  void pause(SimLane& lane, Duration time);

  /// Runs what is due, then one job of a lane that chance chooses; when there is none, moves time
  /// to the next timer, not beyond `until`. False when nothing is left before `until`.
  bool step(MonoTime until);
  /// Runs `job` as a thread that serves no lane: it may post to them and no more.
  void run_outside(const std::function<void()>& job);
  /// Drops every timer and ends every wait; true when there was one.
  bool drop_timers();

 private:
  bool run_job();
  void keep_busy(SimLane& lane, MonoTime until);
  void hand_over(MonoTime until);

  MonoTime now_{std::chrono::hours(1)};
  Duration waited_{};  // by the job that runs
  SimRandom random_;
  SimTrace trace_;
  std::vector<SimLane*> lanes_;
  SimLane* running_ = nullptr;
  SimLane outside_{.name = "outside", .jobs = {}, .busy_until = {}};
  std::map<TimerKey, Job> timers_;
  std::map<TimerKey, std::pair<SimLane*, Job>> late_;  // posted by jobs that have waited
  std::uint64_t timers_made_ = 0;
};

}  // namespace millrace::testing
