// A shard, and a pool of workers, as lanes of the scheduler.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "sim_scheduler.h"

namespace millrace::testing {

class SimShard final : public Shard {
 public:
  /// `reports` gets what spawned tasks ended with.
  SimShard(SimScheduler& scheduler, unsigned index, std::string name,
           std::vector<std::string>& reports)
      : scheduler_(scheduler), index_(index), reports_(reports) {
    lane_.name = std::move(name);
    scheduler_.add(lane_);
  }

  unsigned index() const noexcept override { return index_; }
  MonoTime now() const noexcept override { return scheduler_.now(); }
  bool is_current() const noexcept override { return scheduler_.running() == &lane_; }
  void post(Job job) override { scheduler_.post(lane_, std::move(job)); }
  void resume_soon(std::coroutine_handle<> waiting) override;
  TimerId schedule(MonoTime when, Job job) override;
  void unschedule(TimerId timer) noexcept override;
  void report(std::string_view task, const Error& error) noexcept override;

  bool drop_timers();
  void pause(Duration time) { scheduler_.pause(lane_, time); }

 private:
  struct Timer {
    SimScheduler::TimerKey key;
    Job job;
  };
  // Between jobs the test itself, which has stopped the world, may stand in for any shard.
  void check_thread() const { MR_ASSERT(is_current() || scheduler_.running() == nullptr); }
  void fire(TimerId timer);

  SimScheduler& scheduler_;
  unsigned index_;
  std::vector<std::string>& reports_;
  SimLane lane_;
  std::map<TimerId, Timer> timers_;
  std::uint64_t timers_made_ = 0;
};

class SimPool final : public BlockingPool {
 public:
  SimPool(SimScheduler& scheduler, std::string name) : scheduler_(scheduler) {
    lane_.name = std::move(name);
    lane_.in_order = false;
    scheduler_.add(lane_);
  }
  void submit(Job job) override { scheduler_.post(lane_, std::move(job)); }
  void pause(Duration time) { scheduler_.pause(lane_, time); }

 private:
  SimScheduler& scheduler_;
  SimLane lane_;
};

}  // namespace millrace::testing
