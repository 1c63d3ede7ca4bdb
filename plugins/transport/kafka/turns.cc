#include "turns.h"

#include <utility>

namespace millrace::kafka_transport {

Task<> Turns::yield() {
  if (!line_) {
    Shard& here = co_await this_shard();
    line_ = std::make_shared<Line>(here);
  }
  auto [resolver, pending] = make_pending<>();
  if (line_->waiting.empty()) line_->shard.post([line = line_] { call_next(line); });
  line_->waiting.push_back(std::move(resolver));
  co_return co_await pending;
}

// Jobs that are posted in one round run in the next.
void Turns::call_next(std::shared_ptr<Line> line) {
  auto& waiting = line->waiting;
  const auto turns = turn_max / std::max(turn(waiting.size()), request_min);
  for (Duration::rep called = 0; called < turns && !waiting.empty(); ++called) {
    auto next = std::move(waiting.front());
    waiting.pop_front();
    next.resolve();
  }
  if (waiting.empty()) return;
  auto& shard = line->shard;
  shard.post([line = std::move(line)]() mutable { call_next(std::move(line)); });
}

}  // namespace millrace::kafka_transport
