// Where replicas and leaders go so that brokers have even shares of them, and so that brokers that
// shall have none get rid of theirs. Pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <millrace/types.h>

#include "kernel/cluster/cluster_state.h"

namespace millrace::kernel {

/// Names of settings; they are set for all brokers.
namespace balance_settings {
inline constexpr const char* enable = "cluster.balance.enable";
inline constexpr const char* moves_max = "cluster.balance.moves.max";
inline constexpr const char* replace_after_ms = "cluster.balance.replace.after.ms";
inline constexpr const char* drain_brokers = "cluster.drain.brokers";
}  // namespace balance_settings

/// The ids of a setting's list. What is no id is passed over.
std::set<std::int32_t> brokers_in(std::string_view list);

/// Those that live or have replicas.
std::set<std::int32_t> known_brokers(const ClusterState& cluster);

/// What a plan starts from, beside the state of the cluster. A broker that is neither willing nor
/// unwanted is away for a while: what it has stays its own.
struct BalanceTerms {
  std::set<std::int32_t> willing;   ///< may get replicas, and lead
  std::set<std::int32_t> unwanted;  ///< shall have no replicas
  std::set<TopicPartition> fixed;   ///< stay as they are; those that move, as they will be
};

struct BalanceMove {
  TopicPartition id;
  std::vector<std::int32_t> replicas;  ///< as they shall be, the preferred leader first
  std::vector<std::int32_t> getting;   ///< get a replica; none: only the order is another one
};

struct BalancePlan {
  /// The most urgent first: away from brokers that are gone, then from those that shall go, then
  /// the others, and last those that copy nothing.
  std::vector<BalanceMove> moves;
  /// How many replicas unwanted brokers keep, since too few willing ones are left for a partition
  /// to have as many as it shall.
  std::map<std::int32_t, std::size_t> stuck;
};

/// No broker has two replicas of a partition, no partition more or less of them than before, nor on
/// fewer racks, where every willing broker has one. With `even`, brokers have even shares: of each
/// topic's replicas and preferred leaders within one wherever racks and fixed partitions allow it,
/// and then of all; as few replicas move as that takes. Carrying a plan out leaves nothing to plan.
/// A topic that is kept beside another (its name ends in the other's id) goes where that goes.
BalancePlan plan_balance(const ClusterState& cluster, const BalanceTerms& terms, bool even);

/// Whether shares of willing brokers differ so much that it is worth moving what they have: small
/// differences, which whoever places replicas by hand makes too, are left alone.
bool is_uneven(const ClusterState& cluster, const BalanceTerms& terms);

/// Preferred leaders away from unwanted brokers that live, to replicas that are in sync: at once,
/// for nothing is copied.
std::vector<BalanceMove> plan_leaders_off(const ClusterState& cluster, const BalanceTerms& terms);

}  // namespace millrace::kernel
