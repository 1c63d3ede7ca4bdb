#include "kernel/env/event_loop.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>

#include "kernel/env/system_error.h"

namespace millrace::kernel {

namespace {

// How long a turn runs what became ready by what it ran, before the network gets its share.
constexpr Duration turn_max = std::chrono::milliseconds(1);
constexpr std::size_t events_per_call_max = 128;

int checked(int descriptor, const char* what) {
  if (descriptor < 0) throw std::system_error(errno, std::generic_category(), what);
  return descriptor;
}

// The wait is never shorter than asked for. Systems before Linux 5.11 round it up to milliseconds.
int wait_for_events(int epoll, std::span<epoll_event> events, std::optional<Duration> limit) {
  const int room = static_cast<int>(events.size());
  if (!limit) return ::epoll_wait(epoll, events.data(), room, -1);
  if (*limit <= Duration::zero()) return ::epoll_wait(epoll, events.data(), room, 0);
  const timespec time{.tv_sec = *limit / std::chrono::seconds(1),
                      .tv_nsec = (*limit % std::chrono::seconds(1)).count()};
  const int count = ::epoll_pwait2(epoll, events.data(), room, &time, nullptr);
  if (count >= 0 || errno != ENOSYS) return count;
  constexpr Duration longest = std::chrono::minutes(1);
  const auto ms = std::chrono::ceil<std::chrono::milliseconds>(std::min(*limit, longest));
  return ::epoll_wait(epoll, events.data(), room, static_cast<int>(ms.count()));
}

}  // namespace

EventLoop::EventLoop(unsigned index, Log log, EnvironmentMetrics& metrics)
    : index_(index),
      log_(std::move(log)),
      metrics_(metrics),
      epoll_(checked(::epoll_create1(EPOLL_CLOEXEC), "epoll_create1")),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  epoll_event event{.events = EPOLLIN, .data = {.ptr = nullptr}};
  if (wake_ < 0 || ::epoll_ctl(epoll_, EPOLL_CTL_ADD, wake_, &event) != 0) {
    const int failure = errno;
    if (wake_ >= 0) ::close(wake_);
    ::close(epoll_);
    throw std::system_error(failure, std::generic_category(), "eventfd");
  }
}

EventLoop::~EventLoop() {
  ::close(wake_);
  ::close(epoll_);
}

bool EventLoop::is_current() const noexcept { return thread_.load() == std::this_thread::get_id(); }

void EventLoop::post(Job job) {
  {
    const std::lock_guard lock(posted_mutex_);
    posted_.push_back(std::move(job));
  }
  if (!is_current()) wake();
}

// The flag falls when the loop has read the event, not when the jobs are taken: while it is up the
// event is there, so the loop cannot go to sleep over jobs posted meanwhile.
void EventLoop::wake() {
  if (wake_pending_.exchange(true)) return;
  wake_ups_.fetch_add(1, std::memory_order_relaxed);
  constexpr std::uint64_t one = 1;
  const auto written = ::write(wake_, &one, sizeof one);
  MR_ASSERT(written == sizeof one);
}

void EventLoop::resume_soon(std::coroutine_handle<> waiting) {
  MR_ASSERT(is_current());
  ready_.push_back(waiting);
}

TimerId EventLoop::schedule(MonoTime when, Job job) {
  MR_ASSERT(is_current());
  return timers_.schedule(when, std::move(job));
}

void EventLoop::unschedule(TimerId timer) noexcept {
  MR_ASSERT(is_current());
  timers_.unschedule(timer);
}

void EventLoop::report(std::string_view task, const Error& error) noexcept {
  metrics_.tasks_failed.add();
  log_.error("a task failed", {{"task", task}, {"shard", index_}, {"reason", to_string(error)}});
}

void EventLoop::run() {
  adopt();
  while (!stopping_) {
    const auto turn_end = now() + turn_max;
    while (run_ready() && now() < turn_end) {
    }
    serve_events(has_ready() ? MonoTime{} : timers_.next());
  }
}

void EventLoop::stop() {
  stopping_ = true;
  wake();
}

void EventLoop::adopt() noexcept { thread_ = std::this_thread::get_id(); }

bool EventLoop::finish_ready() {
  const bool any = serve_events(MonoTime{});
  return run_ready() || any;
}

void EventLoop::cancel_waits() noexcept {
  timers_.clear();
  while (!watches_.empty()) {
    auto* watch = *watches_.begin();
    watches_.erase(watches_.begin());
    watch->cancel_waits();
  }
}

Result<> EventLoop::watch(int descriptor, std::uint32_t events, LoopWatch& watch) {
  MR_ASSERT(is_current());
  epoll_event event{.events = events, .data = {.ptr = &watch}};
  const bool known = watches_.contains(&watch);
  const int operation = events == 0 ? EPOLL_CTL_DEL : known ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;
  if (::epoll_ctl(epoll_, operation, descriptor, &event) != 0) {
    return system_error(errno, "watch a descriptor");
  }
  if (events == 0) {
    watches_.erase(&watch);
  } else if (!known) {
    watches_.insert(&watch);
  }
  return {};
}

void EventLoop::forget(int descriptor, LoopWatch& watch) noexcept {
  epoll_event none{};
  ::epoll_ctl(epoll_, EPOLL_CTL_DEL, descriptor, &none);
  watches_.erase(&watch);
}

bool EventLoop::serve_events(std::optional<MonoTime> until) {
  std::array<epoll_event, events_per_call_max> events;
  std::optional<Duration> limit;
  if (until == MonoTime{}) {
    limit = Duration::zero();
  } else if (until) {
    limit = *until - now();
  }
  const int count = wait_for_events(epoll_, events, limit);
  for (int at = 0; at < count; ++at) {
    const auto& event = events[static_cast<std::size_t>(at)];
    if (event.data.ptr) {
      static_cast<LoopWatch*>(event.data.ptr)->on_events(event.events);
      continue;
    }
    std::uint64_t posts = 0;
    static_cast<void>(::read(wake_, &posts, sizeof posts));
    wake_pending_ = false;
  }
  return count > 0;
}

bool EventLoop::run_ready() {
  bool any = timers_.run_due(now());
  {
    const std::lock_guard lock(posted_mutex_);
    posted_running_.swap(posted_);
  }
  any |= !posted_running_.empty();
  for (auto& posted : posted_running_) {
    auto job = std::move(posted);
    job();
  }
  posted_running_.clear();
  ready_running_.swap(ready_);
  any |= !ready_running_.empty();
  for (const auto coroutine : ready_running_) coroutine.resume();
  ready_running_.clear();
  return any;
}

bool EventLoop::has_ready() {
  if (!ready_.empty()) return true;
  const std::lock_guard lock(posted_mutex_);
  return !posted_.empty();
}

}  // namespace millrace::kernel
