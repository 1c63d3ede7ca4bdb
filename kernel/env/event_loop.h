// A shard of the real environment: one thread, one Asio io_context. Asio's own types stay in
// event_loop.cc and descriptor.cc.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_set>
#include <vector>

#include <millrace/observe.h>
#include <millrace/shard.h>

#include "kernel/env/metrics.h"
#include "kernel/env/timer_queue.h"

namespace boost::asio {
class io_context;
}

namespace millrace::kernel {

/// What a loop ends when nobody will serve it any more.
class LoopWait {
 public:
  virtual ~LoopWait() = default;
  virtual void cancel_waits() noexcept = 0;
};

/// Each turn of the loop runs what is ready: due timers, posted jobs, woken coroutines; then it
/// serves one event of the system, waiting for it only if nothing is ready.
///
/// Its life: run() in its thread until stop(); then whoever has joined the thread takes over with
/// adopt() and ends what is left by finish_ready() and cancel_waits().
class EventLoop final : public Shard {
 public:
  /// `metrics` outlives the loop.
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

  boost::asio::io_context& context() noexcept;
  void add(LoopWait& wait) { waits_.insert(&wait); }
  void remove(LoopWait& wait) noexcept { waits_.erase(&wait); }

  const Log& log() const noexcept { return log_; }
  EnvironmentMetrics& metrics() const noexcept { return metrics_; }
  /// How often posting had to wake the loop.  [any thread]
  std::uint64_t wake_ups() const noexcept { return wake_ups_; }

 private:
  struct Asio;

  bool run_ready();
  bool has_ready();
  void wake();
  void arm_timer();

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
  std::atomic<bool> wake_pending_{false};  // an event that ends the loop's wait is on its way

  std::vector<Job> posted_running_;

  TimerQueue timers_;
  std::unordered_set<LoopWait*> waits_;
  std::unique_ptr<Asio> asio_;  // goes first: what its handlers hold refers to the rest
};

}  // namespace millrace::kernel
