#include "kernel/streams/broker_view.h"

#include <algorithm>
#include <utility>

#include "kernel/broker/config_sources.h"

namespace millrace::kernel {

namespace {

bool same_replicas(const TopicState& a, const TopicState& b) {
  return std::ranges::equal(a.partitions, b.partitions, {}, &PartitionState::replicas,
                            &PartitionState::replicas);
}

bool same_topics(const ClusterState& a, const ClusterState& b) {
  return std::ranges::equal(a.topics, b.topics, [](const auto& x, const auto& y) {
    if (x.second == y.second) return true;
    return x.second->id == y.second->id && x.first == y.first &&
           same_replicas(*x.second, *y.second);
  });
}

bool same_racks(const ClusterState& a, const ClusterState& b) {
  return std::ranges::equal(a.brokers, b.brokers, [](const auto& x, const auto& y) {
    return x.first == y.first && x.second.rack == y.second.rack;
  });
}

}  // namespace

const ClusterState* BrokerView::look() const {
  const auto& now = shard_.cluster();
  if (now == seen_) return seen_.get();
  const auto before = std::exchange(seen_, now);
  if (before && same_topics(*before, *now) && same_racks(*before, *now)) {
    // Some are described anew, because their settings have changed; those that went are forgotten.
    std::erase_if(described_, [&now](const auto& entry) {
      const auto found = now->topics.find(entry.second.name);
      return found == now->topics.end() || found->second.get() != entry.first;
    });
  } else {
    described_.clear();
    ++version_;
  }
  return seen_.get();
}

std::int64_t BrokerView::version() const noexcept {
  look();
  return version_;
}

const ClusterTopic* BrokerView::describe(const TopicState* topic) const {
  if (!topic) return nullptr;
  const auto [found, added] = described_.try_emplace(topic);
  auto& described = found->second;
  if (!added) return &described;
  described.name = topic->name;
  described.id = topic->id;
  for (const auto& partition : topic->partitions) {
    auto& racks = described.racks.emplace_back();
    for (const auto replica : partition.replicas) {
      const auto broker = seen_->brokers.find(replica);
      if (broker == seen_->brokers.end() || broker->second.rack.empty()) continue;
      racks.push_back(broker->second.rack);
    }
  }
  return &described;
}

const ClusterTopic* BrokerView::find(std::string_view name) const {
  const auto* cluster = look();
  return cluster ? describe(cluster->find(name)) : nullptr;
}

const ClusterTopic* BrokerView::find(const Uuid& id) const {
  const auto* cluster = look();
  return cluster ? describe(cluster->find(TopicName{{}, id})) : nullptr;
}

std::vector<std::string_view> BrokerView::names() const {
  std::vector<std::string_view> names;
  const auto* cluster = look();
  if (!cluster) return names;
  names.reserve(cluster->topics.size());
  for (const auto& [name, topic] : cluster->topics) names.emplace_back(name);
  return names;
}

namespace {

// "groups/GROUP/NAME"
constexpr std::string_view of_groups = "groups/";

}  // namespace

// Asked for with every heartbeat: most clusters have none.
std::string BrokerView::group_setting(std::string_view name) const {
  const auto& cluster = shard_.cluster();
  if (!cluster) return {};
  if (groups_of_ != cluster) {
    groups_of_ = cluster;
    const auto first = cluster->broker_configs.lower_bound(config_key_of_group({}));
    groups_have_own_ =
        first != cluster->broker_configs.end() && group_of_config_key(first->first).has_value();
  }
  if (!groups_have_own_) return {};
  const auto slash = name.rfind('/');
  if (slash < of_groups.size()) return {};
  const auto group = name.substr(of_groups.size(), slash - of_groups.size());
  const auto own = cluster->broker_configs.find(config_key_of_group(group));
  if (own == cluster->broker_configs.end()) return {};
  const auto found = own->second.find(std::string(name.substr(slash + 1)));
  return found == own->second.end() ? std::string() : found->second;
}

std::string BrokerView::setting(std::string_view name) const {
  if (name.starts_with(of_groups)) return group_setting(name);
  if (!settings_known_ || settings_of_ != shard_.cluster()) {
    settings_known_ = true;
    settings_of_ = shard_.cluster();
    const ConfigSources sources(config_, settings_of_ ? *settings_of_ : ClusterState());
    settings_.clear();
    for (auto& entry : sources.describe_broker()) {
      if (entry.value) settings_.emplace(std::move(entry.name), *std::move(entry.value));
    }
  }
  const auto found = settings_.find(name);
  return found == settings_.end() ? std::string() : found->second;
}

}  // namespace millrace::kernel
