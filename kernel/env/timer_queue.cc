#include "kernel/env/timer_queue.h"

#include <algorithm>
#include <functional>

namespace millrace::kernel {
namespace {

// Below this a heap is not worth compacting.
constexpr std::size_t compact_places_min = 64;

}  // namespace

TimerId TimerQueue::schedule(MonoTime when, Job job) {
  const auto id = next_id_++;
  jobs_.emplace(id, std::move(job));
  heap_.push_back({when, id});
  std::ranges::push_heap(heap_, std::greater{});
  return TimerId{id};
}

void TimerQueue::unschedule(TimerId timer) noexcept {
  // The job dies at the end of the function, when the table is whole again: its captures may come
  // back here.
  const auto removed = jobs_.extract(static_cast<std::uint64_t>(timer));
  if (removed && heap_.size() > compact_places_min && heap_.size() > 2 * jobs_.size()) compact();
}

std::optional<MonoTime> TimerQueue::next() {
  while (!heap_.empty()) {
    if (jobs_.contains(heap_.front().id)) return heap_.front().when;
    drop_front();
  }
  return std::nullopt;
}

bool TimerQueue::run_due(MonoTime now) {
  bool any = false;
  const auto ids_end = next_id_;
  while (!heap_.empty() && heap_.front().when <= now && heap_.front().id < ids_end) {
    auto due = jobs_.extract(heap_.front().id);
    drop_front();
    if (!due) continue;
    any = true;
    due.mapped()();
  }
  return any;
}

void TimerQueue::clear() noexcept {
  heap_.clear();
  const auto dropped = std::exchange(jobs_, {});
}

void TimerQueue::drop_front() {
  std::ranges::pop_heap(heap_, std::greater{});
  heap_.pop_back();
}

void TimerQueue::compact() {
  std::erase_if(heap_, [this](const Place& place) { return !jobs_.contains(place.id); });
  std::ranges::make_heap(heap_, std::greater{});
}

}  // namespace millrace::kernel
