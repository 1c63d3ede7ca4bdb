// A whole broker on a simulated machine: the kernel's engine with the shipped plugins.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <millrace/testing/fake_host.h>
#include <millrace/testing/sim_coordination.h>
#include <millrace/testing/sim_environment.h>

#include "kernel/daemon/engine.h"

namespace millrace::testing {

/// Listens on ports 9092 (Kafka) and 9644 (HTTP) of its node and keeps its data in "/data" of the
/// node's disk.
class SimBroker {
 public:
  /// `sets` as on the command line of millraced: "storage.plugin=memory".
  SimBroker(SimWorld& world, SimEnvironment& node, std::vector<std::string> sets = {});
  /// Stops what runs.
  ~SimBroker();

  /// From the next start on it is one of several: in place of its own coordination. Outlives this.
  void share(SimCoordination& service) { service_ = &service; }

  Result<> start();
  Result<> stop();
  /// The power goes; what is left of the process is cleared away. start() begins anew.
  void crash();
  /// As kill -9.
  void kill();

  /// While it runs.
  std::string doing() const { return engine_->doing(); }
  kernel::KernelBroker& broker() noexcept { return engine_->broker(); }
  const KeptLog& log() const noexcept { return log_; }

 private:
  void clear_away();

  SimWorld& world_;
  SimEnvironment& node_;
  std::vector<std::string> sets_;
  SimCoordination* service_ = nullptr;
  std::unique_ptr<Coordination> coordination_;
  KeptLog log_;
  KeptMetrics metrics_;
  std::unique_ptr<kernel::Engine> engine_;
};

}  // namespace millrace::testing
