#include "kernel/daemon/heartbeat.h"

#include <algorithm>
#include <atomic>

namespace millrace::kernel {

// Shared with the job that answers: it may run after we are gone.
struct Heartbeat::Loop {
  Shard& shard;
  std::string thread;
  std::atomic<bool> answered = false;
};

Heartbeat::Heartbeat(Environment& environment) {
  for (auto* shard : environment.shards()) {
    auto name = "mr-shard-" + std::to_string(shard->index());
    loops_.push_back(std::make_shared<Loop>(*shard, std::move(name)));
  }
  loops_.push_back(std::make_shared<Loop>(environment.control(), "mr-control"));
  ask();
}

bool Heartbeat::beat() {
  const auto has_answered = [](const auto& loop) { return loop->answered.load(); };
  if (!std::ranges::all_of(loops_, has_answered)) return false;
  ask();
  return true;
}

std::vector<std::string> Heartbeat::missing() const {
  std::vector<std::string> threads;
  for (const auto& loop : loops_) {
    if (!loop->answered) threads.push_back(loop->thread);
  }
  return threads;
}

void Heartbeat::ask() {
  for (const auto& loop : loops_) {
    loop->answered = false;
    loop->shard.post([loop] { loop->answered = true; });
  }
}

}  // namespace millrace::kernel
