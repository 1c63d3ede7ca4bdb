#include "kernel/cluster/placement.h"

#include <algorithm>
#include <set>
#include <string>
#include <tuple>

namespace millrace::kernel {

namespace {

// What a broker has, of this topic and of all.
struct Load {
  std::int32_t id = -1;
  std::string rack;
  bool avoided = false;
  std::size_t of_topic = 0;
  std::size_t leads_of_topic = 0;
  std::size_t replicas = 0;
  std::size_t leads = 0;
};

class Placing {
 public:
  Placing(const ClusterState& cluster, const std::vector<PartitionState>& before,
          const std::set<std::int32_t>& avoided) {
    racks_ = !cluster.brokers.empty();
    for (const auto& [id, broker] : cluster.brokers) {
      loads_.push_back({.id = id, .rack = broker.rack, .avoided = avoided.contains(id)});
      if (broker.rack.empty()) racks_ = false;
    }
    for (const auto& [name, topic] : cluster.topics) {
      for (const auto& partition : topic->partitions) count(partition, false);
    }
    for (const auto& partition : before) count(partition, true);
  }

  std::vector<std::int32_t> next(std::size_t replication) {
    std::vector<std::int32_t> chosen;
    std::set<std::string> racks;
    while (chosen.size() < replication) {
      const bool leads = chosen.empty();
      Load* best = nullptr;
      for (auto& load : loads_) {
        if (std::ranges::find(chosen, load.id) != chosen.end()) continue;
        if (!best || rank(load, leads, racks) < rank(*best, leads, racks)) best = &load;
      }
      if (!best) break;  // nobody asks for more replicas than there are brokers
      take(*best, leads);
      chosen.push_back(best->id);
      racks.insert(best->rack);
    }
    return chosen;
  }

 private:
  using Rank =
      std::tuple<bool, bool, std::size_t, std::size_t, std::size_t, std::size_t, std::int32_t>;

  // The lowest is chosen. First who is not avoided, on a rack that has none of this partition yet;
  // then who has least of this topic, and then of all.
  Rank rank(const Load& load, bool leads, const std::set<std::string>& used) const {
    const bool crowded = racks_ && used.contains(load.rack);
    if (leads) {
      return {load.avoided,  crowded, load.leads_of_topic, load.of_topic, load.leads,
              load.replicas, load.id};
    }
    return {load.avoided,        crowded,    load.of_topic, load.replicas,
            load.leads_of_topic, load.leads, load.id};
  }

  static void take(Load& load, bool leads) {
    ++load.of_topic;
    ++load.replicas;
    if (!leads) return;
    ++load.leads_of_topic;
    ++load.leads;
  }

  // A preferred leader counts as leading, wherever the leader is now.
  void count(const PartitionState& partition, bool of_topic) {
    for (std::size_t at = 0; at < partition.replicas.size(); ++at) {
      const auto load = std::ranges::find(loads_, partition.replicas[at], &Load::id);
      if (load == loads_.end()) continue;
      if (of_topic) {
        ++load->of_topic;
        load->leads_of_topic += at == 0 ? 1 : 0;
      } else {
        ++load->replicas;
        load->leads += at == 0 ? 1 : 0;
      }
    }
  }

  std::vector<Load> loads_;
  bool racks_ = false;  // every broker has one
};

}  // namespace

std::vector<std::vector<std::int32_t>> place_replicas(const ClusterState& cluster,
                                                      const std::vector<PartitionState>& before,
                                                      std::size_t count, std::size_t replication,
                                                      const std::set<std::int32_t>& avoided) {
  Placing placing(cluster, before, avoided);
  std::vector<std::vector<std::int32_t>> placed;
  placed.reserve(count);
  for (std::size_t n = 0; n < count; ++n) placed.push_back(placing.next(replication));
  return placed;
}

}  // namespace millrace::kernel
