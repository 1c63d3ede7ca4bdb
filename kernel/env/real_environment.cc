#include "kernel/env/real_environment.h"

#include <string>
#include <system_error>
#include <thread>

#include "kernel/env/event_loop.h"
#include "kernel/env/network.h"
#include "kernel/env/posix_file_system.h"
#include "kernel/env/system_sources.h"
#include "kernel/env/thread.h"
#include "kernel/env/worker_pool.h"

namespace millrace::kernel {
namespace {

// Jobs and coroutines that still make work for each other after so many rounds will not end.
constexpr int rounds_at_stop_max = 1000;

}  // namespace

struct RealEnvironment::Parts {
  Parts(EnvironmentSettings settings, const Log& environment_log, Metrics& all_metrics)
      : log(environment_log), metrics(all_metrics), network(workers, settings.send_buffer_bytes) {
    for (unsigned i = 0; i <= settings.shards; ++i) {
      loops.push_back(std::make_unique<EventLoop>(i, log, metrics));
      if (i < settings.shards) shards.push_back(loops.back().get());
    }
  }

  Result<> start_threads(EnvironmentSettings settings) {
    for (auto& loop : loops) {
      const bool is_control = loop == loops.back();
      const auto name = is_control ? "mr-control" : "mr-shard-" + std::to_string(loop->index());
      MR_TRY(auto thread, start_thread(name, [&loop] { loop->run(); }));
      threads.push_back(std::move(thread));
    }
    return workers.start(settings.workers);
  }

  void join() {
    workers.stop();
    for (auto& loop : loops) loop->stop();
    for (auto& thread : threads) thread.join();
    threads.clear();
  }

  // The loops' threads are gone: the caller's is the only one.
  void run_what_is_left() {
    for (int round = 0; round < rounds_at_stop_max; ++round) {
      bool any = false;
      for (auto& loop : loops) any |= loop->finish_ready();
      if (!any) return;
    }
    log.warning("work did not come to an end while stopping", {{"rounds", rounds_at_stop_max}});
  }

  Log log;
  EnvironmentMetrics metrics;
  SystemClock clock;
  SystemRandom random;
  PosixFileSystem files;
  std::vector<std::unique_ptr<EventLoop>> loops;  // the control thread's is the last
  std::vector<Shard*> shards;
  WorkerPool workers;
  SocketNetwork network;
  std::vector<std::thread> threads;
  bool stopped = false;
};

Result<std::unique_ptr<RealEnvironment>> RealEnvironment::start(EnvironmentSettings settings,
                                                                const Log& log, Metrics& metrics) {
  MR_ASSERT(settings.shards > 0);
  MR_ASSERT(settings.workers > 0);
  try {
    auto parts = std::make_unique<Parts>(settings, log, metrics);
    std::unique_ptr<RealEnvironment> environment(new RealEnvironment(std::move(parts)));
    MR_CHECK(environment->parts_->start_threads(settings));
    return environment;
  } catch (const std::system_error& error) {
    return Error{Errc::io, std::string("start an event loop: ") + error.what()};
  }
}

RealEnvironment::RealEnvironment(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

RealEnvironment::~RealEnvironment() {
  stop();
  parts_->run_what_is_left();  // what was posted since
}

void RealEnvironment::stop() {
  if (std::exchange(parts_->stopped, true)) return;
  parts_->join();
  for (auto& loop : parts_->loops) loop->adopt();
  parts_->run_what_is_left();
  for (auto& loop : parts_->loops) loop->cancel_waits();
  parts_->run_what_is_left();
}

std::size_t RealEnvironment::forget_woken() noexcept {
  MR_ASSERT(parts_->stopped);
  std::size_t forgotten = 0;
  for (auto& loop : parts_->loops) forgotten += loop->forget_woken();
  return forgotten;
}

Clock& RealEnvironment::clock() noexcept { return parts_->clock; }
Random& RealEnvironment::random() noexcept { return parts_->random; }
Network& RealEnvironment::network() noexcept { return parts_->network; }
FileSystem& RealEnvironment::files() noexcept { return parts_->files; }
BlockingPool& RealEnvironment::workers() noexcept { return parts_->workers; }
std::span<Shard* const> RealEnvironment::shards() noexcept { return parts_->shards; }
Shard& RealEnvironment::control() noexcept { return *parts_->loops.back(); }

std::uint64_t RealEnvironment::tasks_failed() const noexcept {
  return parts_->metrics.tasks_failed.value();
}

unsigned RealEnvironment::threads_lent() const { return parts_->workers.lent(); }

}  // namespace millrace::kernel
