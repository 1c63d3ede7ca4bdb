#include "range_assignor.h"

#include <algorithm>
#include <map>
#include <utility>

namespace millrace::consumer_groups {
namespace {

constexpr std::size_t nobody = static_cast<std::size_t>(-1);

/// Topics that are divided alike, and how: `owners[p]` is an index into `subscribers`.
class Division {
 public:
  Division(std::span<const AssignorMember> members, const std::vector<std::size_t>& subscribers,
           std::vector<const ClusterTopic*> topics)
      : members_(members),
        subscribers_(subscribers),
        topics_(std::move(topics)),
        owners_(static_cast<std::size_t>(topics_.front()->partitions()), nobody),
        shares_(subscribers.size(), 0),
        share_min_(owners_.size() / subscribers.size()),
        larger_left_(owners_.size() % subscribers.size()) {}

  std::span<const std::size_t> divide() {
    keep();
    give_by_rack();
    give_in_order();
    return owners_;
  }

 private:
  /// A share has one more than the smallest while there are such shares left.
  bool has_room(std::size_t subscriber) const {
    return shares_[subscriber] < share_min_ ||
           (shares_[subscriber] == share_min_ && larger_left_ > 0);
  }

  void give(std::size_t partition, std::size_t subscriber) {
    if (shares_[subscriber] == share_min_) --larger_left_;
    ++shares_[subscriber];
    owners_[partition] = subscriber;
  }

  /// The first of the topics speaks for all: they were divided alike before, or are now.
  void keep() {
    const Uuid& topic = topics_.front()->id;
    std::vector<std::pair<std::size_t, const Partitions*>> had;
    for (std::size_t s = 0; s < subscribers_.size(); ++s) {
      const Assignment* before = members_[subscribers_[s]].before;
      if (before == nullptr) continue;
      if (const auto found = before->find(topic); found != before->end()) {
        had.emplace_back(s, &found->second);
      }
    }
    // Larger shares stay with those who have them, so that fewer partitions move.
    std::ranges::sort(had, [](const auto& a, const auto& b) {
      return std::pair(b.second->size(), a.first) < std::pair(a.second->size(), b.first);
    });
    for (const auto& [s, partitions] : had) {
      for (const std::int32_t partition : *partitions) {
        const auto p = static_cast<std::size_t>(partition);
        if (p < owners_.size() && owners_[p] == nobody && has_room(s)) give(p, s);
      }
    }
  }

  void give_by_rack() {
    for (std::size_t p = 0; p < owners_.size(); ++p) {
      if (owners_[p] != nobody) continue;
      for (std::size_t s = 0; s < subscribers_.size(); ++s) {
        const AssignorMember& member = members_[subscribers_[s]];
        if (!member.rack) continue;
        const bool near_all = std::ranges::all_of(topics_, [&](const ClusterTopic* topic) {
          return in_rack(member, *topic, static_cast<std::int32_t>(p));
        });
        if (near_all && has_room(s)) {
          give(p, s);
          break;
        }
      }
    }
  }

  void give_in_order() {
    std::size_t s = 0;
    for (std::size_t p = 0; p < owners_.size(); ++p) {
      if (owners_[p] != nobody) continue;
      while (!has_room(s)) ++s;
      give(p, s);
    }
  }

  std::span<const AssignorMember> members_;
  const std::vector<std::size_t>& subscribers_;
  std::vector<const ClusterTopic*> topics_;
  std::vector<std::size_t> owners_;
  std::vector<std::size_t> shares_;
  std::size_t share_min_;
  std::size_t larger_left_;
};

}  // namespace

std::vector<Assignment> RangeAssignor::assign(std::span<const AssignorMember> members) const {
  const auto order = serving_order(members);
  // By subscribers and size.
  std::map<std::pair<std::vector<std::size_t>, std::int32_t>, std::vector<const ClusterTopic*>>
      alike;
  for (auto& [topic, subscribers] : subscribed_topics(members, order)) {
    if (topic->partitions() > 0) {
      alike[{std::move(subscribers), topic->partitions()}].push_back(topic);
    }
  }
  std::vector<Assignment> assignments(members.size());
  for (auto& [key, topics] : alike) {
    const auto& subscribers = key.first;
    Division division(members, subscribers, topics);
    const auto owners = division.divide();
    for (std::size_t p = 0; p < owners.size(); ++p) {
      for (const ClusterTopic* topic : topics) {
        assignments[subscribers[owners[p]]][topic->id].push_back(static_cast<std::int32_t>(p));
      }
    }
  }
  return assignments;
}

}  // namespace millrace::consumer_groups
