#include "kernel/broker/configs.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <utility>

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
    case ConfigResourceType::group:
      return invalid_request("No plugin for groups is loaded; they have no settings.");
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
    return invalid_request("Broker id must be an integer, but it is: " + std::string(name));
  }
  if (id == self) return std::nullopt;
  return invalid_request("Unexpected broker id, expected " + std::to_string(self) +
                         std::string(also) + ", but received " + std::string(name));
}

void keep_named(std::vector<ConfigEntry>& entries, const std::vector<std::string>& names) {
  if (names.empty()) return;
  std::erase_if(entries, [&names](const ConfigEntry& entry) {
    return std::ranges::find(names, entry.name) == names.end();
  });
}

Task<> apply_on(ShardState& owner, TopicPartition id, TopicConfig config) {
  const auto partition = owner.find(id.topic, id.partition);
  if (partition) partition->set_config(config);
  co_return {};
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
  MR_CO_TRY(const auto turn, co_await cluster_.turn());
  ConfigsAltered answer{.resource = alteration.resource, .message = {}};
  std::optional<ConfigRefusal> refusal;
  if (alteration.resource.type == ConfigResourceType::topic) {
    MR_CO_TRY(refusal, co_await alter_topic(std::move(alteration), validate_only));
  } else if (alteration.resource.type == ConfigResourceType::broker) {
    MR_CO_TRY(refusal, co_await alter_broker(std::move(alteration), validate_only));
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
  const ConfigSources sources(config_, cluster_.state());
  auto configs = changed_topic_configs(alteration, known->configs, sources);
  if (!configs) co_return std::move(configs).error();
  if (validate_only || *configs == known->configs) co_return std::nullopt;

  TopicState topic = *known;
  topic.configs = *configs;
  MR_CO_CHECK(co_await store(znodes::topic_config(name), *std::move(configs)));
  cluster_.state().put(std::move(topic));
  MR_CO_CHECK(co_await cluster_.publish());
  MR_CO_CHECK(co_await apply_to(cluster_.state().topics.find(name)->second));
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
  const ConfigSources sources(config_, cluster_.state());
  const auto& current = name.empty() ? sources.of_all_brokers() : sources.of_this_broker();
  auto configs = changed_broker_configs(alteration, current, sources);
  if (!configs) co_return std::move(configs).error();
  if (validate_only || *configs == current) co_return std::nullopt;

  MR_CO_CHECK(co_await store(znodes::broker_config(broker), *configs));
  cluster_.state().broker_configs.insert_or_assign(broker, *std::move(configs));
  MR_CO_CHECK(co_await cluster_.publish());
  const auto topics = cluster_.state().topics;
  for (const auto& [topic_name, topic] : topics) MR_CO_CHECK(co_await apply_to(topic));
  parts_.log.info("settings of brokers changed", {{"broker", broker}});
  co_return std::nullopt;
}

Task<> KernelConfigs::store(std::string key, ConfigMap configs) {
  std::vector<Write> writes;
  writes.push_back({.key = std::move(key), .value = znodes::encode_configs(configs)});
  MR_CO_CHECK(co_await parts_.coordination.commit(std::move(writes)));
  co_return {};
}

Task<> KernelConfigs::apply_to(std::shared_ptr<const TopicState> topic) {
  const ConfigSources sources(config_, cluster_.state());
  const auto config = TopicConfig::load(sources.merged(), topic->configs);
  for (std::size_t at = 0; at < topic->partitions.size(); ++at) {
    const TopicPartition id{topic->name, static_cast<std::int32_t>(at)};
    auto& owner = partitions_.owner_of(id.topic, id.partition);
    auto make = [&owner, id, config] { return apply_on(owner, id, config); };
    MR_CO_CHECK(co_await run_on(owner.shard(), std::move(make)));
  }
  co_return {};
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
  co_return std::move(resources);
}

}  // namespace millrace::kernel
