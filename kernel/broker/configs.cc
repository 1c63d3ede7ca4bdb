#include "kernel/broker/configs.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <map>
#include <optional>
#include <utility>

#include <millrace/groups.h>
#include <millrace/utf8.h>

#include "kernel/broker/logger_configs.h"
#include "kernel/broker/session.h"
#include "kernel/cluster/topics.h"
#include "kernel/cluster/znodes.h"
#include "kernel/partition/topic_config.h"

namespace millrace::kernel {

namespace {

ConfigRefusal invalid_request(std::string message) {
  return {ErrorCode::invalid_request, std::move(message)};
}

ConfigRefusal no_settings(ConfigResourceType type) {
  switch (type) {
    case ConfigResourceType::client_metrics:
      return invalid_request("Client metrics are not collected; they have no settings.");
    default:
      return invalid_request("Unknown resource type " + std::to_string(static_cast<int>(type)));
  }
}

// Why `name` is not this broker. `also` says what else would have been right.
std::optional<ConfigRefusal> check_broker(std::string_view name, std::int32_t self,
                                          std::string_view also) {
  std::int32_t id = -1;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), id);
  if (error != std::errc{} || end != name.data() + name.size()) {
    return invalid_request("Broker id must be an integer, but it is: " + shown(name));
  }
  if (id == self) return std::nullopt;
  return invalid_request("Unexpected broker id, expected " + std::to_string(self) +
                         std::string(also) + ", but received " + shown(name));
}

void keep_named(std::vector<ConfigEntry>& entries, const std::vector<std::string>& names) {
  if (names.empty()) return;
  std::erase_if(entries, [&names](const ConfigEntry& entry) {
    return std::ranges::find(names, entry.name) == names.end();
  });
}

constexpr Duration in_effect_time_max = std::chrono::seconds(10);
constexpr int tries_max = 5;

// The number that `config_change_0000000012` carries.
std::int64_t number_in(std::string_view mark) {
  const auto digits = mark.substr(mark.rfind('_') + 1);
  std::int64_t number = -1;
  std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return number;
}

}  // namespace

Task<std::vector<ConfigsDescribed>> KernelConfigs::describe(Session& session,
                                                            std::vector<ConfigQuery> queries) {
  MR_CO_TRY(const auto cluster, co_await kernel_session(session).shard().joined());
  std::vector<ConfigsDescribed> answers;
  answers.reserve(queries.size());
  for (const auto& query : queries) answers.push_back(describe_one(query, *cluster));
  co_return std::move(answers);
}

ConfigsDescribed KernelConfigs::describe_one(const ConfigQuery& query,
                                             const ClusterState& cluster) const {
  const auto& name = query.resource.name;
  ConfigsDescribed answer{.resource = query.resource, .message = {}, .entries = {}};
  const auto refuse = [&answer](ConfigRefusal refusal) {
    answer.error = refusal.error;
    answer.message = std::move(refusal.message);
    return answer;
  };
  const ConfigSources sources(config_, cluster);
  if (query.resource.type == ConfigResourceType::topic) {
    if (const auto bad = check_topic_name(name)) return refuse({bad->error, bad->message});
    const auto* topic = cluster.find(name);
    if (!topic) return refuse({ErrorCode::unknown_topic_or_partition, {}});
    answer.entries = sources.describe_topic(topic->configs);
  } else if (query.resource.type == ConfigResourceType::broker_logger) {
    if (auto other = check_logger(name)) return refuse(*other);
    answer.entries = describe_loggers(*broker_.service<Operations>());
  } else if (query.resource.type == ConfigResourceType::group) {
    if (auto bad = check_group(name)) return refuse(*bad);
    const auto own = cluster.broker_configs.find(config_key_of_group(name));
    answer.entries =
        sources.describe_group(own == cluster.broker_configs.end() ? ConfigMap() : own->second);
  } else if (query.resource.type != ConfigResourceType::broker) {
    return refuse(no_settings(query.resource.type));
  } else if (name.empty()) {
    answer.entries = sources.describe_all_brokers();
  } else {
    if (auto other = check_broker(name, config_.id, " or empty string")) return refuse(*other);
    answer.entries = sources.describe_broker();
  }
  keep_named(answer.entries, query.names);
  return answer;
}

std::optional<ConfigRefusal> KernelConfigs::check_logger(const std::string& name) const {
  if (name.empty()) return invalid_request("Broker id must not be empty");
  if (auto other = check_broker(name, config_.id, "")) return other;
  if (broker_.service<Operations>()) return std::nullopt;
  return invalid_request("This broker's log has no levels.");
}

