#include "kernel/partition/opening.h"

namespace millrace::kernel {

void OneAtATime::submit(Job job) {
  {
    const std::lock_guard lock(line_->mutex);
    line_->waiting.push_back(std::move(job));
    if (std::exchange(line_->running, true)) return;
  }
  line_->pool.submit([line = line_] { run_next(line); });
}

// Each takes its turn with the pool's other jobs.
void OneAtATime::run_next(const std::shared_ptr<Line>& line) {
  Job job;
  {
    const std::lock_guard lock(line->mutex);
    job = std::move(line->waiting.front());
    line->waiting.pop_front();
  }
  job();
  job = {};  // what it held goes before the next one begins
  {
    const std::lock_guard lock(line->mutex);
    line->running = !line->waiting.empty();
    if (!line->running) return;
  }
  line->pool.submit([line] { run_next(line); });
}

}  // namespace millrace::kernel
