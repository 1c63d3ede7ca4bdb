#include "kernel/cluster/balance_layout.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "kernel/cluster/reassignment.h"

namespace millrace::kernel {

namespace {

template <class T>
bool contains(const std::vector<T>& all, const T& one) {
  return std::ranges::find(all, one) != all.end();
}

// What a topic is kept beside: the one whose id its name ends in.
const TopicState* base_of(const ClusterState& cluster, const TopicState& topic) {
  const auto dot = topic.name.rfind('.');
  if (dot == std::string::npos) return nullptr;
  const auto id = parse_uuid(std::string_view(topic.name).substr(dot + 1));
  const auto found = id ? cluster.names.find(*id) : cluster.names.end();
  return found == cluster.names.end() ? nullptr : cluster.find(std::string_view(found->second));
}

// As far from the mean as nobody needs to mind, as a share of it.
constexpr double tolerated_share = 0.1;
constexpr double tolerated_replicas_min = 1;
constexpr double tolerated_leaders_min = 2;

enum Rank : int { from_gone, from_leaving, others, order_only };

}  // namespace

// ---- what there is ----

BalanceLayout::BalanceLayout(const ClusterState& cluster, const BalanceTerms& terms)
    : fixed_(terms.fixed) {
  number_brokers(cluster, terms);
  number_racks(cluster);
  replicas_.assign(ids_.size(), 0);
  leaders_.assign(ids_.size(), 0);
  for (const auto& [name, topic] : cluster.topics) {
    const auto* base = base_of(cluster, *topic);
    if (base && base != topic.get()) {
      beside_.emplace_back(topic.get(), base);
    } else {
      add_topic(*topic);
    }
  }
}

void BalanceLayout::number_brokers(const ClusterState& cluster, const BalanceTerms& terms) {
  std::set<std::int32_t> all(terms.willing);
  all.insert(terms.unwanted.begin(), terms.unwanted.end());
  for (const auto& [id, broker] : cluster.brokers) all.insert(id);
  for (const auto& [name, topic] : cluster.topics) {
    for (const auto& partition : topic->partitions) {
      all.insert(partition.replicas.begin(), partition.replicas.end());
    }
  }
  ids_.assign(all.begin(), all.end());
  for (const auto id : ids_) {
    willing_.push_back(terms.willing.contains(id));
    unwanted_.push_back(terms.unwanted.contains(id));
    live_.push_back(cluster.brokers.contains(id));
  }
}

void BalanceLayout::number_racks(const ClusterState& cluster) {
  std::map<std::string, std::size_t> numbers;
  std::set<std::size_t> of_willing;
  by_rack_ = true;
  for (Broker at = 0; at < ids_.size(); ++at) {
    const auto found = cluster.brokers.find(ids_[at]);
    const auto name = found == cluster.brokers.end() ? std::string() : found->second.rack;
    racks_.push_back(numbers.try_emplace(name, numbers.size()).first->second);
    if (!willing_[at]) continue;
    of_willing.insert(racks_.back());
    if (name.empty()) by_rack_ = false;
  }
  rack_count_ = of_willing.size();
}

BalanceLayout::Broker BalanceLayout::index_of(std::int32_t id) const {
  return static_cast<Broker>(std::ranges::lower_bound(ids_, id) - ids_.begin());
}

std::vector<BalanceLayout::Broker> BalanceLayout::list_of(const PartitionState& state) const {
  std::vector<Broker> list;
  for (const auto id : replicas_after(state)) list.push_back(index_of(id));
  return list;
}

void BalanceLayout::add_topic(const TopicState& state) {
  auto& topic = topics_.emplace_back();
  topic.state = &state;
  topic.replicas.assign(ids_.size(), 0);
  topic.leaders.assign(ids_.size(), 0);
  for (std::size_t at = 0; at < state.partitions.size(); ++at) {
    auto& row = topic.rows.emplace_back();
    row.state = &state.partitions[at];
    row.list = list_of(*row.state);
    row.before = row.list;
    row.fixed = row.list.empty() || fixed_.contains({state.name, static_cast<std::int32_t>(at)});
    if (row.list.empty()) continue;
    for (const auto broker : row.list) {
      ++topic.replicas[broker];
      ++replicas_[broker];
    }
    ++topic.leaders[row.list.front()];
    ++leaders_[row.list.front()];
  }
}

// ---- single changes ----

void BalanceLayout::replace(Topic& topic, Row& row, Broker from, Broker to) {
  const bool leads = row.list.front() == from;
  *std::ranges::find(row.list, from) = to;
  --topic.replicas[from];
  ++topic.replicas[to];
  --replicas_[from];
  ++replicas_[to];
  if (!leads) return;
  --topic.leaders[from];
  ++topic.leaders[to];
  --leaders_[from];
  ++leaders_[to];
}

void BalanceLayout::prefer(Topic& topic, Row& row, Broker leader) {
  const auto before = row.list.front();
  if (leader == before) return;
  std::swap(row.list.front(), *std::ranges::find(row.list, leader));
  --topic.leaders[before];
  ++topic.leaders[leader];
  --leaders_[before];
  ++leaders_[leader];
}

// They are elected last. The first of the list stays the first.
void BalanceLayout::unwanted_last(Row& row) const {
  std::vector<Broker> last;
  std::copy_if(row.list.begin() + 1, row.list.end(), std::back_inserter(last),
               [this](Broker one) { return unwanted_[one]; });
  row.list.erase(std::remove_if(row.list.begin() + 1, row.list.end(),
                                [this](Broker one) { return unwanted_[one]; }),
                 row.list.end());
  row.list.insert(row.list.end(), last.begin(), last.end());
}

// Who leads least of those that could lead.
void BalanceLayout::elect(Topic& topic, Row& row, bool in_sync_only) {
  const auto now = row.list.front();
  std::optional<Broker> best;
  const auto rank = [&](Broker one) {
    const std::int64_t own = one == now ? 1 : 0;
    return std::tuple(topic.leaders[one] - own, leaders_[one] - own, one);
  };
  for (const auto one : row.list) {
    if (!willing_[one]) continue;
    if (in_sync_only && !contains(row.state->in_sync, ids_[one])) continue;
    if (!best || rank(one) < rank(*best)) best = one;
  }
  if (best) prefer(topic, row, *best);
}

// ---- racks ----

std::size_t BalanceLayout::racks_of(const std::vector<Broker>& list) const {
  std::size_t count = 0;
  for (std::size_t at = 0; at < list.size(); ++at) {
    const auto same = [&](Broker one) { return racks_[one] == racks_[list[at]]; };
    if (std::none_of(list.begin(), list.begin() + static_cast<std::ptrdiff_t>(at), same)) ++count;
  }
  return count;
}

// It would be on fewer racks.
bool BalanceLayout::crowds(const Row& row, Broker from, Broker to) const {
  if (!by_rack_ || racks_[from] == racks_[to]) return false;
  auto after = row.list;
  *std::ranges::find(after, from) = to;
  return racks_of(after) < racks_of(row.list);
}

void BalanceLayout::spread_over_racks() {
  if (!by_rack_) return;
  for (auto& topic : topics_) {
    for (auto& row : topic.rows) {
      while (!row.fixed && racks_of(row.list) < std::min(row.list.size(), rack_count_) &&
             spread(topic, row)) {
      }
    }
  }
}

// One replica to one more rack.
bool BalanceLayout::spread(Topic& topic, Row& row) {
  const auto load = [&](Broker one) {
    return std::tuple(topic.replicas[one], replicas_[one], one);
  };
  std::optional<Broker> from;
  for (const auto one : row.list) {
    const bool shares = std::ranges::any_of(
        row.list, [&](Broker other) { return other != one && racks_[other] == racks_[one]; });
    if (willing_[one] && shares && (!from || load(*from) < load(one))) from = one;
  }
  std::optional<Broker> to;
  for (Broker one = 0; one < ids_.size(); ++one) {
    const bool taken =
        std::ranges::any_of(row.list, [&](Broker other) { return racks_[other] == racks_[one]; });
    if (willing_[one] && !taken && (!to || load(one) < load(*to))) to = one;
  }
  if (!from || !to) return false;
  replace(topic, row, *from, *to);
  return true;
}

// ---- brokers that shall have none ----

void BalanceLayout::leaders_off_unwanted() {
  for (auto& topic : topics_) {
    for (auto& row : topic.rows) {
      if (row.fixed || !unwanted_[row.list.front()] || !live_[row.list.front()]) continue;
      elect(topic, row, true);
      if (!unwanted_[row.list.front()]) unwanted_last(row);
    }
  }
}

void BalanceLayout::empty_unwanted() {
  for (auto& topic : topics_) {
    for (auto& row : topic.rows) {
      if (row.fixed) continue;
      const bool vacated = unwanted_[row.list.front()];
      bool stuck = false;
      for (const auto from : std::vector(row.list)) {
        if (!unwanted_[from]) continue;
        if (const auto to = taker(topic, row, from)) {
          replace(topic, row, from, *to);
        } else {
          stuck = true;
          ++stuck_[ids_[from]];
        }
      }
      if (vacated) elect(topic, row, false);
      if (stuck && !unwanted_[row.list.front()]) unwanted_last(row);
    }
  }
}

// On another rack where there is one; then who has least.
std::optional<BalanceLayout::Broker> BalanceLayout::taker(const Topic& topic, const Row& row,
                                                          Broker from) const {
  const auto rank = [&](Broker to) {
    std::size_t racks = 0;
    if (by_rack_) {
      auto after = row.list;
      *std::ranges::find(after, from) = to;
      racks = racks_of(after);
    }
    return std::tuple(row.list.size() - racks, topic.replicas[to], replicas_[to], to);
  };
  std::optional<Broker> best;
  for (Broker one = 0; one < ids_.size(); ++one) {
    if (!willing_[one] || contains(row.list, one)) continue;
    if (!best || rank(one) < rank(*best)) best = one;
  }
  return best;
}

// ---- even shares of replicas ----

// Willing brokers, who has least first.
std::vector<BalanceLayout::Broker> BalanceLayout::sorted(const Counts& first,
                                                         const Counts& then) const {
  std::vector<Broker> brokers;
  for (Broker one = 0; one < ids_.size(); ++one) {
    if (willing_[one]) brokers.push_back(one);
  }
  std::ranges::sort(brokers, {},
                    [&](Broker one) { return std::tuple(first[one], then[one], one); });
  return brokers;
}

bool BalanceLayout::can_move(const Row& row, Broker from, Broker to) const {
  return !row.fixed && contains(row.list, from) && !contains(row.list, to) &&
         !crowds(row, from, to);
}

// Of those that can move, one whose preferred leader moves with it where that helps, else not.
BalanceLayout::Row* BalanceLayout::movable(Topic& topic, Broker from, Broker to) {
  const bool leads = topic.leaders[from] > topic.leaders[to] + 1 ||
                     (topic.leaders[from] > topic.leaders[to] && leaders_[from] > leaders_[to]);
  Row* any = nullptr;
  for (std::size_t n = 0; n < topic.rows.size(); ++n) {
    const auto at = (topic.next_row + n) % topic.rows.size();
    auto& row = topic.rows[at];
    if (!can_move(row, from, to)) continue;
    if (!any) any = &row;
    if ((row.list.front() == from) != leads) continue;
    topic.next_row = at + 1;
    return &row;
  }
  return any;
}

bool BalanceLayout::move_over(Topic& topic, Broker from, Broker to) {
  auto* row = movable(topic, from, to);
  if (!row) return by_rack_ && move_by_way(topic, from, to);
  replace(topic, *row, from, to);
  return true;
}

// Where racks forbid the direct move: `from` gives one partition to another broker, that another
// partition to the next, and the last to `to`. Those between have as many as before.
bool BalanceLayout::move_by_way(Topic& topic, Broker from, Broker to) {
  struct Step {
    Broker from;
    Row* row = nullptr;
  };
  std::vector<std::optional<Step>> came(ids_.size());
  const auto is_used = [&](const Row& row, Broker at) {
    for (; at != from; at = came[at]->from) {
      if (came[at]->row == &row) return true;
    }
    return false;
  };
  std::vector<Broker> reached{from};
  for (std::size_t n = 0; n < reached.size() && !came[to]; ++n) {
    const auto at = reached[n];
    for (auto& row : topic.rows) {
      if (row.fixed || !contains(row.list, at) || is_used(row, at)) continue;
      for (Broker next = 0; next < ids_.size(); ++next) {
        if (next == from || !willing_[next] || came[next] || !can_move(row, at, next)) continue;
        came[next] = Step{at, &row};
        reached.push_back(next);
      }
    }
  }
  if (!came[to]) return false;
  for (auto at = to; at != from; at = came[at]->from) {
    replace(topic, *came[at]->row, came[at]->from, at);
  }
  return true;
}

void BalanceLayout::even_topic(Topic& topic) {
  const auto step = [&] {
    const auto brokers = sorted(topic.replicas, replicas_);
    for (std::size_t n = brokers.size(); n-- > 0;) {
      const auto from = brokers[n];
      for (const auto to : brokers) {
        if (topic.replicas[from] - topic.replicas[to] < 2) break;
        if (move_over(topic, from, to)) return true;
      }
    }
    return false;
  };
  while (step()) {
  }
}

// Of a topic of which `from` has more than `to`, so that the topic is as even as before. `hopeless`
// are pairs between which nothing can move now.
bool BalanceLayout::even_all_once(std::set<std::pair<Broker, Broker>>& hopeless) {
  const auto brokers = sorted(replicas_, replicas_);
  for (std::size_t n = brokers.size(); n-- > 0;) {
    const auto from = brokers[n];
    for (const auto to : brokers) {
      if (replicas_[from] - replicas_[to] < 2) break;
      if (hopeless.contains({from, to})) continue;
      for (std::size_t m = 0; m < topics_.size(); ++m) {
        const auto at = (next_topic_ + m) % topics_.size();
        auto& topic = topics_[at];
        if (topic.replicas[from] <= topic.replicas[to]) continue;
        auto* row = movable(topic, from, to);
        if (!row) continue;
        replace(topic, *row, from, to);
        next_topic_ = at + 1;
        return true;
      }
      hopeless.insert({from, to});
    }
  }
  return false;
}

// What one step moves may let another one move more.
void BalanceLayout::even_replicas() {
  for (bool again = true; again;) {
    for (auto& topic : topics_) even_topic(topic);
    std::set<std::pair<Broker, Broker>> hopeless;
    again = false;
    while (even_all_once(hopeless)) again = true;
  }
}

// ---- even shares of preferred leaders ----

// `down_only`: from who leads more of the topic to who leads less of it, so that it is as even as
// before.
void BalanceLayout::add_edges(Topic& topic, bool down_only, Edges& edges) {
  for (auto& row : topic.rows) {
    if (row.fixed) continue;
    const auto now = row.list.front();
    for (const auto other : row.list) {
      if (other == now || !willing_[other]) continue;
      if (down_only && topic.leaders[now] <= topic.leaders[other]) continue;
      edges[now].push_back({other, &topic, &row});
    }
  }
}

// One leader less for a broker that has most, one more for one that has least, over as few
// partitions as that takes.
bool BalanceLayout::even_leaders_once(const Counts& counts, const Counts& then,
                                      const Edges& edges) {
  const auto brokers = sorted(counts, then);
  if (brokers.empty()) return false;
  for (std::size_t n = brokers.size(); n-- > 0;) {
    const auto from = brokers[n];
    if (counts[from] - counts[brokers.front()] < 2) return false;
    std::vector<std::pair<Broker, const Edge*>> came(ids_.size(), {from, nullptr});
    std::vector<Broker> reached{from};
    for (std::size_t at = 0; at < reached.size(); ++at) {
      for (const auto& edge : edges[reached[at]]) {
        if (edge.to == from || came[edge.to].second) continue;
        came[edge.to] = {reached[at], &edge};
        reached.push_back(edge.to);
      }
    }
    const auto best = std::ranges::find_if(brokers, [&](Broker one) {
      return came[one].second != nullptr && counts[from] - counts[one] >= 2;
    });
    if (best == brokers.end()) continue;
    for (auto at = *best; at != from; at = came[at].first) {
      const auto* edge = came[at].second;
      prefer(*edge->topic, *edge->row, at);
    }
    return true;
  }
  return false;
}

void BalanceLayout::even_leaders() {
  for (auto& topic : topics_) {
    Edges edges;
    do {
      edges.assign(ids_.size(), {});
      add_edges(topic, false, edges);
    } while (even_leaders_once(topic.leaders, leaders_, edges));
  }
  Edges edges;
  do {
    edges.assign(ids_.size(), {});
    for (auto& topic : topics_) add_edges(topic, true, edges);
  } while (even_leaders_once(leaders_, leaders_, edges));
}

// ---- what comes of it ----

bool BalanceLayout::differ(const Counts& counts, double bound_min) const {
  std::int64_t total = 0;
  std::int64_t brokers = 0;
  for (Broker one = 0; one < ids_.size(); ++one) {
    if (!willing_[one]) continue;
    total += counts[one];
    ++brokers;
  }
  if (brokers == 0) return false;
  const auto mean = static_cast<double>(total) / static_cast<double>(brokers);
  const auto bound = std::max(bound_min, mean * tolerated_share);
  for (Broker one = 0; one < ids_.size(); ++one) {
    if (willing_[one] && std::abs(static_cast<double>(counts[one]) - mean) > bound) return true;
  }
  return false;
}

bool BalanceLayout::is_uneven() const {
  if (differ(replicas_, tolerated_replicas_min) || differ(leaders_, tolerated_leaders_min)) {
    return true;
  }
  return std::ranges::any_of(topics_, [this](const Topic& topic) {
    if (differ(topic.replicas, tolerated_replicas_min)) return true;
    return by_rack_ && std::ranges::any_of(topic.rows, [this](const Row& row) {
             return racks_of(row.list) < std::min(row.list.size(), rack_count_);
           });
  });
}

BalanceLayout::Ranked BalanceLayout::ranked(TopicPartition id, const std::vector<Broker>& before,
                                            const std::vector<Broker>& after) const {
  Ranked made{.rank = order_only, .move = {.id = std::move(id), .replicas = {}, .getting = {}}};
  for (const auto one : after) {
    made.move.replicas.push_back(ids_[one]);
    if (!contains(before, one)) made.move.getting.push_back(ids_[one]);
  }
  for (const auto one : before) {
    if (contains(after, one)) continue;
    const int rank = !unwanted_[one] ? others : live_[one] ? from_leaving : from_gone;
    made.rank = std::min(made.rank, rank);
  }
  if (!made.move.getting.empty()) made.rank = std::min<int>(made.rank, others);
  return made;
}

void BalanceLayout::add_beside(const TopicState& beside, const Topic& base,
                               std::vector<Ranked>& moves) const {
  const auto count = std::min(beside.partitions.size(), base.rows.size());
  for (std::size_t at = 0; at < count; ++at) {
    TopicPartition id{beside.name, static_cast<std::int32_t>(at)};
    const auto before = list_of(beside.partitions[at]);
    const auto& after = base.rows[at].list;
    if (before == after || fixed_.contains(id) || base.rows[at].fixed) continue;
    moves.push_back(ranked(std::move(id), before, after));
  }
}

BalancePlan BalanceLayout::plan() const {
  std::vector<Ranked> moves;
  for (const auto& topic : topics_) {
    for (std::size_t at = 0; at < topic.rows.size(); ++at) {
      const auto& row = topic.rows[at];
      if (row.list == row.before) continue;
      moves.push_back(
          ranked({topic.state->name, static_cast<std::int32_t>(at)}, row.before, row.list));
    }
  }
  for (const auto& [beside, base] : beside_) {
    const auto found = std::ranges::find(topics_, base, &Topic::state);
    if (found != topics_.end()) add_beside(*beside, *found, moves);
  }
  std::ranges::sort(moves, {}, [](const Ranked& one) { return std::tie(one.rank, one.move.id); });
  BalancePlan plan{.moves = {}, .stuck = stuck_};
  for (auto& one : moves) plan.moves.push_back(std::move(one.move));
  return plan;
}

}  // namespace millrace::kernel
