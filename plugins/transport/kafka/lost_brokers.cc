#include "lost_brokers.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <set>

namespace millrace::kafka_transport {
namespace {

/// Whoever follows it tries again within a second.
constexpr Duration lost_for = std::chrono::seconds(5);
/// Longer than sessions usually are: another would lead by then.
constexpr Duration looked_for = std::chrono::seconds(20);
/// Longer than the pauses of clients that look for a leader.
constexpr Duration told_for = std::chrono::seconds(2);
constexpr std::size_t told_min = 64;
constexpr Duration pause_min = std::chrono::milliseconds(25);
constexpr Duration pause_max = std::chrono::seconds(1);
/// So many look after the shortest pause.
constexpr std::int64_t waiting_at_once = 16;

std::size_t leaders_in(const MetadataAnswer& answer) {
  std::size_t hash = 0;
  const auto mix = [&hash](std::size_t value) { hash = hash * 1'000'003 + value; };
  for (const auto& topic : answer.topics) {
    mix(std::hash<std::string>()(topic.topic.name));
    for (const auto& partition : topic.partitions) {
      mix(static_cast<std::size_t>(partition.leader));
      mix(static_cast<std::size_t>(partition.leader_epoch.value));
    }
  }
  return hash;
}

}  // namespace

void LostBrokers::note(const Address& broker, bool reached, MonoTime now) {
  if (reached && !any()) return;
  const std::scoped_lock lock(guard_);
  if (reached) {
    lost_.erase(to_string(broker));
  } else {
    lost_.try_emplace(to_string(broker), now, now).first->second.tried_at = now;
  }
  forget_lost(now);
}

bool LostBrokers::leads(const MetadataAnswer& answer, MonoTime now) {
  const std::scoped_lock lock(guard_);
  forget_lost(now);
  std::set<std::int32_t> lost;
  for (const auto& broker : answer.brokers) {
    const auto found = lost_.find(to_string(broker.address));
    if (found != lost_.end() && now - found->second.since < looked_for) lost.insert(broker.id);
  }
  if (lost.empty()) return false;
  return std::ranges::any_of(answer.topics, [&lost](const TopicInfo& topic) {
    return std::ranges::any_of(topic.partitions, [&lost](const PartitionInfo& partition) {
      return lost.contains(partition.leader);
    });
  });
}

bool LostBrokers::told_before(const Address& peer, const MetadataAnswer& answer, MonoTime now) {
  const auto leaders = leaders_in(answer);
  const auto is_old = [now](const auto& entry) { return now - entry.second.at >= told_for; };
  const std::scoped_lock lock(guard_);
  if (told_.size() >= told_max_) {
    std::erase_if(told_, is_old);
    told_max_ = std::max(2 * told_.size(), told_min);
  }
  const auto [told, first] = told_.try_emplace(to_string(peer));
  const bool before = !first && !is_old(*told) && told->second.leaders == leaders;
  told->second = {leaders, now};
  return before;
}

Duration LostBrokers::pause() const noexcept {
  return std::clamp(pause_min * waiting_.load() / waiting_at_once, pause_min, pause_max);
}

void LostBrokers::forget_lost(MonoTime now) {
  std::erase_if(lost_,
                [now](const auto& entry) { return now - entry.second.tried_at >= lost_for; });
  if (lost_.empty()) told_.clear();
  any_.store(!lost_.empty(), std::memory_order_relaxed);
}

}  // namespace millrace::kafka_transport
