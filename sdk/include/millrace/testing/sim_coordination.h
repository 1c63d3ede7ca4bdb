// What several simulated brokers agree on: a coordination whose sessions expire, which can be slow,
// cut off or away, as a ZooKeeper is. Everything happens in the world's virtual time and under its
// seed.
//
//   SimCoordination service(world);
//   auto ours = service.connect(node);       // this broker's Coordination
//   service.cut_off(node);                    // its lease runs down; later its session expires
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <millrace/coordination.h>
#include <millrace/testing/sim_environment.h>

namespace millrace::testing {

struct SimCoordinationSettings {
  Duration session_timeout = std::chrono::seconds(6);
  /// A request and its answer take between these, each.
  Duration delay_min = std::chrono::microseconds(200);
  Duration delay_max = std::chrono::milliseconds(3);
};

/// The service. Outlives what connect() gave; used between steps of the world and by its nodes.
class SimCoordination {
 public:
  explicit SimCoordination(SimWorld& world, SimCoordinationSettings settings = {});
  ~SimCoordination();
  SimCoordination(const SimCoordination&) = delete;
  SimCoordination& operator=(const SimCoordination&) = delete;

  /// What the broker on `node` talks to; its end is the end of its session, unless the node has
  /// crashed: then the session lives until it expires.
  std::unique_ptr<Coordination> connect(SimEnvironment& node);

  /// No request of this node arrives and no answer comes back, until reach(). Its session expires
  /// after the time-out; the node learns so when it is reached again.
  void cut_off(const SimEnvironment& node);
  void reach(const SimEnvironment& node);
  /// Ends the node's session at once. It learns so with the next thing that it hears.
  void expire(const SimEnvironment& node);
  /// The service is away: nobody is answered and no session expires. When it is back, every session
  /// has its full time-out.
  void stop();
  void go_on();

  /// The value of a key, for a test to look at.
  std::optional<std::string> value(const std::string& key);

 private:
  class Client;
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace millrace::testing
