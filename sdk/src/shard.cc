#include <millrace/shard.h>

#include <algorithm>

namespace millrace {

namespace {

// The frame that owns a spawned task; it frees itself at the end.
struct Root {
  struct promise_type : detail::PromiseBase {
    Root get_return_object() noexcept {
      return {std::coroutine_handle<promise_type>::from_promise(*this)};
    }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() noexcept {}
    void unhandled_exception() noexcept { std::terminate(); }
  };
  std::coroutine_handle<promise_type> frame;
};

Root run_root(Task<> task, std::string name) {
  auto result = co_await std::move(task);
  if (!result && result.error().code != Errc::cancelled && result.error().code != Errc::closed) {
    Shard& shard = co_await this_shard();
    shard.report(name, result.error());
  }
}

}  // namespace

void spawn(Shard& shard, Task<> task, std::string name, CancelScope* scope) {
  auto root = run_root(std::move(task), std::move(name));
  root.frame.promise().shard = &shard;
  root.frame.promise().scope = scope;
  root.frame.resume();
}

Task<> sleep(Duration duration) {
  Shard& shard = co_await this_shard();
  auto [resolver, pending] = make_pending<>();
  const auto timer = shard.schedule(shard.now() + duration,
                                    [done = std::move(resolver)]() mutable { done.resolve(); });
  auto result = co_await pending;
  if (!result) shard.unschedule(timer);
  co_return std::move(result);
}

void Event::notify_all() {
  auto waiters = std::exchange(waiters_, {});
  for (auto& waiter : waiters) waiter.resolve();
}

Task<> Event::wait() {
  auto [resolver, pending] = make_pending<>();
  std::erase_if(waiters_, [](const Resolver<>& waiter) { return waiter.abandoned(); });
  waiters_.push_back(std::move(resolver));
  co_return co_await pending;
}

Result<Gate::Pass> Gate::enter() {
  if (closed_) return Error{Errc::closed, "closing"};
  ++inside_;
  return Pass(this);
}

Task<> Gate::close() {
  closed_ = true;
  while (inside_ > 0) MR_CO_CHECK(co_await emptied_.wait());
  co_return {};
}

void Gate::leave() {
  if (--inside_ == 0) emptied_.notify_all();
}

void MemoryBudget::Lease::shrink_to(std::size_t bytes) noexcept {
  if (!budget_ || bytes >= bytes_) return;
  const auto held = std::exchange(bytes_, bytes);
  budget_->give_back(held - bytes);
}

Task<MemoryBudget::Lease> MemoryBudget::acquire(std::size_t bytes) {
  if (waiting_.empty() && fits(bytes)) {
    bytes_used_ += bytes;
    co_return Lease(this, bytes);
  }
  auto [resolver, pending] = make_pending<Lease>();
  // Whoever stood behind a request that is cancelled need not wait for it.
  resolver.on_abandoned([this] { admit(); });
  waiting_.push_back({bytes, std::move(resolver)});
  co_return co_await pending;
}

void MemoryBudget::give_back(std::size_t bytes) noexcept {
  bytes_used_ -= bytes;
  admit();
}

void MemoryBudget::admit() noexcept {
  while (!waiting_.empty()) {
    auto& next = waiting_.front();
    if (next.resolver.abandoned()) {
      waiting_.pop_front();
      continue;
    }
    if (!fits(next.bytes)) break;
    bytes_used_ += next.bytes;
    auto resolver = std::move(next.resolver);
    Lease lease(this, next.bytes);
    waiting_.pop_front();
    resolver.resolve(std::move(lease));
  }
}

}  // namespace millrace
