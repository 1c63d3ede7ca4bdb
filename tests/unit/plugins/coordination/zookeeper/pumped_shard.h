// A control thread that is the test's own: jobs come from the client library's threads, and run
// when the test waits for something.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <millrace/environment.h>

namespace millrace::zookeeper {

/// [its maker's thread; post: any]
class PumpedShard final : public Shard {
 public:
  unsigned index() const noexcept override { return 1; }
  MonoTime now() const noexcept override { return std::chrono::steady_clock::now(); }
  bool is_current() const noexcept override { return std::this_thread::get_id() == thread_; }
  void post(Job job) override;
  void resume_soon(std::coroutine_handle<> waiting) override;
  TimerId schedule(MonoTime when, Job job) override;
  void unschedule(TimerId timer) noexcept override;
  void report(std::string_view task, const Error& error) noexcept override;

  /// Runs jobs and timers until `done`; false when it does not hold by then.
  bool run_until(const std::function<bool()>& done, Duration limit);
  /// Runs what is there, and what that leaves behind.
  void drain();
  /// Tasks that ended with an error nobody awaited.
  const std::vector<std::string>& reports() const noexcept { return reports_; }

 private:
  bool run_one();
  bool fire_due();

  std::thread::id thread_ = std::this_thread::get_id();
  std::mutex mutex_;
  std::condition_variable posted_;
  std::deque<Job> jobs_;  // guarded by mutex_
  std::map<std::pair<MonoTime, std::uint64_t>, Job> timers_;
  std::uint64_t timers_made_ = 0;
  std::vector<std::string> reports_;
};

/// The real outside, with a PumpedShard as control thread.
class PumpedEnvironment final : public Environment {
 public:
  explicit PumpedEnvironment(Environment& outside) : outside_(outside) {}

  Clock& clock() noexcept override { return outside_.clock(); }
  Random& random() noexcept override { return outside_.random(); }
  Network& network() noexcept override { return outside_.network(); }
  FileSystem& files() noexcept override { return outside_.files(); }
  BlockingPool& workers() noexcept override { return outside_.workers(); }
  std::span<Shard* const> shards() noexcept override { return outside_.shards(); }
  PumpedShard& control() noexcept override { return control_; }

 private:
  Environment& outside_;
  PumpedShard control_;
};

}  // namespace millrace::zookeeper