std::optional<ConfigRefusal> KernelConfigs::check_group(const std::string& name) const {
  if (!broker_.service<GroupService>()) {
    return invalid_request("No plugin for groups is loaded; they have no settings.");
  }
  if (name.empty()) return invalid_request("Group name must not be empty");
  if (name.size() <= configured_group_bytes_max) return std::nullopt;
  return invalid_request("Groups with names of more than " +
                         std::to_string(configured_group_bytes_max) +
                         " bytes have no settings of their own.");
}

Task<std::vector<ConfigsAltered>> KernelConfigs::alter(Session&, AlterConfigsRequest request) {
  std::map<ConfigResource, int> uses;
  for (const auto& alteration : request.alterations) ++uses[alteration.resource];
  std::vector<ConfigsAltered> answers;
  for (auto& alteration : request.alterations) {
    ConfigsAltered answer{.resource = alteration.resource, .message = {}};
    if (uses[alteration.resource] > 1) {
      answer.error = ErrorCode::invalid_request;
      answer.message = "Each resource must appear at most once.";
    } else {
      auto make = [this, alteration = std::move(alteration), only = request.validate_only] {
        return alter_one(alteration, only);
      };
      auto altered = co_await run_on(parts_.environment.control(), std::move(make));
      if (altered) {
        answer = *std::move(altered);
      } else {
        answer.error = error_code_of(altered.error());
        answer.message = altered.error().detail;
      }
    }
    answers.push_back(std::move(answer));
  }
  co_return std::move(answers);
}

Task<ConfigsAltered> KernelConfigs::alter_one(ConfigAlteration alteration, bool validate_only) {
  MR_CO_TRY(const auto pass, running_.enter());
  MR_CO_TRY(const auto turn, co_await changes_.lock());
  ConfigsAltered answer{.resource = alteration.resource, .message = {}};
  std::optional<ConfigRefusal> refusal;
  if (alteration.resource.type == ConfigResourceType::topic) {
    MR_CO_TRY(refusal, co_await alter_topic(std::move(alteration), validate_only));
  } else if (alteration.resource.type == ConfigResourceType::broker) {
    MR_CO_TRY(refusal, co_await alter_broker(std::move(alteration), validate_only));
  } else if (alteration.resource.type == ConfigResourceType::group) {
    MR_CO_TRY(refusal, co_await alter_group(std::move(alteration), validate_only));
  } else if (alteration.resource.type == ConfigResourceType::broker_logger) {
    refusal = check_logger(alteration.resource.name);
    if (!refusal) {
      refusal = alter_loggers(*broker_.service<Operations>(), alteration, validate_only);
    }
  } else {
    refusal = no_settings(alteration.resource.type);
  }
  if (refusal) {
    answer.error = refusal->error;
    answer.message = std::move(refusal->message);
  }
  co_return std::move(answer);
}

Task<std::optional<ConfigRefusal>> KernelConfigs::alter_topic(ConfigAlteration alteration,
                                                              bool validate_only) {
  const auto name = alteration.resource.name;
  if (name.empty()) co_return invalid_request("Default topic resources are not allowed.");
  if (auto bad = check_topic_name(name)) co_return ConfigRefusal{bad->error, bad->message};
  const auto* known = cluster_.state().find(name);
  if (!known) {
    co_return ConfigRefusal{ErrorCode::unknown_topic_or_partition,
                            "The topic '" + name + "' does not exist."};
  }
  const znodes::ConfigEntity entity{znodes::ConfigEntity::Kind::topic, name};
  MR_CO_TRY(auto before, co_await stored(entity));
  const ConfigSources sources(config_, cluster_.state());
  auto configs = changed_topic_configs(alteration, before.configs, sources);
  if (!configs) co_return std::move(configs).error();
  if (validate_only || *configs == before.configs) co_return std::nullopt;

  MR_CO_CHECK(co_await store(entity, *std::move(configs), before.version));
  parts_.log.info("settings of a topic changed", {{"topic", name}});
  co_return std::nullopt;
}

