// The timers of one loop, by time.  [one thread]
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include <millrace/shard.h>

namespace millrace::kernel {

/// A heap of (time, id) beside a table of jobs. Removing a timer takes its job out of the table at
/// once; its place in the heap goes when it is met, or when such places outnumber the living.
class TimerQueue {
 public:
  TimerId schedule(MonoTime when, Job job);
  void unschedule(TimerId timer) noexcept;
  /// When the next timer is due.
  std::optional<MonoTime> next();
  /// Runs what is due at `now`: in order of time, then of scheduling. A timer that a job schedules
  /// runs in a later call, also when it is due already; one that a job removes does not run.
  /// False if nothing was due.
  bool run_due(MonoTime now);
  /// Drops all jobs without running them.
  void clear() noexcept;
  std::size_t size() const noexcept { return jobs_.size(); }

 private:
  struct Place {
    MonoTime when;
    std::uint64_t id;
    friend auto operator<=>(const Place&, const Place&) = default;
  };
  void drop_front();
  void compact();

  std::vector<Place> heap_;  // the earliest at the front
  std::unordered_map<std::uint64_t, Job> jobs_;
  std::uint64_t next_id_ = 1;
};

}  // namespace millrace::kernel
