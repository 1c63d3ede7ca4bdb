#include "kernel/cli/config_client.h"

#include <algorithm>
#include <charconv>
#include <string>

#include <CLI/CLI.hpp>

#include <millrace/kafka/describe_configs.h>
#include <millrace/utf8.h>

#include "kernel/broker/group_options.h"
#include "kernel/cli/output.h"
#include "kernel/cli/usage.h"
#include "kernel/config/text.h"
#include "kernel/partition/config_options.h"

namespace millrace::kernel::cli {

namespace {

std::optional<std::string> owned(const std::optional<std::string_view>& text) {
  if (!text) return std::nullopt;
  return std::string(*text);
}

// What a topic has of a layer: a broker's hours are a topic's milliseconds.
std::optional<std::string> as_of_a_topic(const SettingLayer& layer, std::string_view name) {
  const auto* option = find_topic_option(name);
  const auto number = integer_of(*layer.value);
  if (option == nullptr || !number || *number < 0) return layer.value;
  for (const auto& synonym : option->synonyms) {
    if (synonym.name != nullptr && layer.name == synonym.name) {
      return std::to_string(*number * synonym.factor);
    }
  }
  return layer.value;
}

// Where a change of `target` is kept.
SettingSource source_of(const ConfigTarget& target) {
  if (!target.topic.empty()) return SettingSource::topic;
  if (!target.group.empty()) return group_config_source;
  return target.all_brokers ? SettingSource::all_brokers : SettingSource::broker;
}

std::string with_items(std::string_view list, std::string_view items, bool added) {
  auto left = list_of(list);
  for (const auto item : list_of(items)) {
    if (!added) {
      std::erase(left, item);
    } else if (!contains(left, item)) {
      left.push_back(item);
    }
  }
  return list_text(left);
}

// What may be meant by a number that is of none.
Task<std::string> brokers_there(ClusterClient& cluster) {
  std::vector<std::string> no_topics;
  MR_CO_TRY(const auto answer, co_await cluster.metadata(std::move(no_topics)));
  std::vector<std::string> ids;
  for (const auto& broker : answer.brokers) ids.push_back(std::to_string(broker.id));
  co_return "; there are brokers " + joined(ids);
}

}  // namespace

ConfigResource ConfigTarget::resource() const {
  if (!topic.empty()) return {ConfigResourceType::topic, topic};
  if (!group.empty()) return {ConfigResourceType::group, group};
  return {ConfigResourceType::broker, broker};
}

std::string ConfigTarget::text() const {
  if (!topic.empty()) return "topic " + shown(topic);
  if (!group.empty()) return "group " + shown(group);
  return all_brokers ? "all brokers" : "broker " + shown(broker);
}

void add_target(CLI::App& verb, ConfigTarget& target) {
  auto* which = verb.add_option_group("of what");
  which->add_option("--topic", target.topic, "a topic")->type_name("NAME")->check(not_empty);
  which->add_option("--broker", target.broker, "one broker")->type_name("ID")->check(not_empty);
  which->add_option("--group", target.group, "a consumer group")
      ->type_name("NAME")
      ->check(not_empty);
  which->add_flag("--broker-default,--all-brokers", target.all_brokers,
                  "what is set for all brokers");
  which->require_option(1);
}

std::string_view source_text(SettingSource source) {
  if (source == group_config_source) return "group";
  switch (source) {
    case SettingSource::topic: return "topic";
    case SettingSource::broker: return "broker";
    case SettingSource::all_brokers: return "all brokers";
    case SettingSource::static_broker: return "file";
    case SettingSource::fallback: return "default";
    case SettingSource::broker_logger: return "log level";
  }
  return "other";
}

Task<kafka::Client*> broker_for(ClusterClient& cluster, ConfigTarget target) {
  std::int32_t id = -1;
  const auto* end = target.broker.data() + target.broker.size();
  const auto read = std::from_chars(target.broker.data(), end, id);
  if (target.broker.empty() || read.ec != std::errc() || read.ptr != end) co_return &cluster.any();
  std::vector<std::string> no_topics;
  MR_CO_TRY(const auto answer, co_await cluster.metadata(std::move(no_topics)));
  const bool lives =
      std::ranges::any_of(answer.brokers, [id](const BrokerInfo& one) { return one.id == id; });
  // One that is away has settings too, which the others know as far as they are not in its file.
  if (!lives) co_return &cluster.any();
  co_return co_await cluster.broker(id);
}

Task<std::vector<ShownSetting>> describe_settings(ClusterClient& cluster, ConfigTarget target,
                                                  std::vector<std::string> names) {
  // A name that is not there is told with the nearest that is.
  if (!target.topic.empty()) MR_CO_CHECK(co_await cluster.topic(target.topic));
  const auto resource = target.resource();
  kafka::DescribeConfigsRequest request;
  request.include_synonyms = true;
  auto& asked = request.resources.emplace_back();
  asked.resource_type = static_cast<std::int8_t>(resource.type);
  asked.resource_name = resource.name;
  if (!names.empty()) asked.configuration_keys.emplace(names.begin(), names.end());
  MR_CO_TRY(auto* broker, co_await broker_for(cluster, target));
  MR_CO_TRY(const auto answer, co_await broker->call(std::move(request)));
  if (answer.results.size() != 1) co_return Error{Errc::corrupt, "the broker answered nothing"};
  const auto& result = answer.results.front();
  if (const ErrorCode code{result.error_code}; code != ErrorCode::none) {
    auto message = std::string(result.error_message.value_or(""));
    if (message.empty()) message = target.text();
    if (!target.broker.empty()) {
      MR_CO_TRY(const auto known, co_await brokers_there(cluster));
      message += known;
    }
    co_return error_of(code, message);
  }
  std::vector<ShownSetting> settings;
  for (const auto& config : result.configs) {
    ShownSetting setting{.name = std::string(config.name),
                         .value = owned(config.value),
                         .source = static_cast<SettingSource>(config.config_source),
                         .read_only = config.read_only,
                         .sensitive = config.is_sensitive,
                         .layers = {}};
    for (const auto& layer : config.synonyms) {
      setting.layers.push_back(
          {std::string(layer.name), owned(layer.value), static_cast<SettingSource>(layer.source)});
    }
    settings.push_back(std::move(setting));
  }
  co_return std::move(settings);
}

Error no_such_setting(const ConfigTarget& target, const std::string& name,
                      const std::vector<ShownSetting>& all) {
  std::vector<std::string> known;
  for (const auto& setting : all) known.push_back(setting.name);
  return {Errc::not_found,
          concat(target.text(), " has no setting ", in_quotes(name), nearest_hint(name, known))};
}

std::optional<std::string> value_after(const ShownSetting& setting, const ConfigStep& step,
                                       const ConfigTarget& target) {
  switch (step.operation) {
    case ConfigOperation::set: return step.value;
    case ConfigOperation::append: return with_items(setting.value.value_or(""), step.value, true);
    case ConfigOperation::subtract:
      return with_items(setting.value.value_or(""), step.value, false);
    case ConfigOperation::remove: break;
  }
  if (setting.layers.empty()) return setting.value;  // a broker that tells none
  for (const auto& layer : setting.layers) {
    const bool removed = layer.name == step.name && layer.source == source_of(target);
    if (removed || !layer.value) continue;
    if (!target.topic.empty()) return as_of_a_topic(layer, step.name);
    if (layer.name == step.name) return layer.value;
  }
  // Nobody has set anything.
  const auto* option = target.topic.empty() ? nullptr : find_topic_option(step.name);
  if (option == nullptr || option->option.default_value == nullptr) return std::nullopt;
  return option->option.default_value;
}

}  // namespace millrace::kernel::cli
