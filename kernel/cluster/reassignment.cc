#include "kernel/cluster/reassignment.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace millrace::kernel {

namespace {

using Brokers = std::vector<std::int32_t>;

bool contains(const Brokers& brokers, std::int32_t broker) {
  return std::ranges::find(brokers, broker) != brokers.end();
}

Brokers without(const Brokers& brokers, const Brokers& those) {
  Brokers left;
  std::ranges::copy_if(brokers, std::back_inserter(left),
                       [&](std::int32_t one) { return !contains(those, one); });
  return left;
}

// The partition is on `replicas` and nobody else, in a new epoch: whoever is not of them any more
// must not go on.
std::optional<PartitionState> settle(const PartitionState& state, Brokers replicas,
                                     const Usable& usable) {
  auto settled = state;
  settled.in_sync.clear();
  std::ranges::copy_if(state.in_sync, std::back_inserter(settled.in_sync),
                       [&](std::int32_t one) { return contains(replicas, one); });
  if (!contains(replicas, state.leader)) {
    const auto next = std::ranges::find_if(
        replicas, [&](std::int32_t one) { return contains(settled.in_sync, one) && usable(one); });
    if (next == replicas.end()) return std::nullopt;
    settled.leader = *next;
  }
  settled.replicas = std::move(replicas);
  settled.adding.clear();
  settled.removing.clear();
  ++settled.leader_epoch.value;
  return settled;
}

}  // namespace

bool is_reassigning(const PartitionState& state) noexcept {
  return !state.adding.empty() || !state.removing.empty();
}

std::vector<std::int32_t> replicas_before(const PartitionState& state) {
  return without(state.replicas, state.adding);
}

std::vector<std::int32_t> replicas_after(const PartitionState& state) {
  return without(state.replicas, state.removing);
}

PartitionState begin_reassignment(const PartitionState& state, std::vector<std::int32_t> wanted) {
  const auto before = replicas_before(state);
  auto moving = state;
  moving.adding = without(wanted, before);
  moving.removing = without(before, wanted);
  // Who came for a move that this one replaces, and is not wanted now, goes at once.
  moving.replicas = std::move(wanted);
  std::ranges::copy(moving.removing, std::back_inserter(moving.replicas));
  moving.in_sync = without(state.in_sync, without(state.adding, moving.adding));
  if (moving != state) ++moving.leader_epoch.value;
  return moving;
}

std::optional<PartitionState> cancel_reassignment(const PartitionState& state,
                                                  const Usable& usable) {
  return settle(state, replicas_before(state), usable);
}

std::optional<PartitionState> finish_reassignment(const PartitionState& state,
                                                  const Usable& usable) {
  if (!is_reassigning(state)) return std::nullopt;
  auto replicas = replicas_after(state);
  const bool all_in_sync =
      std::ranges::all_of(replicas, [&](std::int32_t one) { return contains(state.in_sync, one); });
  if (!all_in_sync) return std::nullopt;
  return settle(state, std::move(replicas), usable);
}

}  // namespace millrace::kernel
