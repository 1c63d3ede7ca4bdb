#include "kernel/cluster/cluster_state.h"

#include "kernel/config/changelog_name.h"

namespace millrace::kernel {

bool is_internal_topic(std::string_view name) noexcept {
  return name == "__consumer_offsets" || name == "__transaction_state" ||
         name == "__share_group_state";
}

Address address_of(const BrokerState& broker, std::string_view listener) {
  auto found = broker.endpoints.find(listener);
  if (found == broker.endpoints.end()) found = broker.endpoints.begin();
  return found == broker.endpoints.end() ? Address{} : found->second;
}

namespace {

constexpr std::string_view of_group = "group ";

}  // namespace

std::string config_key_of_group(std::string_view group) {
  return std::string(of_group) + std::string(group);
}

std::optional<std::string_view> group_of_config_key(std::string_view key) noexcept {
  if (!key.starts_with(of_group)) return std::nullopt;
  return key.substr(of_group.size());
}

const TopicState* ClusterState::find(std::string_view name) const {
  const auto found = topics.find(name);
  return found == topics.end() ? nullptr : found->second.get();
}

const TopicState* ClusterState::find(const TopicName& topic) const {
  if (!topic.name.empty()) return find(topic.name);
  const auto found = names.find(topic.id);
  return found == names.end() ? nullptr : find(found->second);
}

bool ClusterState::is_own(std::string_view name) const noexcept {
  if (is_changelog(name)) return true;
  if (own_topics.empty()) return false;
  return own_topics.contains(name) || own_topics.contains(name.substr(0, name.rfind('.') + 1));
}

void ClusterState::put(TopicState topic) {
  names[topic.id] = topic.name;
  topic.own = is_own(topic.name);
  auto name = topic.name;
  topics[std::move(name)] = std::make_shared<const TopicState>(std::move(topic));
}

void ClusterState::remove(const std::string& name) {
  const auto found = topics.find(name);
  if (found == topics.end()) return;
  names.erase(found->second->id);
  topics.erase(found);
}

}  // namespace millrace::kernel
