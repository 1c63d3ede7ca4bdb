#include "kernel/daemon/setting_problems.h"

#include <algorithm>

#include "kernel/config/document.h"
#include "kernel/config/text.h"
#include "kernel/partition/topic_config.h"

namespace millrace::kernel {

namespace {

constexpr const char* min_insync = "min.insync.replicas";

ConfigPlace place_of_default(const Plan& plan, std::string_view name) {
  const auto key = concat("defaults.", quoted_key(name));
  const auto fact = std::ranges::find(plan.settings, key, &SettingFact::key);
  if (fact == plan.settings.end()) return {};
  return {.source = fact->source};
}

ConfigErrors problems_of_defaults(const Plan& plan) {
  ConfigErrors problems;
  for (const auto& [name, value] : plan.defaults) {
    for (auto& problem : broker_config_problems({{name, value}})) {
      problems.push_back({place_of_default(plan, name),
                          concat("defaults.", quoted_key(name), ": ", problem.detail)});
    }
  }
  if (!problems.empty()) return problems;
  const auto topic = TopicConfig::parse(plan.defaults, {});
  if (topic) return problems;
  // Two that contradict each other: without either it would be right.
  ConfigError conflict{{}, "[defaults]: " + topic.error().detail};
  for (const auto& [name, value] : plan.defaults) {
    auto others = plan.defaults;
    others.erase(name);
    if (!TopicConfig::parse(others, {})) continue;
    conflict.place = place_of_default(plan, name);
    break;
  }
  problems.push_back(std::move(conflict));
  return problems;
}

ConfigPlace place_in(const TopicSettings& topic, const std::string& name) {
  const auto place = topic.places.find(name);
  return place == topic.places.end() ? topic.place : place->second;
}

std::int64_t replicas_of(const TopicSettings& topic, const Plan& plan) {
  if (topic.replication_factor > 0) return topic.replication_factor;
  const auto inherited = plan.defaults.find("default.replication.factor");
  if (inherited == plan.defaults.end()) return 1;
  return integer_of(inherited->second).value_or(1);
}

void add_problems(const TopicSettings& topic, const Plan& plan, ConfigErrors& problems) {
  const auto path = concat("topic.", quoted_key(topic.name));
  const auto before = problems.size();
  for (const auto& [name, value] : topic.configs) {
    for (auto& problem : topic_config_problems({{name, value}})) {
      problems.push_back(
          {place_in(topic, name), concat(path, ".", quoted_key(name), ": ", problem.detail)});
    }
  }
  if (problems.size() > before) return;
  const auto config = TopicConfig::parse(plan.defaults, topic.configs);
  if (!config) {
    problems.push_back({topic.place, concat("[", path, "]: ", config.error().detail)});
    return;
  }
  const auto replicas = replicas_of(topic, plan);
  if (config->min_insync_replicas > replicas) {
    problems.push_back({place_in(topic, min_insync),
                        concat(path, ".\"", min_insync, "\": ", config->min_insync_replicas,
                               " in-sync replicas of ", replicas,
                               ": no record with acks=all would be accepted; raise "
                               "replication-factor or lower this")});
  }
}

}  // namespace

ConfigErrors setting_problems(const Plan& plan) {
  auto problems = problems_of_defaults(plan);
  if (!problems.empty()) return problems;
  for (const auto& topic : plan.topics) add_problems(topic, plan, problems);
  return problems;
}

}  // namespace millrace::kernel
