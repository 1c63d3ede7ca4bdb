#include "doomed_files.h"

#include <utility>

namespace millrace::filelog {

void DoomedFiles::add(Shard& shard, std::vector<std::string> paths, Duration delay) {
  if (paths.empty()) return;
  if (delay == Duration::zero()) return remove(state_->environment, std::move(paths));
  std::uint64_t id = 0;
  {
    const std::lock_guard lock(state_->mutex);
    id = state_->next++;
    state_->waiting.emplace(id, std::move(paths));
  }
  shard.schedule(shard.now() + delay, [weak = std::weak_ptr(state_), id] {
    const auto state = weak.lock();
    if (!state) return;
    std::vector<std::string> due;
    {
      const std::lock_guard lock(state->mutex);
      if (auto found = state->waiting.extract(id)) due = std::move(found.mapped());
    }
    remove(state->environment, std::move(due));
  });
}

void DoomedFiles::hurry() {
  std::vector<std::string> all;
  {
    const std::lock_guard lock(state_->mutex);
    for (auto& [id, paths] : std::exchange(state_->waiting, {})) {
      for (auto& path : paths) all.push_back(std::move(path));
    }
  }
  remove(state_->environment, std::move(all));
}

void DoomedFiles::remove(Environment& environment, std::vector<std::string> paths) {
  if (paths.empty()) return;
  environment.workers().submit([&files = environment.files(), paths = std::move(paths)] {
    for (const auto& path : paths) (void)files.remove(path);
  });
}

}  // namespace millrace::filelog
