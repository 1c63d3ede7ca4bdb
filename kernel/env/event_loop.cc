#include "kernel/env/event_loop.h"

#include <optional>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>

namespace millrace::kernel {

namespace asio = boost::asio;

namespace {

// How long a turn runs what became ready by what it ran, before the network gets its share.
constexpr Duration turn_max = std::chrono::milliseconds(1);

}  // namespace

struct EventLoop::Asio {
  asio::io_context context{1};
  asio::executor_work_guard<asio::io_context::executor_type> keep_running{context.get_executor()};
  asio::steady_timer timer{context};
  std::optional<MonoTime> timer_at;  // what `timer` waits for
};

EventLoop::EventLoop(unsigned index, Log log, EnvironmentMetrics& metrics)
    : index_(index), log_(std::move(log)), metrics_(metrics), asio_(std::make_unique<Asio>()) {}

EventLoop::~EventLoop() = default;

bool EventLoop::is_current() const noexcept { return thread_.load() == std::this_thread::get_id(); }

void EventLoop::post(Job job) {
  {
    const std::lock_guard lock(posted_mutex_);
    posted_.push_back(std::move(job));
  }
  if (!is_current()) wake();
}

// The flag falls in the handler, not when the jobs are taken: while it is up the handler is still
// queued, so the loop cannot go to sleep over jobs posted meanwhile.
void EventLoop::wake() {
  if (wake_pending_.exchange(true)) return;
  wake_ups_.fetch_add(1, std::memory_order_relaxed);
  asio::post(asio_->context, [this] { wake_pending_ = false; });
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
    if (has_ready()) {
      asio_->context.poll();
    } else {
      arm_timer();
      asio_->context.run_one();
    }
  }
}

void EventLoop::stop() {
  stopping_ = true;
  wake();
}

void EventLoop::adopt() noexcept { thread_ = std::this_thread::get_id(); }

bool EventLoop::finish_ready() {
  const auto events = asio_->context.poll();
  return run_ready() || events > 0;
}

void EventLoop::cancel_waits() noexcept {
  timers_.clear();
  while (!waits_.empty()) {
    auto* wait = *waits_.begin();
    waits_.erase(waits_.begin());
    wait->cancel_waits();
  }
}

asio::io_context& EventLoop::context() noexcept { return asio_->context; }

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

// The system's timer is moved only to an earlier time. When it fires too early because the timer it
// was set for is gone, the loop makes one turn for nothing.
void EventLoop::arm_timer() {
  const auto next = timers_.next();
  if (!next || (asio_->timer_at && *asio_->timer_at <= *next)) return;
  asio_->timer_at = next;
  asio_->timer.expires_at(*next);
  asio_->timer.async_wait([this](const boost::system::error_code& error) {
    if (!error) asio_->timer_at.reset();
  });
}

}  // namespace millrace::kernel
