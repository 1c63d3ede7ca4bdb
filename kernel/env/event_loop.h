// A shard of the real environment: one thread, one epoll descriptor.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <unordered_set>
#include <utility>
#include <vector>

#include <millrace/observe.h>
#include <millrace/shard.h>

#include "kernel/env/metrics.h"
#include "kernel/env/timer_queue.h"

namespace millrace::kernel {

/// Whoever is told what happens to a descriptor.  [the loop's thread]
class LoopWatch {
 public:
  virtual ~LoopWatch() = default;
  /// `events` of epoll. Wakes coroutines and no more: nothing is watched or closed before it
  /// returns.
  virtual void on_events(std::uint32_t events) noexcept = 0;
  /// Nobody will serve the loop any more.
  virtual void cancel_waits() noexcept = 0;
};

/// Each turn of the loop runs what is ready: due timers, posted jobs, woken coroutines; then it
/// takes what has happened to descriptors, waiting for it only if nothing is ready.
///
/// Its life: run() in its thread until stop(); then whoever has joined the thread takes over with
/// adopt() and ends what is left by finish_ready() and cancel_waits().
class EventLoop final : public Shard {
 public:
  /// `metrics` outlives the loop. Throws std::system_error when the system has no descriptors left.
  EventLoop(unsigned index, Log log, EnvironmentMetrics& metrics);
  ~EventLoop() override;

  // Shard
  unsigned index() const noexcept override { return index_; }
  MonoTime now() const noexcept override { return std::chrono::steady_clock::now(); }
  bool is_current() const noexcept override;
  void post(Job job) override;
  void resume_soon(std::coroutine_handle<> waiting) override;
  TimerId schedule(MonoTime when, Job job) override;
  void unschedule(TimerId timer) noexcept override;
  void report(std::string_view task, const Error& error) noexcept override;

  /// Serves until stop().  [the loop's thread]
  void run();
  /// Ends run() after the turn it is in.  [any thread]
  void stop();
  /// Makes the calling thread the loop's own.  [after the loop's thread was joined]
  void adopt() noexcept;
  /// Runs what is ready once; false if there was nothing.  [the loop's thread]
  bool finish_ready();
  /// Cancels all timers and waits for descriptors.  [the loop's thread]
  void cancel_waits() noexcept;
  /// Forgets coroutines that were woken and have not run since; how many.  [the loop's thread]
  std::size_t forget_woken() noexcept { return std::exchange(ready_, {}).size(); }

  /// Watches a descriptor for events of epoll, as long as they last; no events: not any more.
  Result<> watch(int descriptor, std::uint32_t events, LoopWatch& watch);
  /// Before `descriptor` is closed: a process that is just being started has a copy of it for a
  /// moment, and as long as there is one, the system goes on telling of it.
  void forget(int descriptor, LoopWatch& watch) noexcept;

  const Log& log() const noexcept { return log_; }
  EnvironmentMetrics& metrics() const noexcept { return metrics_; }
  /// What streams have sent of large parts in the round that the loop is in.  [the loop's thread]
  std::size_t sent_in_round() const noexcept { return sent_in_round_; }
  void count_sent(std::size_t bytes) noexcept { sent_in_round_ += bytes; }
  /// How often posting had to wake the loop.  [any thread]
  std::uint64_t wake_ups() const noexcept { return wake_ups_; }

 private:
  bool run_ready(MonoTime time);
  bool has_ready() const noexcept { return !ready_.empty() || any_posted_; }
  void wake();
  void arm_timer() noexcept;
  /// Answers whether there were events. `wait`: until there is one, or a timer is due.
  bool serve_events(bool wait);

  const unsigned index_;
  const Log log_;
  EnvironmentMetrics& metrics_;
  std::atomic<std::thread::id> thread_;
  std::atomic<bool> stopping_{false};
  std::atomic<std::uint64_t> wake_ups_{0};

  // The rest may wake coroutines while it is destroyed: these go last.
  std::vector<std::coroutine_handle<>> ready_;
  std::vector<std::coroutine_handle<>> ready_running_;

  std::mutex posted_mutex_;
  std::vector<Job> posted_;                // guarded by posted_mutex_
  std::atomic<bool> any_posted_{false};    // changed under posted_mutex_
  std::atomic<bool> wake_pending_{false};  // wake_ can be read

  std::vector<Job> posted_running_;

  TimerQueue timers_;
  std::unordered_set<LoopWatch*> watches_;
  std::size_t sent_in_round_ = 0;
  std::optional<MonoTime> armed_;  // when timer_ can be read; no later than the next timer is due
  const int epoll_;
  const int wake_;   // an eventfd
  const int timer_;  // a timerfd
};

}  // namespace millrace::kernel
