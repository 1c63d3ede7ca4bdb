#include "sync_group.h"

#include <algorithm>
#include <utility>

namespace millrace::filelog {

SyncGroup::SyncGroup(FileSystem& files, BlockingPool& pool, std::string folder)
    : shared_(std::make_shared<Shared>(files, pool, std::move(folder))) {}

Task<> SyncGroup::run(SyncWork work) {
  Shard& here = co_await this_shard();
  auto [resolver, pending] = make_pending<>();
  {
    const std::lock_guard lock(shared_->mutex);
    shared_->waiting.push_back({std::move(work), &here, std::move(resolver), {}});
  }
  shared_->pool.submit([shared = shared_] { run_next(shared); });
  co_return co_await pending;
}

// One job was submitted for each that waits; those whose work a group has taken find nothing to do.
// A few go beside each other. Who comes while a group is under way waits for the next one.
void SyncGroup::run_next(const std::shared_ptr<Shared>& shared) {
  std::deque<Waiting> group;
  {
    const std::lock_guard lock(shared->mutex);
    auto& waiting = shared->waiting;
    if (waiting.empty() || shared->together) return;
    if (waiting.size() > one_by_one_max) {
      group.swap(waiting);
      shared->together = true;
    } else {
      group.push_back(std::move(waiting.front()));
      waiting.pop_front();
    }
  }
  if (group.size() == 1) {
    group.front().result = group.front().work.write(true);
    return answer(std::move(group.front()));
  }
  run_together(*shared, group);
  std::size_t left = 0;
  {
    const std::lock_guard lock(shared->mutex);
    shared->together = false;
    left = std::min(shared->waiting.size(), one_by_one_max + 1);
  }
  for (auto& waiting : group) answer(std::move(waiting));
  for (; left > 0; --left) shared->pool.submit([shared] { run_next(shared); });
}

// Where the disk as a whole cannot be synced, each learns by itself whether what is its own can.
void SyncGroup::run_together(Shared& shared, std::deque<Waiting>& group) {
  for (auto& waiting : group) waiting.result = waiting.work.write(false);
  auto synced = shared.files.sync_all(shared.folder);
  bool names = false;
  for (auto& waiting : group) {
    if (synced && waiting.result) waiting.result = waiting.work.finish();
    names = names || (waiting.work.names && waiting.result);
  }
  if (synced && names) synced = shared.files.sync_all(shared.folder);
  if (synced) return;
  for (auto& waiting : group) {
    if (waiting.result) waiting.result = waiting.work.write(true);
  }
}

void SyncGroup::answer(Waiting waiting) {
  auto* home = waiting.home;
  home->post([done = std::move(waiting.done), result = std::move(waiting.result),
              work = std::move(waiting.work)]() mutable { done.resolve(std::move(result)); });
}

}  // namespace millrace::filelog
