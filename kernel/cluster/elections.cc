#include "kernel/cluster/elections.h"

#include <algorithm>
#include <iterator>
#include <vector>

namespace millrace::kernel {

namespace {

bool contains(const std::vector<std::int32_t>& brokers, std::int32_t broker) {
  return std::ranges::find(brokers, broker) != brokers.end();
}

PartitionState led_by(PartitionState state, std::int32_t leader,
                      std::vector<std::int32_t> in_sync) {
  state.leader = leader;
  ++state.leader_epoch.value;
  state.in_sync = std::move(in_sync);
  return state;
}

}  // namespace

std::optional<Elected> elect(const PartitionState& state, const Usable& usable, bool unclean) {
  std::vector<std::int32_t> in_sync;
  std::ranges::copy_if(state.in_sync, std::back_inserter(in_sync), usable);
  if (contains(in_sync, state.leader)) {
    if (in_sync.size() == state.in_sync.size()) return std::nullopt;
    auto smaller = state;
    smaller.in_sync = std::move(in_sync);
    return Elected{std::move(smaller)};
  }
  for (const auto replica : state.replicas) {
    if (contains(in_sync, replica)) return Elected{led_by(state, replica, std::move(in_sync))};
  }
  if (unclean) {
    const auto any = std::ranges::find_if(state.replicas, usable);
    if (any != state.replicas.end()) return Elected{led_by(state, *any, {*any}), true};
  }
  if (state.leader < 0) return std::nullopt;
  return Elected{led_by(state, -1, state.in_sync)};
}

std::optional<PartitionState> elect_preferred(const PartitionState& state, const Usable& usable) {
  if (state.replicas.empty()) return std::nullopt;
  const auto preferred = state.replicas.front();
  if (preferred == state.leader || !contains(state.in_sync, preferred) || !usable(preferred)) {
    return std::nullopt;
  }
  return led_by(state, preferred, state.in_sync);
}

}  // namespace millrace::kernel
