#include "offsets.h"

#include <algorithm>
#include <utility>

namespace millrace::consumer_groups {

const Committed* Offsets::find(std::string_view topic, std::int32_t partition) const {
  const auto of_topic = topics_.find(topic);
  if (of_topic == topics_.end()) return nullptr;
  const auto found = of_topic->second.find(partition);
  return found == of_topic->second.end() ? nullptr : &found->second;
}

int Offsets::put(std::string_view topic, std::int32_t partition, Committed committed) {
  auto of_topic = topics_.find(topic);
  if (of_topic == topics_.end()) of_topic = topics_.emplace(topic, Topic{}).first;
  return of_topic->second.insert_or_assign(partition, std::move(committed)).second ? 1 : 0;
}

int Offsets::erase(std::string_view topic, std::int32_t partition) {
  // What was deleted is not brought back by a transaction that began before.
  for (auto at = pending_.begin(); at != pending_.end();) {
    at->second.erase({std::string(topic), partition});
    at = at->second.empty() ? pending_.erase(at) : std::next(at);
  }
  const auto of_topic = topics_.find(topic);
  if (of_topic == topics_.end()) return 0;
  const auto erased = of_topic->second.erase(partition);
  if (of_topic->second.empty()) topics_.erase(of_topic);
  return -static_cast<int>(erased);
}

bool Offsets::is_pending(std::string_view topic, std::int32_t partition) const {
  if (pending_.empty()) return false;
  const Place place{std::string(topic), partition};
  return std::ranges::any_of(pending_, [&](const auto& of) { return of.second.contains(place); });
}

void Offsets::put_pending(std::int64_t producer_id, std::string_view topic, std::int32_t partition,
                          Committed committed) {
  pending_[producer_id].insert_or_assign({std::string(topic), partition}, std::move(committed));
}

std::map<Offsets::Place, Committed> Offsets::take_pending(std::int64_t producer_id) {
  auto taken = pending_.extract(producer_id);
  if (taken.empty()) return {};
  return std::move(taken.mapped());
}

}  // namespace millrace::consumer_groups
