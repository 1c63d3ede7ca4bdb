// A partition moves to other replicas (KIP-455): those to come are added to the list, and once they
// are all in sync those to go leave it. Pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "kernel/cluster/cluster_state.h"
#include "kernel/cluster/elections.h"

namespace millrace::kernel {

bool is_reassigning(const PartitionState& state) noexcept;
/// The replicas that there were before it began, or shall be when it is cancelled.
std::vector<std::int32_t> replicas_before(const PartitionState& state);
/// Those that there will be once it has ended.
std::vector<std::int32_t> replicas_after(const PartitionState& state);

/// The state with which a move to `wanted` begins, whatever move it replaces. No broker is named
/// twice in `wanted`, and one at least.
PartitionState begin_reassignment(const PartitionState& state, std::vector<std::int32_t> wanted);

/// The replicas are again those that there were before. None when nobody of them could lead.
std::optional<PartitionState> cancel_reassignment(const PartitionState& state,
                                                  const Usable& usable);

/// The end of a move: none while a replica to come is not in sync, or nobody who stays could lead.
std::optional<PartitionState> finish_reassignment(const PartitionState& state,
                                                  const Usable& usable);

}  // namespace millrace::kernel
