#include "kernel/broker/cluster_service.h"

#include <utility>

namespace millrace::kernel {

Task<ClusterUpdated> KernelClusterService::update(ClusterUpdate update) {
  auto make = [this, update = std::move(update)]() mutable {
    return cluster_.take(std::move(update));
  };
  co_return co_await run_on(control(), std::move(make));
}

Task<std::vector<InSyncChanged>> KernelClusterService::change_in_sync(
    std::int32_t broker, std::int64_t broker_epoch, std::vector<InSyncChange> changes) {
  auto make = [this, broker, broker_epoch, changes] {
    return cluster_.controller().change_in_sync(broker, broker_epoch, changes);
  };
  auto answered = co_await run_on(control(), std::move(make));
  if (answered || answered.error().code != Errc::fenced) co_return std::move(answered);
  std::vector<InSyncChanged> refused;
  for (auto& change : changes) {
    refused.push_back({.partition = std::move(change.partition),
                       .error = ErrorCode::not_controller,
                       .state = {}});
  }
  co_return std::move(refused);
}

Task<LeadersMoved> KernelClusterService::shut_down(std::int32_t broker, std::int64_t broker_epoch) {
  auto make = [this, broker, broker_epoch] {
    return cluster_.controller().shut_down(broker, broker_epoch);
  };
  auto answered = co_await run_on(control(), std::move(make));
  if (answered || answered.error().code != Errc::fenced) co_return std::move(answered);
  LeadersMoved refused;
  refused.error = ErrorCode::not_controller;
  co_return std::move(refused);
}

}  // namespace millrace::kernel
