#include "uniform_assignor.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

namespace millrace::consumer_groups {
namespace {

struct Slot {
  std::size_t topic;  // index into the subscribed topics
  std::int32_t partition;
};

/// Everybody subscribes to everything: shares are equal, give or take one.
class SameSubscriptions {
 public:
  SameSubscriptions(std::span<const AssignorMember> members, std::span<const std::size_t> order,
                    std::span<const SubscribedTopic> topics)
      : members_(members), order_(order), topics_(topics), owned_(members.size()) {
    std::size_t partitions = 0;
    for (const auto& [topic, subscribers] : topics) {
      partitions += static_cast<std::size_t>(topic->partitions());
      taken_.emplace_back(static_cast<std::size_t>(topic->partitions()), false);
    }
    share_min_ = partitions / members.size();
    larger_left_ = partitions % members.size();
  }

  std::vector<Assignment> assign() {
    keep();
    give();
    std::vector<Assignment> assignments(members_.size());
    for (std::size_t m = 0; m < members_.size(); ++m) {
      for (const auto& [topic, partition] : owned_[m]) {
        assignments[m][topics_[topic].topic->id].push_back(partition);
      }
      for (auto& [id, partitions] : assignments[m]) std::ranges::sort(partitions);
    }
    return assignments;
  }

 private:
  bool has_room(std::size_t member) const {
    const std::size_t share = owned_[member].size();
    return share < share_min_ || (share == share_min_ && larger_left_ > 0);
  }

  void take(std::size_t member, Slot slot) {
    if (owned_[member].size() == share_min_) --larger_left_;
    owned_[member].push_back(slot);
    taken_[slot.topic][static_cast<std::size_t>(slot.partition)] = true;
  }

  /// What a member has of what there is; what is near it first.
  std::vector<Slot> had(std::size_t member) const {
    std::vector<Slot> slots;
    if (members_[member].before == nullptr) return slots;
    const Assignment& before = *members_[member].before;
    for (std::size_t t = 0; t < topics_.size(); ++t) {
      const auto found = before.find(topics_[t].topic->id);
      if (found == before.end()) continue;
      for (const std::int32_t p : found->second) {
        if (p >= 0 && p < topics_[t].topic->partitions()) slots.push_back({t, p});
      }
    }
    if (members_[member].rack) {
      std::ranges::sort(slots, {}, [&](const Slot& slot) {
        const bool far = !in_rack(members_[member], *topics_[slot.topic].topic, slot.partition);
        return std::tuple(far, slot.topic, slot.partition);
      });
    }
    return slots;
  }

  void keep() {
    std::vector<std::pair<std::size_t, std::vector<Slot>>> earlier;  // by rank
    for (std::size_t rank = 0; rank < order_.size(); ++rank) {
      if (auto slots = had(order_[rank]); !slots.empty()) {
        earlier.emplace_back(rank, std::move(slots));
      }
    }
    // Larger shares stay with those who have them, so that fewer partitions move.
    std::ranges::sort(earlier, [](const auto& a, const auto& b) {
      return std::pair(b.second.size(), a.first) < std::pair(a.second.size(), b.first);
    });
    for (const auto& [rank, slots] : earlier) {
      const std::size_t member = order_[rank];
      for (const Slot slot : slots) {
        if (!has_room(member)) break;
        if (!taken_[slot.topic][static_cast<std::size_t>(slot.partition)]) take(member, slot);
      }
    }
  }

  void give() {
    std::vector<Slot> free;
    for (std::size_t t = 0; t < topics_.size(); ++t) {
      for (std::int32_t p = 0; p < topics_[t].topic->partitions(); ++p) {
        if (!taken_[t][static_cast<std::size_t>(p)]) free.push_back({t, p});
      }
    }
    std::vector<std::size_t> ranks(members_.size());
    for (std::size_t r = 0; r < order_.size(); ++r) ranks[order_[r]] = r;
    give_by_rack(free, ranks);

    std::set<std::pair<std::size_t, std::size_t>> smallest;  // share, rank
    for (const std::size_t m : order_) {
      if (has_room(m)) smallest.emplace(owned_[m].size(), ranks[m]);
    }
    for (const Slot slot : free) {
      if (taken_[slot.topic][static_cast<std::size_t>(slot.partition)]) continue;
      const auto [share, rank] = *smallest.begin();
      smallest.erase(smallest.begin());
      const std::size_t member = order_[rank];
      take(member, slot);
      if (has_room(member)) smallest.emplace(share + 1, rank);
    }
  }

