// Who leads a partition, decided from its state and from who is there. Pure functions.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "kernel/cluster/cluster_state.h"

namespace millrace::kernel {

/// Who can lead, and be in sync.
using Usable = std::function<bool(std::int32_t broker)>;

struct Elected {
  PartitionState state;
  bool unclean = false;  ///< the leader was not in sync: what it had not fetched is lost
};

/// What becomes of a partition; none: it stays as it is. A leader that is usable stays, and whoever
/// is not leaves the in-sync set. Else the first replica of the list that is in sync and usable
/// leads, in a new epoch; where there is none, any that is usable if `unclean`; and else nobody,
/// while the in-sync set stays, so that one of it can lead when it comes back.
std::optional<Elected> elect(const PartitionState& state, const Usable& usable, bool unclean);

/// The first of the replicas leads, if it does not already and can; none otherwise.
std::optional<PartitionState> elect_preferred(const PartitionState& state, const Usable& usable);

}  // namespace millrace::kernel
