#include "kernel/cluster/balance.h"

#include <limits>

#include "kernel/cluster/balance_layout.h"
#include "kernel/partition/config_options.h"

namespace millrace::kernel {

std::set<std::int32_t> brokers_in(std::string_view list) {
  std::set<std::int32_t> brokers;
  for (const auto text : list_of(list)) {
    const auto id = integer_of(text);
    if (id && *id >= 0 && *id <= std::numeric_limits<std::int32_t>::max()) {
      brokers.insert(static_cast<std::int32_t>(*id));
    }
  }
  return brokers;
}

std::set<std::int32_t> known_brokers(const ClusterState& cluster) {
  std::set<std::int32_t> known;
  for (const auto& [id, broker] : cluster.brokers) known.insert(id);
  for (const auto& [name, topic] : cluster.topics) {
    for (const auto& one : topic->partitions) {
      known.insert(one.replicas.begin(), one.replicas.end());
    }
  }
  return known;
}

BalancePlan plan_balance(const ClusterState& cluster, const BalanceTerms& terms, bool even) {
  BalanceLayout layout(cluster, terms);
  layout.empty_unwanted();
  if (even) {
    layout.spread_over_racks();
    layout.even_replicas();
    layout.even_leaders();
  }
  return layout.plan();
}

bool is_uneven(const ClusterState& cluster, const BalanceTerms& terms) {
  return BalanceLayout(cluster, terms).is_uneven();
}

std::vector<BalanceMove> plan_leaders_off(const ClusterState& cluster, const BalanceTerms& terms) {
  BalanceLayout layout(cluster, terms);
  layout.leaders_off_unwanted();
  return layout.plan().moves;
}

}  // namespace millrace::kernel