Task<std::optional<ConfigRefusal>> KernelConfigs::alter_broker(ConfigAlteration alteration,
                                                               bool validate_only) {
  const auto& name = alteration.resource.name;
  if (!name.empty()) {
    if (auto other = check_broker(name, config_.id, "")) co_return other;
  }
  const std::string broker(name.empty() ? all_brokers_key : std::string_view(name));
  const znodes::ConfigEntity entity{znodes::ConfigEntity::Kind::broker, broker};
  MR_CO_TRY(auto before, co_await stored(entity));
  const ConfigSources sources(config_, cluster_.state());
  auto configs = changed_broker_configs(alteration, before.configs, sources, cluster_.state());
  if (!configs) co_return std::move(configs).error();
  if (validate_only || *configs == before.configs) co_return std::nullopt;

  MR_CO_CHECK(co_await store(entity, *std::move(configs), before.version));
  parts_.log.info("settings of brokers changed", {{"broker", broker}});
  co_return std::nullopt;
}

Task<std::optional<ConfigRefusal>> KernelConfigs::alter_group(ConfigAlteration alteration,
                                                              bool validate_only) {
  const auto name = alteration.resource.name;
  if (auto bad = check_group(name)) co_return bad;
  const znodes::ConfigEntity entity{znodes::ConfigEntity::Kind::group, name};
  MR_CO_TRY(auto before, co_await stored(entity));
  const ConfigSources sources(config_, cluster_.state());
  auto configs = changed_group_configs(alteration, before.configs, sources);
  if (!configs) co_return std::move(configs).error();
  if (validate_only || *configs == before.configs) co_return std::nullopt;

  MR_CO_CHECK(co_await store(entity, *std::move(configs), before.version));
  parts_.log.info("settings of a group changed", {{"group", name}});
  co_return std::nullopt;
}

Task<KernelConfigs::Stored> KernelConfigs::stored(znodes::ConfigEntity entity) {
  const auto key = znodes::configs_of(entity);
  auto node = co_await parts_.coordination.get(key);
  if (!node && node.error().code == Errc::not_found) co_return Stored{};
  if (!node) co_return node.error();
  Stored found{.configs = {}, .version = node->version};
  MR_CO_TRY(found.configs, znodes::decode_configs(key, node->value));
  co_return std::move(found);
}

Task<> KernelConfigs::store(znodes::ConfigEntity entity, ConfigMap configs, Version expected) {
  for (int tries = 0;; ++tries) {
    MR_CO_TRY(const auto marks,
              co_await parts_.coordination.list(std::string(znodes::config_changes)));
    const auto last = marks.empty() ? -1 : number_in(marks.back());
    std::vector<Write> writes;
    writes.push_back({.key = znodes::configs_of(entity),
                      .value = znodes::encode_configs(configs),
                      .expected = expected});
    writes.push_back({.key = znodes::config_change(last + 1),
                      .value = znodes::encode_config_change(entity),
                      .expected = must_not_exist});
    const auto written = co_await parts_.coordination.commit(std::move(writes));
    if (written) break;
    // Another broker has taken the number; or it has changed the same settings.
    const bool of_mark = written.error().detail.find(znodes::config_changes) != std::string::npos;
    const bool again = written.error().code == Errc::conflict && of_mark && tries < tries_max;
    if (!again) co_return written.error();
  }
  auto in_effect = [entity, configs = std::move(configs)](const ClusterState& state) {
    if (entity.kind != znodes::ConfigEntity::Kind::topic) {
      const auto found = state.broker_configs.find(znodes::config_key_of(entity));
      return found != state.broker_configs.end() && found->second == configs;
    }
    const auto* topic = state.find(std::string_view(entity.name));
    return !topic || topic->configs == configs;
  };
  co_return co_await cluster_.until(std::move(in_effect), in_effect_time_max);
}

Task<std::vector<ConfigResource>> KernelConfigs::list(Session& session,
                                                      std::vector<ConfigResourceType> types) {
  MR_CO_TRY(const auto cluster, co_await kernel_session(session).shard().joined());
  const auto wanted = [&types](ConfigResourceType type) {
    return types.empty() || std::ranges::find(types, type) != types.end();
  };
  std::vector<ConfigResource> resources;
  for (const auto type : {ConfigResourceType::broker_logger, ConfigResourceType::broker}) {
    if (!wanted(type)) continue;
    for (const auto& [id, broker] : cluster->brokers) {
      resources.push_back({type, std::to_string(id)});
    }
  }
  if (wanted(ConfigResourceType::topic)) {
    for (const auto& [name, topic] : cluster->topics) {
      resources.push_back({ConfigResourceType::topic, name});
    }
  }
  if (wanted(ConfigResourceType::group)) {
    for (const auto& [key, configs] : cluster->broker_configs) {
      const auto group = group_of_config_key(key);
      if (group && !configs.empty()) {
        resources.push_back({ConfigResourceType::group, std::string(*group)});
      }
    }
  }
  co_return std::move(resources);
}

}  // namespace millrace::kernel
