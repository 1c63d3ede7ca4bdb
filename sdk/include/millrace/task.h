// Coroutines of one shard. `Task<T>` is lazy: it starts when awaited (or spawned), ends in a
// Result<T>, and runs on the shard of whoever awaits it. A `Pending<T>`/`Resolver<T>` pair is the
// one way to wait for something that is not a coroutine. A `CancelScope` ends waits early; nothing
// is ever destroyed while it waits: a cancelled wait completes with Errc::cancelled and the
// coroutine unwinds as for any other error.
//
// Why not an Asio awaitable: these types cross the plugin boundary, so they must not depend on a
// Boost version, and simulated clusters run them without any event loop of the system.
//
// Rules: name the argument on the line before and await on the next. Coroutine parameters are
// values, or references to the object that owns the coroutine. A view does not cross a co_await.
#pragma once

#include <coroutine>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <millrace/result.h>

namespace millrace {

class Shard;

/// Something to run once.
using Job = std::move_only_function<void()>;

/// A set of waits that end together. Scopes nest: cancelling one cancels those below it, and a
/// task that starts in a cancelled scope finds every wait cancelled at once.  [one shard]
class CancelScope {
 public:
  /// What can be told to stop. Intrusive, so that waiting costs no allocation.
  class Waiter {
   public:
    Waiter() = default;
    Waiter(const Waiter&) = delete;
    Waiter& operator=(const Waiter&) = delete;

   protected:
    ~Waiter() { unlink(); }
    /// Called once, already unlinked.
    virtual void on_cancel() noexcept = 0;
    void unlink() noexcept;

   private:
    friend class CancelScope;
    CancelScope* scope_ = nullptr;
    Waiter* previous_ = nullptr;
    Waiter* next_ = nullptr;
  };

  explicit CancelScope(CancelScope* parent = nullptr);
  ~CancelScope();
  CancelScope(const CancelScope&) = delete;
  CancelScope& operator=(const CancelScope&) = delete;

  /// Ends every wait below; those that begin later end at once. Idempotent.
  void cancel() noexcept;
  bool cancelled() const noexcept { return cancelled_; }
  void add(Waiter& waiter) noexcept;

 private:
  class Link;  // NOLINT(cppcoreguidelines-virtual-class-destructor): final, and deleted as itself
  bool cancelled_ = false;
  Waiter* first_ = nullptr;
  std::unique_ptr<Link> link_;  // in the parent's list
};

template <class T = void>
class Task;

namespace detail {

struct PromiseBase {
  std::coroutine_handle<> continuation = std::noop_coroutine();
  Shard* shard = nullptr;
  CancelScope* scope = nullptr;

  std::suspend_always initial_suspend() noexcept { return {}; }
  struct Final {
    bool await_ready() noexcept { return false; }
    template <class P>
    std::coroutine_handle<> await_suspend(std::coroutine_handle<P> ended) noexcept {
      return ended.promise().continuation;
    }
    void await_resume() noexcept {}
  };
  Final final_suspend() noexcept { return {}; }
};

Error error_of(std::exception_ptr exception) noexcept;

template <class T>
struct Promise : PromiseBase {
  std::optional<Result<T>> result;

  Task<T> get_return_object() noexcept;
  void return_value(Result<T> value) { result.emplace(std::move(value)); }
  void unhandled_exception() noexcept { result.emplace(error_of(std::current_exception())); }
};

}  // namespace detail

/// A computation that has not begun. Move it into `co_await`, `spawn` or `start`.
template <class T>
class [[nodiscard]] Task {
 public:
  using promise_type = detail::Promise<T>;
  using value_type = T;

  Task(Task&& other) noexcept
      : frame_(std::exchange(other.frame_, {})), scope_(std::exchange(other.scope_, nullptr)) {}
  Task& operator=(Task&& other) noexcept {
    std::swap(frame_, other.frame_);
    std::swap(scope_, other.scope_);
    return *this;
  }
  ~Task() {
    if (frame_) frame_.destroy();
  }

  /// Runs in `scope` instead of the awaiter's.
  Task within(CancelScope& scope) && noexcept {
    scope_ = &scope;
    return std::move(*this);
  }

  bool await_ready() const noexcept { return false; }
  template <class P>
  std::coroutine_handle<> await_suspend(std::coroutine_handle<P> awaiter) noexcept {
    detail::PromiseBase& from = awaiter.promise();
    detail::PromiseBase& to = frame_.promise();
    to.continuation = awaiter;
    to.shard = from.shard;
    to.scope = scope_ ? scope_ : from.scope;
    return frame_;
  }
  Result<T> await_resume() { return std::move(*frame_.promise().result); }

 private:
  friend promise_type;
  explicit Task(std::coroutine_handle<promise_type> frame) noexcept : frame_(frame) {}

