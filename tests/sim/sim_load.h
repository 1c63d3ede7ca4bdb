// A producer and a reader of one partition that never give up, through whatever happens to its
// brokers: each finds the leader anew when something fails, and notes what it was told.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <millrace/kafka/client.h>
#include <millrace/testing/sim_environment.h>

#include "sim_history.h"

namespace millrace::testing {

/// What the brokers say of a topic's first partition.
struct SimPartitionState {
  std::int32_t controller = -1;
  std::int32_t leader = -1;
  std::vector<std::int32_t> in_sync;
};

/// Brokers are numbered from 1, in the order of `hosts`.  [one shard of the client's node]
class SimLoad {
 public:
  SimLoad(Network& network, std::vector<std::string> hosts, TopicPartition partition);

  Task<> create(std::int16_t replicas);
  Task<> send_all();
  Task<> follow();
  /// They end with what is under way.
  void end() noexcept { ending_ = true; }
  bool ended() const noexcept { return sent_ && followed_; }
  /// From the partition's start to its high watermark, into the history.
  Task<> read_log();

  /// As whoever answers first says.
  Task<SimPartitionState> state();
  /// As one broker says, from 0.
  Task<SimPartitionState> state_at(std::size_t broker);

  SimHistory& history() noexcept { return history_; }
  /// Of the producer, which tries again.
  const std::string& last_error() const noexcept { return last_error_; }
  std::size_t acknowledged() const noexcept { return history_.acknowledged.size(); }

 private:
  using Connection = std::unique_ptr<kafka::Client>;
  Task<Connection> connect(std::size_t broker);
  Task<Connection> connect_to_leader();
  Task<std::int64_t> init_producer();
  Task<std::int64_t> send(Connection& leader, std::int32_t sequence, std::string value);
  Task<> send_one(Connection& leader, std::int32_t sequence, std::string value);
  Task<bool> fetch(Connection& leader, std::int64_t next, std::vector<SimRecord>& into);

  Network& network_;
  std::vector<std::string> hosts_;
  TopicPartition partition_;
  Uuid topic_id_;
  std::size_t first_asked_ = 0;
  std::int64_t producer_id_ = -1;
  bool ending_ = false;
  bool sent_ = false;
  bool followed_ = false;
  std::string last_error_;
  SimHistory history_;
};

}  // namespace millrace::testing
