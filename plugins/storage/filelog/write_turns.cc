#include "write_turns.h"

#include <utility>

namespace millrace::filelog {

Task<> WriteTurns::wait() {
  auto [resolver, pending] = make_pending<>();
  if (line_->waiting.empty()) line_->shard.post([line = line_] { call_next(line); });
  line_->waiting.push_back(std::move(resolver));
  co_return co_await pending;
}

// Jobs that are posted in one round run in the next. Whoever is called may stand in line again
// before it returns: so it is taken out behind that, and the line is not empty meanwhile.
void WriteTurns::call_next(std::shared_ptr<Line> line) {
  auto next = std::move(line->waiting.front());
  next.resolve();
  line->waiting.pop_front();
  if (line->waiting.empty()) return;
  auto& shard = line->shard;
  shard.post([line = std::move(line)]() mutable { call_next(std::move(line)); });
}

}  // namespace millrace::filelog