  void give_by_rack(std::span<const Slot> free, std::span<const std::size_t> ranks) {
    std::map<std::string_view, std::set<std::pair<std::size_t, std::size_t>>> of_rack;
    for (const std::size_t m : order_) {
      if (members_[m].rack && has_room(m)) {
        of_rack[*members_[m].rack].emplace(owned_[m].size(), ranks[m]);
      }
    }
    if (of_rack.empty()) return;
    for (const Slot slot : free) {
      const auto& racks =
          topics_[slot.topic].topic->racks[static_cast<std::size_t>(slot.partition)];
      std::set<std::pair<std::size_t, std::size_t>>* best = nullptr;
      for (const auto& rack : racks) {
        const auto found = of_rack.find(rack);
        if (found == of_rack.end() || found->second.empty()) continue;
        if (best == nullptr || *found->second.begin() < *best->begin()) best = &found->second;
      }
      if (best == nullptr) continue;
      const auto [share, rank] = *best->begin();
      // The least of this rack is full: so are the others of it.
      if (!has_room(order_[rank])) {
        best->clear();
        continue;
      }
      best->erase(best->begin());
      take(order_[rank], slot);
      best->emplace(share + 1, rank);
    }
  }

  std::span<const AssignorMember> members_;
  std::span<const std::size_t> order_;
  std::span<const SubscribedTopic> topics_;
  std::vector<std::vector<Slot>> owned_;  // by member
  std::vector<std::vector<bool>> taken_;  // by topic and partition
  std::size_t share_min_ = 0;
  std::size_t larger_left_ = 0;  // shares that may still get one more than the smallest
};

/// Subscriptions differ: first everything gets an owner, then single partitions move from larger
/// to smaller shares until no move helps.
class DifferentSubscriptions {
 public:
  DifferentSubscriptions(std::span<const AssignorMember> members,
                         std::span<const std::size_t> order,
                         std::span<const SubscribedTopic> topics)
      : members_(members), topics_(topics), shares_(members.size(), 0), ranks_(members.size()) {
    for (std::size_t r = 0; r < order.size(); ++r) ranks_[order[r]] = r;
    for (const auto& [topic, subscribers] : topics) {
      owners_.emplace_back(static_cast<std::size_t>(topic->partitions()), nobody);
    }
  }

  std::vector<Assignment> assign() {
    for (std::size_t t = 0; t < topics_.size(); ++t) keep(t);
    // Topics with the least choice first.
    std::vector<std::size_t> by_choice(topics_.size());
    for (std::size_t t = 0; t < by_choice.size(); ++t) by_choice[t] = t;
    std::ranges::sort(by_choice, {},
                      [&](std::size_t t) { return std::pair(topics_[t].subscribers.size(), t); });
    for (const std::size_t t : by_choice) give(t);
    // Each move makes the shares more even, so this ends by itself; the bound is for time.
    constexpr int rounds_max = 16;
    for (int round = 0; round < rounds_max; ++round) {
      bool moved = false;
      for (const std::size_t t : by_choice) moved = even_out(t) || moved;
      if (!moved) break;
    }
    std::vector<Assignment> assignments(members_.size());
    for (std::size_t t = 0; t < topics_.size(); ++t) {
      for (std::size_t p = 0; p < owners_[t].size(); ++p) {
        assignments[owners_[t][p]][topics_[t].topic->id].push_back(static_cast<std::int32_t>(p));
      }
    }
    return assignments;
  }

 private:
  static constexpr std::size_t nobody = static_cast<std::size_t>(-1);

  void set_owner(std::size_t topic, std::size_t partition, std::size_t member) {
    auto& owner = owners_[topic][partition];
    if (owner != nobody) --shares_[owner];
    owner = member;
    ++shares_[member];
  }

