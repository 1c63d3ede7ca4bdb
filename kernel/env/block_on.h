// From a thread that is no shard (main) into a shard and back.
#pragma once

#include <future>
#include <utility>

#include <millrace/shard.h>

namespace millrace::kernel {

/// Runs the task that `make` returns on `shard`, and waits for its result. Never from a shard: it
/// would wait for itself.
template <class F>
auto block_on(Shard& shard, F make) -> Result<typename decltype(make())::value_type> {
  using T = typename decltype(make())::value_type;
  std::promise<Result<T>> promise;
  auto ended = promise.get_future();
  auto body = [](F task, std::promise<Result<T>> done) -> Task<> {
    auto result = co_await task();
    done.set_value(std::move(result));
    co_return {};
  };
  shard.post([&shard, body, make = std::move(make), promise = std::move(promise)]() mutable {
    spawn(shard, body(std::move(make), std::move(promise)), "block_on");
  });
  return ended.get();
}

}  // namespace millrace::kernel
