#include "kernel/env/event_loop.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
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

bool tells_of(int epoll, int descriptor, void* source) {
  epoll_event event{.events = EPOLLIN, .data = {.ptr = source}};
  return descriptor >= 0 && ::epoll_ctl(epoll, EPOLL_CTL_ADD, descriptor, &event) == 0;
}

void take_count(int descriptor) noexcept {
  std::uint64_t count = 0;
  static_cast<void>(::read(descriptor, &count, sizeof count));
}

}  // namespace

EventLoop::EventLoop(unsigned index, Log log, EnvironmentMetrics& metrics)
    : index_(index),
      log_(std::move(log)),
      metrics_(metrics),
      epoll_(checked(::epoll_create1(EPOLL_CLOEXEC), "epoll_create1")),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      timer_(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)) {
  if (!tells_of(epoll_, wake_, nullptr) || !tells_of(epoll_, timer_, &timers_)) {
    const int failure = errno;
    if (timer_ >= 0) ::close(timer_);
    if (wake_ >= 0) ::close(wake_);
    ::close(epoll_);
    throw std::system_error(failure, std::generic_category(), "eventfd, timerfd");
  }
}

EventLoop::~EventLoop() {
  ::close(timer_);
  ::close(wake_);
  ::close(epoll_);
}

bool EventLoop::is_current() const noexcept { return thread_.load() == std::this_thread::get_id(); }

void EventLoop::post(Job job) {
  {
    const std::lock_guard lock(posted_mutex_);
    posted_.push_back(std::move(job));
    any_posted_ = true;
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
    auto time = now();
    const auto turn_end = time + turn_max;
    do {
      run_ready(time);
    } while (has_ready() && (time = now()) < turn_end);
    serve_events(!has_ready());
  }
}

void EventLoop::stop() {
  stopping_ = true;
  wake();
}

void EventLoop::adopt() noexcept { thread_ = std::this_thread::get_id(); }

bool EventLoop::finish_ready() {
  const bool any = serve_events(false);
  return run_ready(now()) || any;
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

// Most timers are limits of waits, and go before they are due: the system's stays where it is while
// the next one is due later. Then it wakes the loop in vain once, which is cheaper than setting it
// anew with every wait.
void EventLoop::arm_timer() noexcept {
  const auto next = timers_.next();
  if (!next || (armed_ && *armed_ <= *next)) return;
  armed_ = next;
  const auto since = std::max(next->time_since_epoch(), Duration(1));  // 0 would disarm it
  const itimerspec when{.it_interval = {},
                        .it_value = {.tv_sec = since / std::chrono::seconds(1),
                                     .tv_nsec = (since % std::chrono::seconds(1)).count()}};
  ::timerfd_settime(timer_, TFD_TIMER_ABSTIME, &when, nullptr);
}

bool EventLoop::serve_events(bool wait) {
  std::array<epoll_event, events_per_call_max> events;
  if (wait) arm_timer();
  const int room = static_cast<int>(events.size());
  const int count = ::epoll_wait(epoll_, events.data(), room, wait ? -1 : 0);
  for (int at = 0; at < count; ++at) {
    const auto& event = events[static_cast<std::size_t>(at)];
    if (event.data.ptr == &timers_) {
      take_count(timer_);
      armed_.reset();
    } else if (event.data.ptr) {
      static_cast<LoopWatch*>(event.data.ptr)->on_events(event.events);
    } else {
      take_count(wake_);
      wake_pending_ = false;
    }
  }
  return count > 0;
}

bool EventLoop::run_ready(MonoTime time) {
  sent_in_round_ = 0;
  bool any = timers_.run_due(time);
  if (any_posted_) {
    const std::lock_guard lock(posted_mutex_);
    posted_running_.swap(posted_);
    any_posted_ = false;
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

}  // namespace millrace::kernel
