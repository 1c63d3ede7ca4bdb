// Who has which replicas, in a form that a plan is worked out on; see balance.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "kernel/cluster/balance.h"
#include "kernel/cluster/cluster_state.h"

namespace millrace::kernel {

/// All begins as it is, or will be once what moves has moved; each step makes it better, and none
/// undoes what one before it has reached: so a plan ends, and one after it finds nothing to do.
class BalanceLayout {
 public:
  BalanceLayout(const ClusterState& cluster, const BalanceTerms& terms);

  void leaders_off_unwanted();
  void empty_unwanted();
  void spread_over_racks();
  void even_replicas();
  void even_leaders();

  bool is_uneven() const;
  /// What differs from the beginning.
  BalancePlan plan() const;

 private:
  using Broker = std::size_t;  // an index, of brokers in the order of their ids
  using Counts = std::vector<std::int64_t>;
  struct Row {  // a partition
    std::vector<Broker> list;
    std::vector<Broker> before;
    const PartitionState* state = nullptr;
    bool fixed = false;
  };
  struct Topic {
    const TopicState* state = nullptr;
    std::vector<Row> rows;
    Counts replicas;  // by broker
    Counts leaders;   // preferred ones
    std::size_t next_row = 0;
  };
  struct Edge {  // a partition whose leader could be another one
    Broker to;
    Topic* topic;
    Row* row;
  };
  using Edges = std::vector<std::vector<Edge>>;  // by the leader of now

  struct Ranked {  // the most urgent have the lowest rank
    int rank;
    BalanceMove move;
  };

  void number_brokers(const ClusterState& cluster, const BalanceTerms& terms);
  void number_racks(const ClusterState& cluster);
  Broker index_of(std::int32_t id) const;
  std::vector<Broker> list_of(const PartitionState& state) const;
  void add_topic(const TopicState& state);

  void replace(Topic& topic, Row& row, Broker from, Broker to);
  void prefer(Topic& topic, Row& row, Broker leader);
  void unwanted_last(Row& row) const;
  void elect(Topic& topic, Row& row, bool in_sync_only);

  std::size_t racks_of(const std::vector<Broker>& list) const;
  bool crowds(const Row& row, Broker from, Broker to) const;
  std::optional<Broker> taker(const Topic& topic, const Row& row, Broker from) const;
  bool spread(Topic& topic, Row& row);

  std::vector<Broker> sorted(const Counts& first, const Counts& then) const;
  bool can_move(const Row& row, Broker from, Broker to) const;
  Row* movable(Topic& topic, Broker from, Broker to);
  bool move_over(Topic& topic, Broker from, Broker to);
  bool move_by_way(Topic& topic, Broker from, Broker to);
  void even_topic(Topic& topic);
  bool even_all_once(std::set<std::pair<Broker, Broker>>& hopeless);

  void add_edges(Topic& topic, bool down_only, Edges& edges);
  bool even_leaders_once(const Counts& counts, const Counts& then, const Edges& edges);

  bool differ(const Counts& counts, double bound_min) const;
  Ranked ranked(TopicPartition id, const std::vector<Broker>& before,
                const std::vector<Broker>& after) const;
  void add_beside(const TopicState& beside, const Topic& base, std::vector<Ranked>& moves) const;

  std::vector<std::int32_t> ids_;
  std::vector<bool> willing_;
  std::vector<bool> unwanted_;
  std::vector<bool> live_;
  std::vector<std::size_t> racks_;  // numbers of them
  bool by_rack_ = false;
  std::size_t rack_count_ = 0;
  std::vector<Topic> topics_;
  std::vector<std::pair<const TopicState*, const TopicState*>> beside_;  // and beside which
  std::set<TopicPartition> fixed_;
  Counts replicas_;
  Counts leaders_;
  std::size_t next_topic_ = 0;
  std::map<std::int32_t, std::size_t> stuck_;
};

}  // namespace millrace::kernel
