// How the connections of one shard share its thread.
#pragma once

#include <algorithm>
#include <chrono>

#include <millrace/shard.h>

namespace millrace::kafka_transport {

/// Whoever has much to do works for a while, then lets everybody else have a turn: the more there
/// are who have much to do, the shorter a turn is. So the round, which a small request of another
/// waits for, stays short.  [its shard]
class Turns {
 public:
  bool over(Duration worked) const noexcept {
    return worked >= std::min(turn_max, round_max / (1 + waiting_));
  }
  /// Lets everybody else on the shard run first.
  Task<> yield();

 private:
  static constexpr Duration turn_max = std::chrono::milliseconds(1);
  static constexpr Duration round_max = std::chrono::milliseconds(4);

  Duration::rep waiting_ = 0;  // for their turn
};

}  // namespace millrace::kafka_transport
