// Runs code that may not come back: on a worker, watched from the shard that waits. What is slow
// gets another thread started in its place, so that others do not wait for it; what takes too long
// is given up: whoever waits is told, and a result that comes late is dropped. A time in which the
// watchdog itself did not run (the process was stopped, its machine paused) counts for nobody.
#pragma once

#include <memory>
#include <mutex>
#include <optional>

#include <millrace/environment.h>

namespace millrace::kernel {

/// One job that is watched. The job calls begin() and end(), its shard the rest.
class Watch : public std::enable_shared_from_this<Watch> {
 public:
  /// `give_up` is called once on `home` when the job has run for `*limit`, which may change
  /// meanwhile and is read there. Both outlive the wait.
  Watch(Environment& environment, Shard& home, const Duration& limit, Job give_up);

  void start();
  /// Nobody waits any more: from here on the job touches nothing of ours.
  void drop();

  // [a worker]
  /// False: it is not wanted any more.
  bool begin();
  /// `deliver` posts the result home, and is called only if somebody waits for it.
  template <class F>
  void end(F deliver) {
    const std::lock_guard lock(mutex_);
    if (lent_) pool_.take_back();
    if (!dropped_) deliver();
  }

 private:
  void look();
  void forgive(MonoTime now);

  BlockingPool& pool_;
  const Clock& clock_;
  Shard& home_;
  const Duration* limit_;  // until it is dropped
  Job give_up_;
  std::mutex mutex_;
  std::optional<MonoTime> begun_;  // guarded by mutex_, as are the others
  MonoTime look_at_;               // when the next look is due
  bool lent_ = false;
  bool dropped_ = false;
};

/// What `work` returns, from a worker. Errc::timed_out: it has run for `limit`, and may still.
/// `work` owns what it uses.
template <class F>
auto run_watched(Environment& environment, const Duration& limit, F work)
    -> Task<typename decltype(work())::value_type> {
  using R = decltype(work());
  using T = typename R::value_type;
  Shard& here = co_await this_shard();
  auto [resolver, pending] = make_pending<T>();
  // Touched on this shard alone; the job only carries it there.
  auto waiter = std::make_shared<Resolver<T>>(std::move(resolver));
  auto watch = std::make_shared<Watch>(environment, here, limit, [waiter] {
    waiter->resolve(Error{Errc::timed_out, "an operator did not come back in time"});
  });
  environment.workers().submit([watch, waiter, home = &here, work = std::move(work)]() mutable {
    if (!watch->begin()) return;
    R result = work();
    watch->end([&] {
      home->post([waiter = std::move(waiter), result = std::move(result)]() mutable {
        waiter->resolve(std::move(result));
      });
    });
  });
  watch->start();
  auto result = co_await std::move(pending);
  watch->drop();
  co_return std::move(result);
}

}  // namespace millrace::kernel
