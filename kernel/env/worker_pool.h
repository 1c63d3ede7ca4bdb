// A number of threads that may block.
#pragma once

#include <memory>

#include <millrace/environment.h>

namespace millrace::kernel {

/// Jobs run in the order of submission, none is dropped. They must not throw.
class WorkerPool final : public BlockingPool {
 public:
  WorkerPool();
  ~WorkerPool() override { stop(); }

  Result<> start(unsigned threads);
  /// [any thread] After stop() the job runs at once in the caller's thread.
  void submit(Job job) override;
  void lend() override;
  void take_back() override;
  /// Runs everything that was submitted, then ends the threads, but for those that are lent.
  /// Idempotent.
  void stop();
  /// Threads that are lent: after stop(), those that never came back.
  unsigned lent() const;

 private:
  struct Shared;

  static Result<> start_one(const std::shared_ptr<Shared>& shared);
  static void work(Shared& shared);

  std::shared_ptr<Shared> shared_;  // with the threads, one of which may outlive the pool
};

}  // namespace millrace::kernel
