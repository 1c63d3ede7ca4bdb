// What the connections of one shard share.
#pragma once

#include <functional>

#include "answer_memory.h"
#include "request_memory.h"
#include "turns.h"

namespace millrace::kafka_transport {

/// [its shard]
struct ShardLoad {
  AnswerMemory answers;
  RequestMemory requests;
  Turns turns{};
  /// Of so many connections none waits with a block for what comes next, though that may cost a
  /// second receive then.
  bool crowded = false;
  /// A connection has something to do, after it was told to doze or from the beginning on.
  std::function<void()> woken = [] {};
};

}  // namespace millrace::kafka_transport
