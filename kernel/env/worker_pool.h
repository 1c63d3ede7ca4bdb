// A fixed number of threads that may block.
#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

#include <millrace/environment.h>

namespace millrace::kernel {

/// Jobs run in the order of submission, none is dropped. They must not throw.
class WorkerPool final : public BlockingPool {
 public:
  ~WorkerPool() override { stop(); }

  Result<> start(unsigned threads);
  /// [any thread] After stop() the job runs at once in the caller's thread.
  void submit(Job job) override;
  /// Runs everything that was submitted, then joins the threads. Idempotent.
  void stop();

 private:
  void work();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Job> jobs_;  // guarded by mutex_
  bool stopped_ = false;  // guarded by mutex_
  std::vector<std::thread> threads_;
};

}  // namespace millrace::kernel
