// millrace config get|set|diff|check|explain: settings of topics, brokers and groups, through a
// broker, and options of millrace.toml.
#include <algorithm>
#include <iostream>

#include <CLI/CLI.hpp>
#include <boost/json.hpp>

#include "kernel/cli/config_client.h"
#include "kernel/cli/config_verbs.h"
#include "kernel/cli/context.h"
#include "kernel/cli/output.h"
#include "kernel/cli/usage.h"
#include "kernel/config/text.h"

namespace millrace::kernel::cli {

namespace {

namespace json = boost::json;

struct GetArguments {
  ConfigTarget target;
  std::vector<std::string> names;
  bool all = false;
};

json::value value_or_null(const std::optional<std::string>& value) {
  return value ? json::value(*value) : json::value(nullptr);
}

json::object object_of(const ShownSetting& setting) {
  json::array synonyms;
  for (const auto& layer : setting.layers) {
    synonyms.emplace_back(json::object{{"name", layer.name},
                                       {"value", value_or_null(layer.value)},
                                       {"source", source_text(layer.source)}});
  }
  return {{"name", setting.name},
          {"value", value_or_null(setting.value)},
          {"source", source_text(setting.source)},
          {"read_only", setting.read_only},
          {"sensitive", setting.sensitive},
          {"synonyms", std::move(synonyms)}};
}

Task<> get(Environment& environment, const Context& context, GetArguments arguments) {
  MR_CO_TRY(auto cluster,
            co_await ClusterClient::connect(environment.network(), context.bootstrap));
  auto describing = describe_settings(*cluster, arguments.target, arguments.names);
  MR_CO_TRY(const auto settings, co_await std::move(describing));
  for (const auto& name : arguments.names) {
    if (std::ranges::find(settings, name, &ShownSetting::name) != settings.end()) continue;
    std::vector<std::string> all_names;
    auto describing_all = describe_settings(*cluster, arguments.target, all_names);
    MR_CO_TRY(const auto all_settings, co_await std::move(describing_all));
    co_return no_such_setting(arguments.target, name, all_settings);
  }
  const bool all = arguments.all || !arguments.names.empty();
  json::array configs;
  Table table({"NAME", "VALUE", "SOURCE", ""});
  for (const auto& setting : settings) {
    if (setting.source == SettingSource::fallback && !all) continue;
    configs.emplace_back(object_of(setting));
    table.add({setting.name, setting.value.value_or("-"), std::string(source_text(setting.source)),
               setting.read_only ? "read only" : ""});
  }
  if (context.output == OutputFormat::json) {
    print_json(json::object{{"configs", std::move(configs)}});
  } else {
    table.print();
  }
  co_return {};
}

void add_get_verb(CLI::App& parent, Context& context, Action& action) {
  auto* verb = parent.add_subcommand("get", "show what is set, and by whom")->alias("describe");
  const auto wanted = std::make_shared<GetArguments>();
  add_target(*verb, wanted->target);
  verb->add_option("NAME", wanted->names, "only these settings");
  verb->add_flag("--all", wanted->all, "also what nobody has set");
  add_examples(*verb, {"millrace config get --topic orders", "millrace config get --broker 1 --all",
                       "millrace config get --broker-default log.retention.ms"});
  verb->callback([&context, &action, wanted] {
    action = [&context, wanted] {
      return run([&](Environment& environment) { return get(environment, context, *wanted); });
    };
  });
}

}  // namespace

void add_config_verb(CLI::App& app, Context& context, Action& action) {
  auto* verb = app.add_subcommand("config", "show, change, compare, check and explain settings");
  verb->require_subcommand(1);
  add_get_verb(*verb, context, action);
  add_config_set_verb(*verb, context, action);
  add_config_diff_verb(*verb, context, action);
  add_config_check_verb(*verb, context, action);
  add_config_explain_verb(*verb, context, action);
}

}  // namespace millrace::kernel::cli
