#include "kernel/env/worker_pool.h"

#include <string>

#include "kernel/env/thread.h"

namespace millrace::kernel {

Result<> WorkerPool::start(unsigned threads) {
  for (unsigned i = 0; i < threads; ++i) {
    MR_TRY(auto thread, start_thread("mr-worker-" + std::to_string(i), [this] { work(); }));
    threads_.push_back(std::move(thread));
  }
  return {};
}

void WorkerPool::submit(Job job) {
  {
    const std::lock_guard lock(mutex_);
    if (!stopped_) {
      jobs_.push_back(std::move(job));
      changed_.notify_one();
      return;
    }
  }
  job();
}

void WorkerPool::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  changed_.notify_all();
  for (auto& thread : threads_) thread.join();
  threads_.clear();
}

void WorkerPool::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stopped_ || !jobs_.empty(); });
    if (jobs_.empty()) return;
    {
      auto job = std::move(jobs_.front());
      jobs_.pop_front();
      lock.unlock();
      job();
    }
    lock.lock();
  }
}

}  // namespace millrace::kernel
