// The connections of one shard.
#pragma once

#include <atomic>
#include <memory>
#include <unordered_set>

#include "connection.h"

namespace millrace::kafka_transport {

/// [its shard]
class ShardConnections {
 public:
  /// `open` counts the connections of all shards.
  ShardConnections(const ListenerContext& context, Shard& shard, std::atomic<std::size_t>& open)
      : context_(context), shard_(shard), open_(open) {}
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

  const ListenerContext& context_;
  Shard& shard_;
  std::atomic<std::size_t>& open_;
  std::unordered_set<Connection*> connections_;
  bool refusing_ = false;  // and it was logged
  Gate gate_;
};

}  // namespace millrace::kafka_transport
