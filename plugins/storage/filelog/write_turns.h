// How the large writes of one shard share its thread.
#pragma once

#include <deque>
#include <memory>

#include <millrace/shard.h>

namespace millrace::filelog {

/// Of all who want to write a piece, one does in each round of the shard, in the order in which
/// they came; whatever else the shard has to do comes between.  [its shard]
class WriteTurns {
 public:
  explicit WriteTurns(Shard& shard) : line_(std::make_shared<Line>(shard)) {}
  Task<> wait();

 private:
  struct Line {
    Shard& shard;
    std::deque<Resolver<>> waiting{};
  };
  static void call_next(std::shared_ptr<Line> line);

  std::shared_ptr<Line> line_;  // its jobs may outlive this
};

}  // namespace millrace::filelog
