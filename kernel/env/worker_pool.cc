#include "kernel/env/worker_pool.h"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <string>
#include <utility>

#include "kernel/env/thread.h"

namespace millrace::kernel {

struct WorkerPool::Shared {
  std::mutex mutex;
  std::condition_variable changed;
  // All guarded by mutex.
  std::deque<Job> jobs;
  bool stopped = false;
  unsigned started = 0;  // for their names
  unsigned running = 0;  // threads
  unsigned lent = 0;     // of them, those that a job keeps
  unsigned missing = 0;  // those that could not be started in a lent one's place
  unsigned surplus = 0;  // those that end at their next look, since a lent one has come back
};

WorkerPool::WorkerPool() : shared_(std::make_shared<Shared>()) {}

Result<> WorkerPool::start(unsigned threads) {
  for (unsigned i = 0; i < threads; ++i) MR_CHECK(start_one(shared_));
  return {};
}

Result<> WorkerPool::start_one(const std::shared_ptr<Shared>& shared) {
  std::string name;
  {
    const std::lock_guard lock(shared->mutex);
    name = "mr-worker-" + std::to_string(shared->started++);
    ++shared->running;
  }
  auto thread = start_thread(name, [shared] { work(*shared); });
  if (!thread) {
    const std::lock_guard lock(shared->mutex);
    --shared->running;
    return std::move(thread).error();
  }
  thread->detach();  // stop() waits for it by `running`
  return {};
}

void WorkerPool::submit(Job job) {
  {
    const std::lock_guard lock(shared_->mutex);
    if (!shared_->stopped) {
      shared_->jobs.push_back(std::move(job));
      shared_->changed.notify_one();
      return;
    }
  }
  job();
}

void WorkerPool::lend() {
  {
    const std::lock_guard lock(shared_->mutex);
    ++shared_->lent;
    shared_->changed.notify_all();  // stop() counts without it
    if (shared_->surplus > 0) {
      --shared_->surplus;
      return;
    }
  }
  if (start_one(shared_)) return;
  const std::lock_guard lock(shared_->mutex);  // the others have more to do
  ++shared_->missing;
}

void WorkerPool::take_back() {
  const std::lock_guard lock(shared_->mutex);
  --shared_->lent;
  if (shared_->missing > 0) {
    --shared_->missing;
  } else {
    ++shared_->surplus;
  }
  shared_->changed.notify_all();
}

unsigned WorkerPool::lent() const {
  const std::lock_guard lock(shared_->mutex);
  return shared_->lent;
}

void WorkerPool::stop() {
  std::unique_lock lock(shared_->mutex);
  shared_->stopped = true;
  shared_->changed.notify_all();
  shared_->changed.wait(lock, [this] { return shared_->running <= shared_->lent; });
  // Where every thread is lent, nobody else is left to do them.
  while (!shared_->jobs.empty()) {
    auto job = std::move(shared_->jobs.front());
    shared_->jobs.pop_front();
    lock.unlock();
    job();
    lock.lock();
  }
}

void WorkerPool::work(Shared& shared) {
  std::unique_lock lock(shared.mutex);
  while (true) {
    shared.changed.wait(
        lock, [&] { return shared.stopped || shared.surplus > 0 || !shared.jobs.empty(); });
    const bool is_surplus = shared.surplus > 0;
    if (is_surplus) --shared.surplus;
    if (is_surplus || shared.jobs.empty()) break;
    {
      auto job = std::move(shared.jobs.front());
      shared.jobs.pop_front();
      lock.unlock();
      job();
    }
    lock.lock();
  }
  --shared.running;
  shared.changed.notify_all();
}

}  // namespace millrace::kernel
