#include <millrace/testing/aggregate_driver.h>

namespace millrace::testing {

Uuid DriverCluster::put(const std::string& name, std::int32_t partitions) {
  return put(name, std::vector<std::vector<std::string>>(static_cast<std::size_t>(partitions)));
}

Uuid DriverCluster::put(const std::string& name, std::vector<std::vector<std::string>> racks) {
  ++version_;
  auto& topic = topics_[name];
  if (topic.id.is_none()) {
    topic.name = name;
    ++ids_;
    for (std::size_t at = 0; at < sizeof ids_; ++at) {
      topic.id.bytes[15 - at] = static_cast<std::uint8_t>(ids_ >> (8 * at));
    }
  }
  topic.racks = std::move(racks);
  return topic.id;
}

void DriverCluster::remove(std::string_view name) {
  const auto found = topics_.find(name);
  if (found == topics_.end()) return;
  topics_.erase(found);
  ++version_;
}

const ClusterTopic* DriverCluster::find(std::string_view name) const {
  const auto found = topics_.find(name);
  return found == topics_.end() ? nullptr : &found->second;
}

const ClusterTopic* DriverCluster::find(const Uuid& id) const {
  for (const auto& [name, topic] : topics_) {
    if (topic.id == id) return &topic;
  }
  return nullptr;
}

std::vector<std::string_view> DriverCluster::names() const {
  std::vector<std::string_view> all;
  for (const auto& [name, topic] : topics_) all.push_back(name);
  return all;
}

}  // namespace millrace::testing
