#include "topics_in_use.h"

namespace millrace::consumer_groups {

void TopicsInUse::count(std::string_view topic, int partitions) {
  if (partitions == 0) return;
  auto found = topics_.find(topic);
  if (found == topics_.end()) found = topics_.emplace(topic, Use{}).first;
  found->second.partitions += static_cast<std::size_t>(partitions);
  if (found->second.partitions == 0) topics_.erase(found);
}

void TopicsInUse::saw(std::string_view topic, const Uuid& id) {
  auto found = topics_.find(topic);
  if (found == topics_.end()) found = topics_.emplace(topic, Use{}).first;
  if (found->second.id.is_none()) found->second.id = id;
}

std::set<std::string, std::less<>> TopicsInUse::look(const ClusterView& cluster) {
  std::set<std::string, std::less<>> gone;
  for (auto at = topics_.begin(); at != topics_.end();) {
    auto& [name, use] = *at;
    const auto* topic = cluster.find(name);
    const auto id = topic ? topic->id : Uuid{};
    if (!use.id.is_none() && use.id != id) gone.insert(name);
    use.id = id;
    // Of a commit that was not written.
    at = use.partitions == 0 ? topics_.erase(at) : std::next(at);
  }
  return gone;
}

}  // namespace millrace::consumer_groups
