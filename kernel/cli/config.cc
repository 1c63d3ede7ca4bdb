// millrace config describe|alter: settings of topics, brokers and groups, through a broker; and
// explain, which asks none.
#include <iostream>

#include <CLI/CLI.hpp>
#include <boost/json.hpp>

#include <millrace/configs.h>
#include <millrace/kafka/describe_configs.h>
#include <millrace/kafka/incremental_alter_configs.h>
#include <millrace/utf8.h>

#include "kernel/cli/cluster_client.h"
#include "kernel/cli/config_reference.h"
#include "kernel/cli/context.h"
#include "kernel/cli/output.h"
#include "kernel/cli/usage.h"

namespace millrace::kernel::cli {

namespace {

namespace json = boost::json;

struct Target {
  std::string topic;
  std::string broker;
  bool all_brokers = false;
  std::string group;

  ConfigResource resource() const {
    if (!topic.empty()) return {ConfigResourceType::topic, topic};
    if (!group.empty()) return {ConfigResourceType::group, group};
    return {ConfigResourceType::broker, broker};
  }
  std::string text() const {
    if (!topic.empty()) return "topic " + shown(topic);
    if (!group.empty()) return "group " + shown(group);
    return all_brokers ? "all brokers" : "broker " + shown(broker);
  }
};

struct DescribeArguments {
  Target target;
  std::vector<std::string> names;
  bool all = false;
};

struct AlterArguments {
  Target target;
  std::vector<std::string> set;  // "retention.ms=1000"
  std::vector<std::string> append;
  std::vector<std::string> subtract;
  std::vector<std::string> remove;
  bool validate_only = false;
};

std::string_view source_text(std::int8_t source) {
  constexpr std::int8_t of_a_group = 8;
  if (source == of_a_group) return "group";
  switch (static_cast<ConfigSource>(source)) {
    case ConfigSource::topic: return "topic";
    case ConfigSource::broker: return "broker";
    case ConfigSource::all_brokers: return "all brokers";
    case ConfigSource::static_broker: return "file";
    case ConfigSource::fallback: return "default";
    case ConfigSource::broker_logger: return "log level";
  }
  return "other";
}

json::value value_or_null(const std::optional<std::string_view>& value) {
  return value ? json::value(*value) : json::value(nullptr);
}

json::object object_of(const kafka::DescribeConfigsResponse::Config& config) {
  json::array synonyms;
  for (const auto& synonym : config.synonyms) {
    synonyms.emplace_back(json::object{{"name", synonym.name},
                                       {"value", value_or_null(synonym.value)},
                                       {"source", source_text(synonym.source)}});
  }
  return {{"name", config.name},
          {"value", value_or_null(config.value)},
          {"source", source_text(config.config_source)},
          {"read_only", config.read_only},
          {"sensitive", config.is_sensitive},
          {"synonyms", std::move(synonyms)}};
}

Task<> describe(Environment& environment, const Context& context, DescribeArguments arguments) {
  const auto resource = arguments.target.resource();
  kafka::DescribeConfigsRequest request;
  request.include_synonyms = true;
  auto& asked = request.resources.emplace_back();
  asked.resource_type = static_cast<std::int8_t>(resource.type);
  asked.resource_name = resource.name;
  if (!arguments.names.empty()) {
    asked.configuration_keys.emplace(arguments.names.begin(), arguments.names.end());
  }
  MR_CO_TRY(auto cluster,
            co_await ClusterClient::connect(environment.network(), context.bootstrap));
  MR_CO_TRY(const auto answer, co_await cluster->any().call(std::move(request)));
  if (answer.results.size() != 1) co_return Error{Errc::corrupt, "the broker answered nothing"};
  const auto& result = answer.results.front();
  if (const ErrorCode code{result.error_code}; code != ErrorCode::none) {
    const auto message = result.error_message.value_or("");
    co_return error_of(code, message.empty() ? arguments.target.text() : std::string(message));
  }
  const bool all = arguments.all || !arguments.names.empty();
  json::array configs;
  Table table({"NAME", "VALUE", "SOURCE", ""});
  for (const auto& config : result.configs) {
    const bool unset = config.config_source == static_cast<std::int8_t>(ConfigSource::fallback);
    if (unset && !all) continue;
    configs.emplace_back(object_of(config));
    table.add({std::string(config.name), std::string(config.value.value_or("-")),
               std::string(source_text(config.config_source)),
               config.read_only ? "read only" : ""});
  }
  if (context.output == OutputFormat::json) {
    print_json(json::object{{"configs", std::move(configs)}});
  } else {
    table.print();
  }
  co_return {};
}

// Adds NAME=VALUE of each text as an operation.
Result<> add_values(const std::vector<std::string>& texts, ConfigOperation operation,
                    kafka::IncrementalAlterConfigsRequest::Resource& resource) {
  for (const std::string_view text : texts) {
    const auto equals = text.find('=');
    if (equals == std::string_view::npos) {
      return Error{Errc::invalid_argument, in_quotes(text) + ": expected NAME=VALUE"};
    }
    auto& config = resource.configs.emplace_back();
    config.name = text.substr(0, equals);
    config.config_operation = static_cast<std::int8_t>(operation);
    config.value = text.substr(equals + 1);
  }
  return {};
}

Task<> alter(Environment& environment, const Context& context, AlterArguments arguments) {
  const auto target = arguments.target.resource();
  kafka::IncrementalAlterConfigsRequest request;
  request.validate_only = arguments.validate_only;
  auto& resource = request.resources.emplace_back();
  resource.resource_type = static_cast<std::int8_t>(target.type);
  resource.resource_name = target.name;
  MR_CO_CHECK(add_values(arguments.set, ConfigOperation::set, resource));
  MR_CO_CHECK(add_values(arguments.append, ConfigOperation::append, resource));
  MR_CO_CHECK(add_values(arguments.subtract, ConfigOperation::subtract, resource));
  for (const auto& name : arguments.remove) {
    auto& config = resource.configs.emplace_back();
    config.name = name;
    config.config_operation = static_cast<std::int8_t>(ConfigOperation::remove);
  }
  if (resource.configs.empty()) {
    co_return Error{Errc::invalid_argument,
                    "nothing to change: give --set, --append, --subtract or --delete"};
  }
  const auto changes = resource.configs.size();
  MR_CO_TRY(auto cluster,
            co_await ClusterClient::connect(environment.network(), context.bootstrap));
  MR_CO_TRY(const auto answer, co_await cluster->any().call(std::move(request)));
  if (answer.responses.size() != 1) co_return Error{Errc::corrupt, "the broker answered nothing"};
  const auto& altered = answer.responses.front();
  if (const ErrorCode code{altered.error_code}; code != ErrorCode::none) {
    co_return error_of(code, altered.error_message.value_or(arguments.target.text()));
  }
  if (context.output == OutputFormat::json) {
    print_json(json::object{{"changes", changes}, {"validate_only", arguments.validate_only}});
  } else {
    std::cout << (arguments.validate_only ? "would change " : "changed ") << arguments.target.text()
              << '\n';
  }
  co_return {};
}

void add_target(CLI::App& verb, Target& target) {
  auto* which = verb.add_option_group("of what");
  which->add_option("--topic", target.topic, "a topic")->type_name("NAME")->check(not_empty);
  which->add_option("--broker", target.broker, "one broker")->type_name("ID")->check(not_empty);
  which->add_option("--group", target.group, "a consumer group")
      ->type_name("NAME")
      ->check(not_empty);
  which->add_flag("--all-brokers", target.all_brokers, "what is set for all brokers");
  which->require_option(1);
}

void add_changes(CLI::App& verb, AlterArguments& wanted) {
  const auto add = [&verb](const char* name, std::vector<std::string>& into, const char* type,
                           const char* help) {
    verb.add_option(name, into, help)->type_name(type)->allow_extra_args(false);
  };
  add("--set", wanted.set, "NAME=VALUE", "give a setting a value");
  add("--append", wanted.append, "NAME=VALUE", "add to a list");
  add("--subtract", wanted.subtract, "NAME=VALUE", "take from a list");
  add("--delete", wanted.remove, "NAME", "let a setting be what it would be without");
  verb.add_flag("--validate-only", wanted.validate_only, "check the change, do not make it");
}

}  // namespace

void add_config_verb(CLI::App& app, Context& context, Action& action) {
  auto* verb = app.add_subcommand("config", "describe, alter and explain settings");
  verb->require_subcommand(1);

  auto* describe_verb = verb->add_subcommand("describe", "show what is set, and by whom");
  const auto shown = std::make_shared<DescribeArguments>();
  add_target(*describe_verb, shown->target);
  describe_verb->add_option("NAME", shown->names, "only these settings");
  describe_verb->add_flag("--all", shown->all, "also what nobody has set");
  add_examples(*describe_verb, {"millrace config describe --topic orders",
                                "millrace config describe --broker 1 --all",
                                "millrace config describe --all-brokers retention.ms"});
  describe_verb->callback([&context, &action, shown] {
    action = [&context, shown] {
      return run([&](Environment& environment) { return describe(environment, context, *shown); });
    };
  });

  auto* alter_verb = verb->add_subcommand("alter", "change settings, all of them or none");
  const auto wanted = std::make_shared<AlterArguments>();
  add_target(*alter_verb, wanted->target);
  add_changes(*alter_verb, *wanted);
  add_examples(*alter_verb, {"millrace config alter --topic orders --set retention.ms=604800000",
                             "millrace config alter --topic orders --delete retention.ms"});
  alter_verb->callback([&context, &action, wanted] {
    action = [&context, wanted] {
      return run([&](Environment& environment) { return alter(environment, context, *wanted); });
    };
  });

  auto* explain_verb = verb->add_subcommand("explain", "tell what a setting means");
  const auto key = std::make_shared<std::string>();
  explain_verb->add_option("KEY", *key, "as in millrace.toml, or Kafka's name of a setting")
      ->required();
  add_examples(*explain_verb,
               {"millrace config explain broker.data", "millrace config explain retention.ms"});
  explain_verb->callback([&context, &action, key] {
    action = [&context, key]() -> Result<> {
      MR_TRY(const auto text, explain_setting(context, *key));
      std::cout << text;
      return {};
    };
  });
}

}  // namespace millrace::kernel::cli
