// A shard: one loop in one thread that owns its connections and partitions. Everything here runs
// on one shard unless it says otherwise; work for another shard is posted to it.
#pragma once

#include <coroutine>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include <millrace/task.h>
#include <millrace/types.h>

namespace millrace {

enum class TimerId : std::uint64_t { none = 0 };

/// Implemented by the environment. The control thread is a shard too, with no partitions.
class Shard {
 public:
  virtual ~Shard() = default;

  /// 0..n-1 for data shards; the control thread has index n.
  virtual unsigned index() const noexcept = 0;
  virtual MonoTime now() const noexcept = 0;
  virtual bool is_current() const noexcept = 0;

  /// Runs `job` on this shard, after what was posted before it. Many posts cost one wake-up.
  /// [any thread]
  virtual void post(Job job) = 0;
  /// Resumes a coroutine of this shard from its loop.  [this shard]
  virtual void resume_soon(std::coroutine_handle<> waiting) = 0;
  /// Timers fire on the loop, not earlier than `when`.  [this shard]
  virtual TimerId schedule(MonoTime when, Job job) = 0;
  virtual void unschedule(TimerId timer) noexcept = 0;

  /// A spawned task ended with `error` and nobody awaits it: one log line and a count.
  virtual void report(std::string_view task, const Error& error) noexcept = 0;
};

/// Starts `task` on this shard: it runs until its first wait before spawn returns. An error other
/// than cancelled or closed is reported under `name`.  [the shard's thread]
void spawn(Shard& shard, Task<> task, std::string name, CancelScope* scope = nullptr);

/// Starts `task` now and lets it be awaited later.  [the shard's thread]
template <class T>
Pending<T> start(Shard& shard, Task<T> task, CancelScope* scope = nullptr) {
  auto [resolver, pending] = make_pending<T>();
  auto run = [](Task<T> body, Resolver<T> done) -> Task<> {
    auto result = co_await std::move(body);
    done.resolve(std::move(result));
    co_return {};
  };
  spawn(shard, run(std::move(task), std::move(resolver)), "task", scope);
  return std::move(pending);
}

/// Ends no earlier than `duration` from now, or with Errc::cancelled.
Task<> sleep(Duration duration);

/// Runs `task`; at the deadline cancels it, waits for it to unwind, and answers Errc::timed_out.
template <class T>
Task<T> with_deadline(Task<T> task, Duration limit) {
  Shard& shard = co_await this_shard();
  CancelScope scope(co_await this_scope());
  bool late = false;
  const auto timer = shard.schedule(shard.now() + limit, [&scope, &late] {
    late = true;
    scope.cancel();
  });
  auto result = co_await std::move(task).within(scope);
  shard.unschedule(timer);
  if (late && !result && result.error().code == Errc::cancelled) {
    co_return Error{Errc::timed_out,
                    "no result within " + std::to_string(limit.count() / 1'000'000) + " ms"};
  }
  co_return std::move(result);
}

/// Runs the task that `make` returns on `target` and brings its result back here. `make` itself
/// runs on the target: what it captures must be safe to move there.
template <class F>
auto run_on(Shard& target, F make) -> decltype(make()) {
  using T = typename decltype(make())::value_type;
  Shard& here = co_await this_shard();
  if (&here == &target) co_return co_await make();
  auto [resolver, pending] = make_pending<T>();
  auto remote = [](Shard* home, F body, Resolver<T> done) -> Task<> {
    auto result = co_await body();
    home->post([done = std::move(done), result = std::move(result)]() mutable {
      done.resolve(std::move(result));
    });
    co_return {};
  };
  target.post([&target, remote, home = &here, make = std::move(make),
               done = std::move(resolver)]() mutable {
    spawn(target, remote(home, std::move(make), std::move(done)), "run_on");
  });
  co_return co_await pending;
}

/// Wakes those who wait. Level conditions are re-checked by the waiter:
/// `while (!condition) MR_CO_CHECK(co_await event.wait());`
class Event {
 public:
  void notify_all();
  /// True when somebody waits.
  bool has_waiters() const noexcept { return !waiters_.empty(); }
  Task<> wait();

 private:
  std::vector<Resolver<>> waiters_;
};

/// Counts what is running and lets an owner wait for the last to leave. After close() nobody
/// enters any more.
class Gate {
 public:
  class Pass {
   public:
    Pass() = default;
    explicit Pass(Gate* gate) : gate_(gate) {}
    Pass(Pass&& other) noexcept : gate_(std::exchange(other.gate_, nullptr)) {}
    Pass& operator=(Pass&& other) noexcept {
      std::swap(gate_, other.gate_);
      return *this;
    }
    ~Pass() {
      if (gate_) gate_->leave();
    }

   private:
    Gate* gate_ = nullptr;
  };

  /// Errc::closed once the gate is closing.
  Result<Pass> enter();
  std::size_t inside() const noexcept { return inside_; }
  bool closed() const noexcept { return closed_; }
  /// Refuses new entries; completes when the last pass is gone.
  Task<> close();

 private:
  void leave();
  std::size_t inside_ = 0;
  bool closed_ = false;
  Event emptied_;
};

/// A share of a shard's memory for requests in flight. First come, first served; a request larger
/// than the whole budget is let in when nothing else is inside, so that nothing starves.
class MemoryBudget {
 public:
  explicit MemoryBudget(std::size_t bytes_max) : bytes_max_(bytes_max) {}
  MemoryBudget(const MemoryBudget&) = delete;
  MemoryBudget& operator=(const MemoryBudget&) = delete;

  class Lease {
   public:
    Lease() = default;
    Lease(MemoryBudget* budget, std::size_t bytes) : budget_(budget), bytes_(bytes) {}
    Lease(Lease&& other) noexcept
        : budget_(std::exchange(other.budget_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
    Lease& operator=(Lease&& other) noexcept {
      std::swap(budget_, other.budget_);
      std::swap(bytes_, other.bytes_);
      return *this;
    }
    ~Lease() { shrink_to(0); }
    std::size_t bytes() const noexcept { return bytes_; }
    /// A request that is parked for long gives back what it does not need.
    void shrink_to(std::size_t bytes) noexcept;

   private:
    MemoryBudget* budget_ = nullptr;
    std::size_t bytes_ = 0;
  };

  /// Waits until `bytes` are free.
  Task<Lease> acquire(std::size_t bytes);
  std::size_t bytes_used() const noexcept { return bytes_used_; }
  std::size_t bytes_max() const noexcept { return bytes_max_; }
  /// Those that wait for bytes.
  std::size_t waiting() const noexcept { return waiting_.size(); }

 private:
  struct Waiting {
    std::size_t bytes;
    Resolver<Lease> resolver;
  };
  bool fits(std::size_t bytes) const noexcept {
    return bytes_used_ == 0 || bytes <= bytes_max_ - std::min(bytes_used_, bytes_max_);
  }
  void give_back(std::size_t bytes) noexcept;
  /// Lets in, in order, who fits now.
  void admit() noexcept;

  std::size_t bytes_max_;
  std::size_t bytes_used_ = 0;
  std::deque<Waiting> waiting_;
};

/// One holder at a time, first come, first served, across suspensions.
class Mutex {
 public:
  using Held = MemoryBudget::Lease;
  Task<Held> lock() { return one_.acquire(1); }

 private:
  MemoryBudget one_{1};
};

}  // namespace millrace