  void keep(std::size_t t) {
    for (const std::size_t m : topics_[t].subscribers) {
      if (members_[m].before == nullptr) continue;
      const auto found = members_[m].before->find(topics_[t].topic->id);
      if (found == members_[m].before->end()) continue;
      for (const std::int32_t partition : found->second) {
        const auto p = static_cast<std::size_t>(partition);
        if (p < owners_[t].size() && owners_[t][p] == nobody) set_owner(t, p, m);
      }
    }
  }

  void give(std::size_t t) {
    std::set<std::pair<std::size_t, std::size_t>> smallest;  // share, place among the subscribers
    const auto& subscribers = topics_[t].subscribers;
    for (std::size_t s = 0; s < subscribers.size(); ++s) {
      smallest.emplace(shares_[subscribers[s]], s);
    }
    for (std::size_t p = 0; p < owners_[t].size(); ++p) {
      if (owners_[t][p] != nobody) continue;
      auto chosen = smallest.begin();
      // Of those with the smallest share, one of the partition's rack.
      for (auto at = chosen; at != smallest.end() && at->first == chosen->first; ++at) {
        if (in_rack(members_[subscribers[at->second]], *topics_[t].topic,
                    static_cast<std::int32_t>(p))) {
          chosen = at;
          break;
        }
      }
      const auto [share, s] = *chosen;
      smallest.erase(chosen);
      set_owner(t, p, subscribers[s]);
      smallest.emplace(share + 1, s);
    }
  }

  /// Moves partitions of one topic; whether any has moved.
  bool even_out(std::size_t t) {
    std::map<std::size_t, std::vector<std::size_t>> of_member;  // partitions, the last to go first
    for (std::size_t p = 0; p < owners_[t].size(); ++p) of_member[owners_[t][p]].push_back(p);
    std::set<std::pair<std::size_t, std::size_t>> smallest;  // share, rank
    std::map<std::size_t, std::size_t> member_of_rank;
    for (const std::size_t m : topics_[t].subscribers) {
      smallest.emplace(shares_[m], ranks_[m]);
      member_of_rank[ranks_[m]] = m;
    }
    bool moved = false;
    std::set<std::pair<std::size_t, std::size_t>> givers;
    for (const auto& [m, partitions] : of_member) givers.emplace(shares_[m], ranks_[m]);
    while (!givers.empty()) {
      const auto [most, from_rank] = *givers.rbegin();
      const auto [least, to_rank] = *smallest.begin();
      if (most < least + 2) break;
      const std::size_t from = member_of_rank[from_rank];
      const std::size_t to = member_of_rank[to_rank];
      auto& partitions = of_member[from];
      const std::size_t p = leaving(t, partitions, to);
      std::erase(partitions, p);
      of_member[to].push_back(p);
      givers.erase({most, from_rank});
      smallest.erase({most, from_rank});
      smallest.erase({least, to_rank});
      givers.erase({least, to_rank});
      set_owner(t, p, to);
      if (!partitions.empty()) givers.emplace(most - 1, from_rank);
      givers.emplace(least + 1, to_rank);
      smallest.emplace(most - 1, from_rank);
      smallest.emplace(least + 1, to_rank);
      moved = true;
    }
    return moved;
  }

  /// The last that is near `to`, else the last.
  std::size_t leaving(std::size_t t, const std::vector<std::size_t>& partitions,
                      std::size_t to) const {
    for (auto p = partitions.rbegin(); p != partitions.rend(); ++p) {
      if (in_rack(members_[to], *topics_[t].topic, static_cast<std::int32_t>(*p))) return *p;
    }
    return partitions.back();
  }

  std::span<const AssignorMember> members_;
  std::span<const SubscribedTopic> topics_;
  std::vector<std::size_t> shares_;
  std::vector<std::size_t> ranks_;
  std::vector<std::vector<std::size_t>> owners_;  // by topic and partition
};

}  // namespace

std::vector<Assignment> UniformAssignor::assign(std::span<const AssignorMember> members) const {
  if (members.empty()) return {};
  const auto order = serving_order(members);
  const auto topics = subscribed_topics(members, order);
  const bool same = std::ranges::all_of(topics, [&](const SubscribedTopic& topic) {
    return topic.subscribers.size() == members.size();
  });
  if (same) return SameSubscriptions(members, order, topics).assign();
  return DifferentSubscriptions(members, order, topics).assign();
}

}  // namespace millrace::consumer_groups