  std::coroutine_handle<promise_type> frame_;
  CancelScope* scope_ = nullptr;
};

template <class T>
Task<T> detail::Promise<T>::get_return_object() noexcept {
  return Task<T>(std::coroutine_handle<Promise>::from_promise(*this));
}

namespace detail {

void resume_on(Shard& shard, std::coroutine_handle<> waiting);

/// What a Resolver and a Pending share. Touched by the waiter's shard alone.
template <class T>
struct PendingState final : CancelScope::Waiter {
  std::optional<Result<T>> result;
  std::coroutine_handle<> waiting;
  Shard* shard = nullptr;
  std::move_only_function<void()> on_abandoned;

  void resolve(Result<T> value) {
    if (result) return;
    result.emplace(std::move(value));
    unlink();
    wake();
  }
  void wake() {
    if (waiting) resume_on(*shard, std::exchange(waiting, {}));
  }
  void on_cancel() noexcept override {
    if (result) return;
    result.emplace(Error{Errc::cancelled, "cancelled"});
    if (auto abandoned = std::move(on_abandoned)) abandoned();
    wake();
  }
};

}  // namespace detail

/// The end that completes a wait. If it is destroyed unused, the waiter gets Errc::cancelled.
/// `resolve` and destruction belong to the waiter's shard; it may be moved through others.
template <class T = void>
class Resolver {
 public:
  Resolver() = default;
  explicit Resolver(std::shared_ptr<detail::PendingState<T>> state) : state_(std::move(state)) {}
  Resolver(Resolver&&) noexcept = default;
  Resolver& operator=(Resolver&& other) noexcept {
    std::swap(state_, other.state_);
    return *this;
  }
  ~Resolver() {
    if (state_) state_->resolve(Error{Errc::cancelled, "abandoned"});
  }

  /// Wakes the waiter (soon, not inline). Only the first call counts; after a cancel none does.
  void resolve(Result<T> value = {})
    requires std::is_void_v<T>
  {
    if (auto state = std::exchange(state_, {})) state->resolve(std::move(value));
  }
  void resolve(Result<T> value)
    requires(!std::is_void_v<T>)
  {
    if (auto state = std::exchange(state_, {})) state->resolve(std::move(value));
  }
  /// Runs when the waiter's scope is cancelled, so that the operation behind can be stopped.
  void on_abandoned(Job job) { state_->on_abandoned = std::move(job); }
  /// True when the waiter was cancelled: resolving would tell nobody.
  bool abandoned() const noexcept { return state_ && state_->result.has_value(); }
  explicit operator bool() const noexcept { return state_ != nullptr; }

 private:
  std::shared_ptr<detail::PendingState<T>> state_;
};

/// The end that waits; await it once. Completes without suspension when already resolved.
template <class T = void>
class [[nodiscard]] Pending {
 public:
  Pending() = default;
  explicit Pending(std::shared_ptr<detail::PendingState<T>> state) : state_(std::move(state)) {}
  /// One that is resolved from the start.
  static Pending ready(Result<T> value) {
    auto state = std::make_shared<detail::PendingState<T>>();
    state->result.emplace(std::move(value));
    return Pending(std::move(state));
  }

  bool is_ready() const noexcept { return state_->result.has_value(); }

  bool await_ready() const noexcept { return is_ready(); }
  template <class P>
  bool await_suspend(std::coroutine_handle<P> waiter) {
    detail::PromiseBase& promise = waiter.promise();
    state_->shard = promise.shard;
    if (promise.scope) {
      promise.scope->add(*state_);
      if (is_ready()) return false;  // the scope was cancelled already
    }
    state_->waiting = waiter;
    return true;
  }
  Result<T> await_resume() { return std::move(*state_->result); }

 private:
  std::shared_ptr<detail::PendingState<T>> state_;
};

template <class T>
struct Rendezvous {
  Resolver<T> resolver;
  Pending<T> pending;
};
template <class T = void>
Rendezvous<T> make_pending() {
  auto state = std::make_shared<detail::PendingState<T>>();
  return {Resolver<T>(state), Pending<T>(state)};
}

/// `Shard& shard = co_await this_shard();` and the scope that cancels us (may be null). Neither
/// suspends.
struct ThisShard {
  Shard* shard = nullptr;
  bool await_ready() const noexcept { return false; }
  template <class P>
  bool await_suspend(std::coroutine_handle<P> self) noexcept {
    shard = static_cast<detail::PromiseBase&>(self.promise()).shard;
    return false;
  }
  Shard& await_resume() const noexcept { return *shard; }
};
inline ThisShard this_shard() noexcept { return {}; }
struct ThisScope {
  CancelScope* scope = nullptr;
  bool await_ready() const noexcept { return false; }
  template <class P>
  bool await_suspend(std::coroutine_handle<P> self) noexcept {
    scope = static_cast<detail::PromiseBase&>(self.promise()).scope;
    return false;
  }
  CancelScope* await_resume() const noexcept { return scope; }
};
inline ThisScope this_scope() noexcept { return {}; }

}  // namespace millrace
