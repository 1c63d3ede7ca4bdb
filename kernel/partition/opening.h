// Where batches are opened, and how much memory that may take. What a compressed batch opens to is
// known only afterwards, so a bound is asked for first:
//
//   most open to little             beside each other, on any worker, up to opened_beside_bytes_max
//   a few, and bombs, to much       begin anew, one at a time for all shards, up to their limit
//   what is kept until it is appended, being other than what was sent: leased here
//
// So all together take opened_bytes_max, opened_beside_bytes_max for each worker, and
// kept_bytes_max for each shard: none of it is part of broker.memory, and nobody who waits here for
// memory holds what others here wait for.
#pragma once

#include <algorithm>
#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <type_traits>
#include <utility>

#include <millrace/environment.h>
#include <millrace/shard.h>

namespace millrace::kernel {

/// The most that one batch may grow to when it is opened, whatever a topic allows.
inline constexpr std::size_t opened_bytes_max = 128UL << 20;
/// The same of an entry of an old format: what its messages are taken apart to is several times as
/// much.
inline constexpr std::size_t opened_set_bytes_max = 32UL << 20;
/// Up to which batches are opened beside each other.
inline constexpr std::size_t opened_beside_bytes_max = 8UL << 20;
/// What prepared batches of one shard may hold until they are appended, unless it is one alone.
inline constexpr std::size_t kept_bytes_max = 32UL << 20;

/// A pool whose jobs run on another one, one after the other.  [any thread]
class OneAtATime final : public BlockingPool {
 public:
  /// `pool` outlives the jobs; they may outlive this.
  explicit OneAtATime(BlockingPool& pool) : line_(std::make_shared<Line>(pool)) {}
  void submit(Job job) override;

 private:
  struct Line {
    explicit Line(BlockingPool& of) : pool(of) {}
    BlockingPool& pool;
    std::mutex mutex;
    std::deque<Job> waiting;  // guarded by mutex
    bool running = false;     // guarded by mutex
  };
  static void run_next(const std::shared_ptr<Line>& line);

  std::shared_ptr<Line> line_;
};

/// What the partitions of one shard open batches with.  [its shard]
class Opening {
 public:
  /// `one_at_a_time` is that of all shards.
  Opening(BlockingPool& workers, BlockingPool& one_at_a_time)
      : workers_(workers), one_at_a_time_(one_at_a_time), kept_(kept_bytes_max) {}

  /// Runs `work(opened_max)`, which answers a Result and Errc::too_large when something would open
  /// to more than `opened_max`: at first with little, and if that is not enough with `limit`.
  template <class F>
  Task<typename std::invoke_result_t<F, std::size_t>::value_type> run(std::size_t limit, F work) {
    const auto shared = std::make_shared<F>(std::move(work));
    const auto little = std::min(limit, opened_beside_bytes_max);
    auto trying = on_worker(workers_, [shared, little] { return (*shared)(little); });
    auto tried = co_await std::move(trying);
    if (tried || tried.error().code != Errc::too_large || little == limit) {
      co_return std::move(tried);
    }
    auto opening = on_worker(one_at_a_time_, [shared, limit] { return (*shared)(limit); });
    co_return co_await std::move(opening);
  }

  /// For what is kept of opened batches. First come, first served: those that are let in later are
  /// never waited for by those before them.
  MemoryBudget& kept() noexcept { return kept_; }

 private:
  BlockingPool& workers_;
  BlockingPool& one_at_a_time_;
  MemoryBudget kept_;
};

}  // namespace millrace::kernel
