// What lies between the nodes: bytes in flight, listeners, links that are blocked. Delivery is a
// timer of the scheduler; whoever waits is woken by a post to its own shard.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "sim_scheduler.h"

namespace millrace::testing {

/// One direction of a connection.
struct SimPipe {
  /// What was sent as one piece; the last of a pipe ends it.
  struct Piece {
    enum class Kind { bytes, end, reset } kind = Kind::bytes;
    std::string bytes;
  };

  std::string from;
  std::string to;
  Shard* writer = nullptr;  // null while nobody has accepted
  Shard* reader = nullptr;
  std::deque<Piece> in_flight;
  MonoTime last_arrival;
  std::string arrived;
  std::size_t bytes = 0;  // in flight and arrived
  bool ended = false;
  bool reset = false;
  Event readable;  // of the reader's shard
  Event writable;  // of the writer's shard
};

/// `pipes[side]` carries what the end `side` sends. Side 0 connected, side 1 accepted.
struct SimConnection {
  SimPipe pipes[2];
  Address ends[2];
  bool closed[2] = {false, false};
};

struct SimBacklog {
  Address local;
  Shard* owner = nullptr;
  std::deque<std::shared_ptr<SimConnection>> waiting;
  Event arrived;
  bool closed = false;
};

/// [the thread of the simulation]
class SimWire {
 public:
  explicit SimWire(SimScheduler& scheduler) : scheduler_(scheduler) {}

  void add_host(const std::string& name, const std::string& host) { hosts_[name] = host; }
  /// The host that `name` means on `from`; Errc::not_found.
  Result<std::string> resolve(const std::string& from, const std::string& name) const;

  /// Errc::conflict when the port is taken.
  Result<std::shared_ptr<SimBacklog>> listen(Address local, Shard& owner);
  void close(SimBacklog& backlog);

  /// From `host`, on its shard `caller`.
  Pending<std::shared_ptr<SimConnection>> connect(const std::string& host, Address to,
                                                  Shard& caller);

  /// Queues bytes of the end `side`.
  void send(const std::shared_ptr<SimConnection>& connection, int side, std::string bytes);
  /// Ends both directions at `side`; the other end learns of it.
  void close(const std::shared_ptr<SimConnection>& connection, int side, SimPipe::Piece::Kind how);

  /// Closes what `host` has, as a machine does that dies.
  void drop(const std::string& host);
  void block(const std::string& a, const std::string& b) {
    block_one_way(a, b);
    block_one_way(b, a);
  }
  void block_one_way(const std::string& from, const std::string& to) { blocked_.emplace(from, to); }
  /// Of `host`, until heal().
  void delay(const std::string& host, Duration longest) { late_[host] = longest; }
  void heal();
  void cut(const std::string& a, const std::string& b);

 private:
  struct Attempt;
  static std::pair<std::string, std::string> link(const std::string& a, const std::string& b) {
    return std::minmax(a, b);
  }
  bool blocked(const std::string& from, const std::string& to) const {
    return blocked_.contains({from, to});
  }
  Duration delay(const std::string& from, const std::string& to);
  void attempt(std::shared_ptr<Attempt> attempt);
  void answer(std::shared_ptr<Attempt> attempt, Result<std::shared_ptr<SimConnection>> result);
  void put(const std::shared_ptr<SimConnection>& connection, int side, SimPipe::Piece piece);
  void schedule_delivery(const std::shared_ptr<SimConnection>& connection, int side);
  void deliver(const std::shared_ptr<SimConnection>& connection, int side);
  std::vector<std::shared_ptr<SimConnection>> live();

  SimScheduler& scheduler_;
  std::map<std::string, std::string> hosts_;
  std::map<std::pair<std::string, std::uint16_t>, std::shared_ptr<SimBacklog>> listening_;
  std::map<std::string, std::uint16_t> ports_;             // the next free one of a host
  std::set<std::pair<std::string, std::string>> blocked_;  // from, to
  std::map<std::string, Duration> late_;                   // of a host, so much at most
  std::vector<std::weak_ptr<SimConnection>> connections_;
};

/// Wakes who waits for `event`, which `owner` lives in, on the waiter's shard; null: nobody does.
void wake(Shard* shard, std::shared_ptr<void> owner, Event& event);

}  // namespace millrace::testing
