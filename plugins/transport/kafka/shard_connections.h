// The connections of one shard.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>

#include "connection.h"

namespace millrace::kafka_transport {

/// [its shard]
class ShardConnections {
 public:
  /// `open` counts the connections of all shards.
  ShardConnections(const ListenerContext& context, Shard& shard, std::atomic<std::size_t>& open,
                   std::uint64_t answer_bytes_max);
  ShardConnections(const ShardConnections&) = delete;
  ShardConnections& operator=(const ShardConnections&) = delete;

  Shard& shard() noexcept { return shard_; }

  /// Serves a stream of this shard until it ends; closes it when there are too many.
  void adopt(std::unique_ptr<Stream> stream);
  /// Lets connections answer what they have begun until `grace` is over, then closes them.
  /// Completes when none is left.
  Task<> stop(Duration grace);

 private:
  Task<> serve(std::unique_ptr<Connection> connection, Gate::Pass pass);
  void memory_changed(bool scarce);
  /// Closes those whose peers do not read while memory is scarce; again in a while.
  void look_for_stalled();

  const ListenerContext& context_;
  Shard& shard_;
  std::atomic<std::size_t>& open_;
  // In the order in which they came, so that a simulation repeats.
  std::map<std::uint64_t, Connection*> connections_;
  std::uint64_t adopted_ = 0;
  AnswerMemory memory_;
  TimerId look_timer_ = TimerId::none;
  bool refusing_ = false;  // and it was logged
  Gate gate_;
};

}  // namespace millrace::kafka_transport
