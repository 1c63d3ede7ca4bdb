// How the connections of one shard share its thread.
#pragma once

#include <algorithm>
#include <chrono>
#include <deque>
#include <memory>

#include <millrace/shard.h>

namespace millrace::kafka_transport {

/// Whoever has much to do works for a while, then stands in line behind others who have much to do:
/// the more there are, the shorter a turn is. The shard lets so many of them go on in one round as
/// fill a turn, however long the line: that is what a small request of another waits for, which
/// takes a few rounds.  [its shard]
class Turns {
 public:
  bool over(Duration worked) const noexcept { return worked >= turn(); }
  /// Lets everybody else on the shard run first.
  Task<> yield();

 private:
  static constexpr Duration turn_max = std::chrono::milliseconds(1);
  static constexpr Duration round_max = std::chrono::milliseconds(4);
  /// What the shortest turn takes, which is one request.
  static constexpr Duration request_min = std::chrono::microseconds(50);

  struct Line {
    Shard& shard;
    std::deque<Resolver<>> waiting{};
  };
  static void call_next(std::shared_ptr<Line> line);
  static Duration turn(std::size_t waiting) noexcept {
    return std::min<Duration>(turn_max, round_max / (1 + static_cast<Duration::rep>(waiting)));
  }
  Duration turn() const noexcept { return turn(line_ ? line_->waiting.size() : 0); }

  std::shared_ptr<Line> line_;  // its jobs may outlive this
};

}  // namespace millrace::kafka_transport
