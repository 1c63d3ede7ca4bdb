// The connections of one shard.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>

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

  /// One more that adopt() will be called for.  [any thread]
  void expect() noexcept { ++expected_; }
  /// Those that are served, or expected.  [any thread]
  std::size_t expected() const noexcept { return expected_.load(); }

  /// Serves a stream of this shard until it ends; closes it when there are too many.
  void adopt(std::unique_ptr<Stream> stream);
  /// Lets connections answer what they have begun until `grace` is over, then closes them.
  /// Completes when none is left.
  Task<> stop(Duration grace);

 private:
  Task<> serve(std::unique_ptr<Connection> connection, Gate::Pass pass);
  void answer_memory_changed(bool scarce);
  /// Those that wait for room look again.
  void let_go_on();
  void look_soon();
  /// While memory is scarce: closes those whose peers hold it and do nothing; again in a while.
  void look();
  void close_stalled_readers();
  void close_slow_senders();
  /// Those that nothing comes from let go of memory, until all do.
  void let_doze();

  const ListenerContext& context_;
  Shard& shard_;
  std::atomic<std::size_t>& open_;
  // In the order in which they came, so that a simulation repeats.
  std::map<std::uint64_t, Connection*> connections_;
  std::uint64_t adopted_ = 0;
  std::atomic<std::size_t> expected_ = 0;
  ShardLoad load_;
  TimerId look_timer_ = TimerId::none;
  TimerId doze_timer_ = TimerId::none;
  std::optional<MonoTime> wanted_since_;  // since when requests wait for memory
  bool refusing_ = false;                 // and it was logged
  Gate gate_;
};

}  // namespace millrace::kafka_transport
