// Brokers on one simulated coordination with a producer and a reader that never give up, the faults
// that may happen to them, and the verdict.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <millrace/testing/sim_coordination.h>
#include <millrace/testing/sim_environment.h>

#include "sim_broker.h"
#include "sim_load.h"

namespace millrace::testing {

/// What happens to one broker, or to what they agree by. Each is undone before the next.
enum class SimFault {
  kill,               // kill -9
  kill_two,           // at once; they come back one after the other
  power,              // what was not synced is gone
  power_in_a_change,  // ... in the midst of a change of the disk
  restart,            // in order
  restart_all,        // ... in turn
  empty_disk,         // it comes back with nothing
  full_disk,
  slow_disk,
  cut_from_brokers,
  cut_from_coordination,
  cut_from_clients,
  cut_from_all,
  cut_with_clients,  // from all but its clients
  cut_leaving,       // nothing that it sends arrives
  cut_arriving,      // nothing that is sent to it arrives
  resets,            // of connections, again and again
  late_links,        // bytes take long, some of them very long
  sleeps,            // as by SIGSTOP, mostly past its session
  coordination_away,
  session_ends,
  clock_jumps,
  deleted_while_down,  // another topic
};
inline constexpr std::size_t sim_faults = 23;
const char* name_of(SimFault fault) noexcept;

class SimCluster {
 public:
  /// `sets` of every broker.
  SimCluster(std::uint64_t seed, std::size_t brokers, std::vector<std::string> sets = {});
  ~SimCluster();
  SimCluster(const SimCluster&) = delete;
  SimCluster& operator=(const SimCluster&) = delete;

  /// All of them, the topic, the load.
  Result<> start();
  /// Happens to `broker`, from 0, and is over when this returns.
  Result<> happens(SimFault fault, std::size_t broker);
  /// Of one that does not run: its disk is empty.
  Result<> wipe(std::size_t broker);
  /// All replicas are in sync, as every broker says, and messages go through.
  Result<> heals();
  /// Ends the load; violations, replicas that differ, and tasks of brokers that failed.
  std::vector<std::string> verdict();

  std::size_t leader();      ///< from 0
  std::size_t controller();  ///< from 0
  std::size_t size() const noexcept { return brokers_.size(); }
  SimWorld& world() noexcept { return world_; }
  SimBroker& broker(std::size_t at) noexcept { return *brokers_[at]; }
  SimEnvironment& node(std::size_t at) noexcept { return *nodes_[at]; }
  SimCoordination& coordination() noexcept { return service_; }
  SimLoad& load() noexcept { return *load_; }
  bool goes_on(std::size_t records, Duration limit);

 private:
  template <class F>
  auto on_client(F make);
  Result<SimPartitionState> state();
  std::size_t another(std::size_t broker);
  Duration some_of(Duration most);
  void hold(Duration most) { world_.run_for(some_of(most)); }
  Result<> die(SimFault fault, std::size_t broker);
  Result<> cut(SimFault fault, std::size_t broker);
  Result<> delete_while_down(std::size_t broker);
  Result<> change_topic(const std::string& topic, bool create);
  bool healed();
  Result<> in_sync();
  Result<std::string> log_of(std::size_t broker);

  SimWorld world_;
  SimCoordination service_;
  std::vector<SimEnvironment*> nodes_;
  std::vector<std::unique_ptr<SimBroker>> brokers_;
  SimEnvironment& client_;
  std::unique_ptr<SimLoad> load_;
  int topics_made_ = 0;
};

}  // namespace millrace::testing
