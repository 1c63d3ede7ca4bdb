#include "turns.h"

#include <utility>

namespace millrace::kafka_transport {

Task<> Turns::yield() {
  Shard& shard = co_await this_shard();
  auto [resolver, pending] = make_pending<>();
  shard.post([mine = std::move(resolver)]() mutable { mine.resolve(); });
  ++waiting_;
  auto passed = co_await pending;
  --waiting_;
  co_return std::move(passed);
}

}  // namespace millrace::kafka_transport
