#include "kernel/broker/config_changes.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include <millrace/utf8.h>

#include "kernel/cluster/balance.h"
#include "kernel/partition/topic_config.h"

namespace millrace::kernel {

namespace {

using Changed = std::expected<ConfigMap, ConfigRefusal>;

std::unexpected<ConfigRefusal> refuse(ErrorCode error, std::string message) {
  return std::unexpected(ConfigRefusal{error, std::move(message)});
}

bool known(ConfigOperation operation) {
  return operation >= ConfigOperation::set && operation <= ConfigOperation::subtract;
}

// What is wrong with a request, whatever the settings are.
std::optional<ConfigRefusal> check_form(const ConfigAlteration& alteration) {
  std::set<std::string_view> names;
  std::string without_value;
  for (const auto& change : alteration.changes) {
    if (!known(change.operation)) {
      return ConfigRefusal{ErrorCode::invalid_request,
                           "Unknown operation for " + shown(change.name)};
    }
    if (!names.insert(change.name).second) {
      return ConfigRefusal{ErrorCode::invalid_request, "Error due to duplicate config keys"};
    }
    if (change.operation == ConfigOperation::remove || change.value) continue;
    without_value += (without_value.empty() ? "" : ", ") + shown(change.name);
  }
  if (without_value.empty()) return std::nullopt;
  return ConfigRefusal{ErrorCode::invalid_request,
                       "Null value not supported for : " + without_value};
}

std::string appended(std::string_view list, std::string_view more) {
  auto values = list_of(list);
  for (const auto value : list_of(more)) {
    if (!std::ranges::count(values, value)) values.push_back(value);
  }
  return list_text(values);
}

std::string subtracted(std::string_view list, std::string_view less) {
  auto values = list_of(list);
  for (const auto value : list_of(less)) std::erase(values, value);
  return list_text(values);
}

// Does one change to `configs`. A list that is not set begins as `inherited`.
std::optional<ConfigRefusal> apply(const ConfigChange& change, const ConfigOption& option,
                                   const std::string& inherited, ConfigMap& configs) {
  auto value = *change.value;
  if (change.operation != ConfigOperation::set) {
    const bool append = change.operation == ConfigOperation::append;
    if (!option.has(config_list)) {
      return ConfigRefusal{ErrorCode::invalid_config,
                           std::string("Can't ") + (append ? "APPEND" : "SUBTRACT") + " to key " +
                               change.name + " because its type is not LIST."};
    }
    const auto own = configs.find(change.name);
    const auto& before = own == configs.end() ? inherited : own->second;
    value = append ? appended(before, value) : subtracted(before, value);
  }
  if (const auto checked = check_value(option, value); !checked) {
    return ConfigRefusal{ErrorCode::invalid_config, checked.error().detail};
  }
  configs[change.name] = std::move(value);
  return std::nullopt;
}

// Kafka's rule: within what the broker allows.
std::optional<ConfigRefusal> check_bounds(const GroupOption& option, std::string_view value,
                                          const ConfigSources& sources) {
  if (!option.minimum) return std::nullopt;
  const auto least = sources.number(option.minimum);
  const auto most = sources.number(option.maximum);
  const auto number = integer_of(value);
  if (number && *number >= least && *number <= most) return std::nullopt;
  return ConfigRefusal{ErrorCode::invalid_config,
                       std::string(option.option.name) + " must be in the range " +
                           std::to_string(least) + " to " + std::to_string(most) + " inclusive."};
}

std::int64_t effective_number(std::string_view name, const ConfigMap& configs,
                              const ConfigSources& sources) {
  const auto own = configs.find(std::string(name));
  const auto number = own == configs.end() ? std::nullopt : integer_of(own->second);
  return number ? *number : sources.number(find_group_option(name)->broker);
}

// The changes that set something are `one`'s: it refuses one, or does it to the configs that it is
// given.
template <class One>
Changed altered(const ConfigAlteration& alteration, const ConfigMap& current, One one) {
  if (auto refusal = check_form(alteration)) return std::unexpected(*std::move(refusal));
  auto configs = alteration.replace_all ? ConfigMap{} : current;
  for (const auto& change : alteration.changes) {
    if (change.operation == ConfigOperation::remove) {
      configs.erase(change.name);
      continue;
    }
    if (std::optional<ConfigRefusal> refusal = one(change, configs)) {
      return std::unexpected(*std::move(refusal));
    }
  }
  return configs;
}

ConfigRefusal unknown_name(std::string_view of, const std::string& name) {
  return {ErrorCode::invalid_config, "Unknown " + std::string(of) + " config name: " + shown(name)};
}

ConfigRefusal of_all_brokers(const std::string& name) {
  return {ErrorCode::invalid_config,
          name +
              " holds for all brokers and cannot be set for one: set it for all (kafka-configs "
              "--entity-type brokers --entity-default, millrace config set --broker-default)."};
}

std::optional<ConfigRefusal> check_drained(const ConfigMap& before, const ConfigMap& after,
                                           const ClusterState& cluster) {
  const auto drained_by = [](const ConfigMap& configs) {
    const auto found = configs.find(balance_settings::drain_brokers);
    return found == configs.end() ? std::set<std::int32_t>() : brokers_in(found->second);
  };
  const auto was = drained_by(before);
  std::set<std::int32_t> known;
  std::string names;
  for (const auto broker : drained_by(after)) {
    if (was.contains(broker)) continue;
    if (known.empty()) known = known_brokers(cluster);
    if (known.contains(broker)) continue;
    for (const auto one : known) names += (names.empty() ? "" : ", ") + std::to_string(one);
    return ConfigRefusal{ErrorCode::invalid_config,
                         "Invalid value for configuration cluster.drain.brokers: there is no "
                         "broker " +
                             std::to_string(broker) + "; there are " + names + "."};
  }
  return std::nullopt;
}

}  // namespace

Changed changed_topic_configs(const ConfigAlteration& alteration, const ConfigMap& current,
                              const ConfigSources& sources) {
  auto configs =
      altered(alteration, current,
              [&](const ConfigChange& change, ConfigMap& to) -> std::optional<ConfigRefusal> {
                const auto* option = find_topic_option(change.name);
                if (!option) return unknown_name("topic", change.name);
                return apply(change, *option, effective_value(*option, sources.merged(), {}), to);
              });
  if (!configs) return configs;
  const auto together = check_together(TopicConfig::load(sources.merged(), *configs));
  if (!together) return refuse(ErrorCode::invalid_config, together.error().detail);
  return configs;
}

Changed changed_broker_configs(const ConfigAlteration& alteration, const ConfigMap& current,
                               const ConfigSources& sources, const ClusterState& cluster) {
  std::string fixed;
  const bool of_one = !alteration.resource.name.empty();
  auto configs = altered(
      alteration, current,
      [&](const ConfigChange& change, ConfigMap& to) -> std::optional<ConfigRefusal> {
        const auto* option = find_broker_option(change.name);
        if (!option) return unknown_name("broker", change.name);
        if (!option->has(config_dynamic)) {
          fixed += (fixed.empty() ? "" : ", ") + change.name;
          return std::nullopt;
        }
        if (of_one && option->has(config_of_all)) return of_all_brokers(change.name);
        const auto set = sources.merged().find(change.name);
        const auto* fallback = option->option.default_value ? option->option.default_value : "";
        const auto inherited = set == sources.merged().end() ? std::string(fallback) : set->second;
        return apply(change, *option, inherited, to);
      });
  if (!configs) return configs;
  if (!fixed.empty()) {
    return refuse(ErrorCode::invalid_request,
                  "Cannot update these configs dynamically: [" + fixed + "]");
  }
  if (auto refusal = check_drained(current, *configs, cluster)) {
    return std::unexpected(*std::move(refusal));
  }
  return configs;
}

Changed changed_group_configs(const ConfigAlteration& alteration, const ConfigMap& current,
                              const ConfigSources& sources) {
  auto configs =
      altered(alteration, current,
              [&](const ConfigChange& change, ConfigMap& to) -> std::optional<ConfigRefusal> {
                const auto* option = find_group_option(change.name);
                if (!option) return unknown_name("group", change.name);
                if (auto refusal = apply(change, *option, {}, to)) return refusal;
                return check_bounds(*option, to[change.name], sources);
              });
  if (!configs) return configs;
  const auto session = effective_number(group_session_timeout, *configs, sources);
  if (session > effective_number(group_heartbeat_interval, *configs, sources)) return configs;
  return refuse(ErrorCode::invalid_config, std::string(group_session_timeout) +
                                               " must be greater than " +
                                               std::string(group_heartbeat_interval));
}

}  // namespace millrace::kernel
