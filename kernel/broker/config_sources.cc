#include "kernel/broker/config_sources.h"

#include <algorithm>
#include <initializer_list>
#include <utility>

#include "kernel/partition/topic_config.h"

namespace millrace::kernel {

namespace {

ConfigMap found(const ClusterState& cluster, std::string_view broker) {
  const auto at = cluster.broker_configs.find(broker);
  return at == cluster.broker_configs.end() ? ConfigMap{} : at->second;
}

// `[defaults]` also takes a topic's names; what they mean is the broker's strongest name for it.
ConfigMap under_broker_names(ConfigMap defaults) {
  for (const auto& topic : topic_options()) {
    const auto* name = topic.synonyms[0].name;
    if (!name || std::string_view(name) == topic.option.name) continue;
    auto node = defaults.extract(std::string(topic.option.name));
    if (!node.empty()) defaults[name] = std::move(node.mapped());
  }
  return defaults;
}

std::string listed(const BrokerState& broker) {
  std::string text;
  for (const auto& [listener, address] : broker.endpoints) {
    if (!text.empty()) text += ',';
    text.append(listener).append("://").append(to_string(address));
  }
  return text;
}

ConfigMap facts_of(const BrokerConfig& config, const ClusterState& cluster) {
  ConfigMap facts{{"broker.id", std::to_string(config.id)}, {"node.id", std::to_string(config.id)}};
  if (!config.rack.empty()) facts.emplace("broker.rack", config.rack);
  if (!config.data.empty()) facts.emplace("log.dirs", config.data);
  if (const auto self = cluster.brokers.find(config.id); self != cluster.brokers.end()) {
    facts.emplace("advertised.listeners", listed(self->second));
    facts.emplace("listeners", listed(self->second));
  }
  return facts;
}

ConfigMap merge(std::initializer_list<const ConfigMap*> strongest_first) {
  ConfigMap merged;
  for (const auto* map : strongest_first) merged.insert(map->begin(), map->end());
  return merged;
}

ConfigEntry described(const ConfigOption& option) {
  return {.name = option.option.name,
          .value = {},
          .type = type_of(option),
          .sensitive = (option.option.flags & MILLRACE_OPTION_SECRET) != 0,
          .synonyms = {},
          .documentation = option.option.help};
}

// Something stored under a name that is not known here.
ConfigEntry unknown_entry(const std::string& name, const std::string& value, ConfigSource source) {
  return {.name = name,
          .value = value,
          .source = source,
          .synonyms = {{name, value, source}},
          .documentation = {}};
}

// The default of a weaker name is no choice of anybody: it is not told.
void drop_bare_default(std::vector<ConfigSynonym>& synonyms, std::string_view name) {
  if (!synonyms.empty() && synonyms.front().source == ConfigSource::fallback &&
      synonyms.front().name != name) {
    synonyms.clear();
  }
}

std::vector<std::string_view> names_of(const TopicOption& topic) {
  std::vector<std::string_view> names;
  for (const auto& synonym : topic.synonyms) {
    if (synonym.name) names.emplace_back(synonym.name);
  }
  return names;
}

std::vector<std::string_view> names_of(const BrokerOption& broker) {
  std::vector<std::string_view> names;
  for (const auto* at = &broker; at; at = at->weaker ? find_broker_option(at->weaker) : nullptr) {
    names.emplace_back(at->option.name);
  }
  return names;
}

void sort_by_name(std::vector<ConfigEntry>& entries) {
  std::ranges::sort(entries, {}, &ConfigEntry::name);
}

}  // namespace

ConfigSources::ConfigSources(const BrokerConfig& config, const ClusterState& cluster)
    : this_broker_(found(cluster, std::to_string(config.id))),
      all_brokers_(found(cluster, all_brokers_key)) {
  const auto defaults = under_broker_names(config.defaults_of(&cluster));
  const auto facts = facts_of(config, cluster);
  merged_ = merge({&this_broker_, &all_brokers_, &defaults});
  file_ = merge({&facts, &defaults});
}

// Source by source, and in each the stronger name first; at the end the defaults.
std::vector<ConfigSynonym> ConfigSources::synonyms_of(
    const std::vector<std::string_view>& names) const {
  std::vector<ConfigSynonym> synonyms;
  const std::pair<const ConfigMap*, ConfigSource> sources[] = {
      {&this_broker_, ConfigSource::broker},
      {&all_brokers_, ConfigSource::all_brokers},
      {&file_, ConfigSource::static_broker}};
  for (const auto& [map, source] : sources) {
    for (const auto name : names) {
      const auto at = map->find(std::string(name));
      if (at == map->end()) continue;
      synonyms.push_back({at->first, normal_value(*find_broker_option(name), at->second), source});
    }
  }
  for (const auto name : names) {
    const auto* fallback = find_broker_option(name)->option.default_value;
    if (fallback) synonyms.push_back({std::string(name), fallback, ConfigSource::fallback});
  }
  return synonyms;
}

ConfigEntry ConfigSources::topic_entry(const TopicOption& topic, const ConfigMap& overrides) const {
  auto entry = described(topic);
  entry.synonyms = synonyms_of(names_of(topic));
  drop_bare_default(entry.synonyms, topic.synonyms[0].name ? topic.synonyms[0].name : "");
  entry.value = effective_value(topic, merged_, overrides);
  if (const auto own = overrides.find(entry.name); own != overrides.end()) {
    entry.value = normal_value(topic, own->second);
    ConfigSynonym first{entry.name, entry.value, ConfigSource::topic};
    entry.synonyms.insert(entry.synonyms.begin(), std::move(first));
  } else if (names_of(topic).empty() && file_.contains(entry.name)) {
    entry.synonyms.push_back({entry.name, file_.at(entry.name), ConfigSource::static_broker});
  }
  if (!entry.synonyms.empty()) entry.source = entry.synonyms.front().source;
  return entry;
}

ConfigEntry ConfigSources::broker_entry(const BrokerOption& broker) const {
  auto entry = described(broker);
  entry.read_only = !broker.has(config_dynamic);
  entry.synonyms = synonyms_of(names_of(broker));
  drop_bare_default(entry.synonyms, entry.name);
  if (!entry.synonyms.empty() && entry.synonyms.front().name == entry.name) {
    entry.source = entry.synonyms.front().source;
    entry.value = entry.synonyms.front().value;
  }
  return entry;
}

std::vector<ConfigEntry> ConfigSources::describe_topic(const ConfigMap& overrides) const {
  std::vector<ConfigEntry> entries;
  for (const auto& topic : topic_options()) {
    auto entry = topic_entry(topic, overrides);
    if (topic.has(config_only_when_set) && entry.source == ConfigSource::fallback) continue;
    entries.push_back(std::move(entry));
  }
  for (const auto& [name, value] : overrides) {
    if (!find_topic_option(name)) {
      entries.push_back(unknown_entry(name, value, ConfigSource::topic));
    }
  }
  sort_by_name(entries);
  return entries;
}

std::vector<ConfigEntry> ConfigSources::describe_broker() const {
  std::vector<ConfigEntry> entries;
  for (const auto& broker : broker_config_options()) {
    auto entry = broker_entry(broker);
    if (broker.has(config_only_when_set) && entry.source == ConfigSource::fallback) continue;
    entries.push_back(std::move(entry));
  }
  for (const auto& [name, value] : this_broker_) {
    if (!find_broker_option(name)) {
      entries.push_back(unknown_entry(name, value, ConfigSource::broker));
    }
  }
  sort_by_name(entries);
  return entries;
}

ConfigEntry ConfigSources::group_entry(const GroupOption& group, const ConfigMap& overrides) const {
  auto entry = described(group);
  entry.synonyms = synonyms_of({group.broker});
  if (const auto own = overrides.find(entry.name); own != overrides.end()) {
    ConfigSynonym first{entry.name, normal_value(group, own->second), group_config_source};
    entry.synonyms.insert(entry.synonyms.begin(), std::move(first));
  }
  entry.value = entry.synonyms.front().value;
  entry.source = entry.synonyms.front().source;
  return entry;
}

std::vector<ConfigEntry> ConfigSources::describe_group(const ConfigMap& overrides) const {
  std::vector<ConfigEntry> entries;
  for (const auto& group : group_options()) entries.push_back(group_entry(group, overrides));
  for (const auto& [name, value] : overrides) {
    if (!find_group_option(name)) {
      entries.push_back(unknown_entry(name, value, group_config_source));
    }
  }
  sort_by_name(entries);
  return entries;
}

std::int64_t ConfigSources::number(std::string_view name) const {
  const auto* option = find_broker_option(name);
  const auto set = merged_.find(std::string(name));
  const auto own = set == merged_.end() ? std::nullopt : integer_of(set->second);
  return own ? *own : *integer_of(option->option.default_value);
}

std::vector<ConfigEntry> ConfigSources::describe_all_brokers() const {
  std::vector<ConfigEntry> entries;
  for (const auto& [name, value] : all_brokers_) {
    auto entry = unknown_entry(name, value, ConfigSource::all_brokers);
    if (const auto* known = find_broker_option(name)) {
      entry.type = type_of(*known);
      entry.documentation = known->option.help;
    }
    entries.push_back(std::move(entry));
  }
  return entries;
}

}  // namespace millrace::kernel
