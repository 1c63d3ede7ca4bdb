// millrace config set: changes settings, all that are named or none, and shows what they were.
#include <algorithm>
#include <iostream>

#include <CLI/CLI.hpp>
#include <boost/json.hpp>

#include <millrace/kafka/incremental_alter_configs.h>

#include "kernel/cli/config_client.h"
#include "kernel/cli/config_verbs.h"
#include "kernel/cli/output.h"
#include "kernel/cli/usage.h"
#include "kernel/config/text.h"

namespace millrace::kernel::cli {

namespace {

namespace json = boost::json;

struct SetArguments {
  ConfigTarget target;
  std::vector<std::string> set;  // "retention.ms=1000"
  std::vector<std::string> also_set;
  std::vector<std::string> append;
  std::vector<std::string> subtract;
  std::vector<std::string> unset;
  bool dry_run = false;
};

// NAME=VALUE of each text; a value that is empty takes the setting away.
Result<> add_steps(const std::vector<std::string>& texts, ConfigOperation operation,
                   std::vector<ConfigStep>& steps) {
  for (const auto& text : texts) {
    const auto equals = text.find('=');
    if (equals == std::string::npos || equals == 0) {
      return Error{Errc::invalid_argument, in_quotes(text) + ": expected NAME=VALUE"};
    }
    auto value = text.substr(equals + 1);
    const bool back = operation == ConfigOperation::set && value.empty();
    steps.push_back(
        {text.substr(0, equals), back ? ConfigOperation::remove : operation, std::move(value)});
  }
  return {};
}

Result<std::vector<ConfigStep>> steps_of(const SetArguments& arguments) {
  std::vector<ConfigStep> steps;
  MR_CHECK(add_steps(arguments.set, ConfigOperation::set, steps));
  MR_CHECK(add_steps(arguments.also_set, ConfigOperation::set, steps));
  MR_CHECK(add_steps(arguments.append, ConfigOperation::append, steps));
  MR_CHECK(add_steps(arguments.subtract, ConfigOperation::subtract, steps));
  for (const auto& name : arguments.unset) steps.push_back({name, ConfigOperation::remove, ""});
  if (steps.empty()) {
    return Error{Errc::invalid_argument,
                 "nothing to change: give NAME=VALUE, --append, --subtract or --unset"};
  }
  // A broker refuses it too, but does not say which.
  for (auto step = steps.begin(); step != steps.end(); ++step) {
    if (std::ranges::find(steps.begin(), step, step->name, &ConfigStep::name) == step) continue;
    return Error{Errc::invalid_argument,
                 in_quotes(step->name) + " is changed twice; name each setting once"};
  }
  return steps;
}

Task<> alter(ClusterClient& cluster, ConfigTarget target, std::vector<ConfigStep> steps,
             bool dry_run) {
  const auto resource_of = target.resource();
  kafka::IncrementalAlterConfigsRequest request;
  request.validate_only = dry_run;
  auto& resource = request.resources.emplace_back();
  resource.resource_type = static_cast<std::int8_t>(resource_of.type);
  resource.resource_name = resource_of.name;
  for (const auto& step : steps) {
    auto& config = resource.configs.emplace_back();
    config.name = step.name;
    config.config_operation = static_cast<std::int8_t>(step.operation);
    if (step.operation != ConfigOperation::remove) config.value = step.value;
  }
  MR_CO_TRY(auto* broker, co_await broker_for(cluster, target));
  MR_CO_TRY(const auto answer, co_await broker->call(std::move(request)));
  if (answer.responses.size() != 1) co_return Error{Errc::corrupt, "the broker answered nothing"};
  const auto& altered = answer.responses.front();
  if (const ErrorCode code{altered.error_code}; code != ErrorCode::none) {
    co_return error_of(code, altered.error_message.value_or(target.text()));
  }
  co_return {};
}

// A refusal, and for names that nobody knows the nearest that somebody does.
Error with_nearest(Error error, const std::vector<ConfigStep>& steps,
                   const std::vector<ShownSetting>& known) {
  std::vector<std::string> names;
  for (const auto& setting : known) names.push_back(setting.name);
  for (const auto& step : steps) {
    if (contains(names, step.name)) continue;
    const auto near = nearest(step.name, names);
    if (near) error.detail += concat("; nearest known to ", step.name, ": ", *near);
  }
  return error;
}

Task<std::vector<ShownSetting>> settings_of_a_broker(ClusterClient& cluster) {
  std::vector<std::string> no_topics;
  MR_CO_TRY(const auto answer, co_await cluster.metadata(std::move(no_topics)));
  if (answer.brokers.empty()) co_return Error{Errc::not_found, "no broker is there"};
  ConfigTarget one;
  one.broker = std::to_string(answer.brokers.front().id);
  std::vector<std::string> all_names;
  co_return co_await describe_settings(cluster, std::move(one), std::move(all_names));
}

// A broker takes it for done where a setting that nobody knows is to be taken away.
Result<> check_removed(const std::vector<ConfigStep>& steps, const ConfigTarget& target,
                       const std::vector<ShownSetting>& known) {
  // Of all brokers those alone are told that are set.
  if (target.all_brokers) return {};
  for (const auto& step : steps) {
    const bool there = std::ranges::find(known, step.name, &ShownSetting::name) != known.end();
    if (step.operation == ConfigOperation::remove && !there) {
      return no_such_setting(target, step.name, known);
    }
  }
  return {};
}

struct Change {
  std::string name;
  std::optional<std::string> before;
  std::optional<std::string> after;
};

std::vector<Change> changes_of(const std::vector<ConfigStep>& steps, const ConfigTarget& target,
                               const std::vector<ShownSetting>& known) {
  std::vector<Change> changes;
  for (const auto& step : steps) {
    const auto found = std::ranges::find(known, step.name, &ShownSetting::name);
    const auto setting = found == known.end() ? ShownSetting{.name = step.name} : *found;
    changes.push_back({step.name, setting.value, value_after(setting, step, target)});
  }
  return changes;
}

void print(const std::vector<Change>& changes, const SetArguments& arguments,
           const Context& context) {
  const auto value = [](const std::optional<std::string>& one) {
    return one ? json::value(*one) : json::value(nullptr);
  };
  if (context.output == OutputFormat::json) {
    json::array list;
    for (const auto& [name, before, after] : changes) {
      list.emplace_back(
          json::object{{"name", name}, {"before", value(before)}, {"after", value(after)}});
    }
    print_json(json::object{{"target", arguments.target.text()},
                            {"dry_run", arguments.dry_run},
                            {"changes", std::move(list)}});
    return;
  }
  std::cout << (arguments.dry_run ? "would change " : "changed ") << arguments.target.text()
            << "\n\n";
  Table table({"NAME", "BEFORE", "", "AFTER"});
  for (const auto& [name, before, after] : changes) {
    table.add({name, before.value_or("-"), "->", after.value_or("-")});
  }
  table.print();
}

Task<> set(Environment& environment, const Context& context, SetArguments arguments) {
  MR_CO_TRY(const auto steps, steps_of(arguments));
  MR_CO_TRY(auto cluster,
            co_await ClusterClient::connect(environment.network(), context.bootstrap));
  std::vector<std::string> all_names;
  auto describing = describe_settings(*cluster, arguments.target, all_names);
  MR_CO_TRY(const auto before, co_await std::move(describing));
  MR_CO_CHECK(check_removed(steps, arguments.target, before));
  auto altering = alter(*cluster, arguments.target, steps, arguments.dry_run);
  if (auto altered = co_await std::move(altering); !altered) {
    auto known = before;
    if (arguments.target.all_brokers) {
      // Of all brokers those alone are told that are set.
      auto asking = settings_of_a_broker(*cluster);
      if (auto all = co_await std::move(asking)) known = std::move(*all);
    }
    co_return with_nearest(std::move(altered).error(), steps, known);
  }
  print(changes_of(steps, arguments.target, before), arguments, context);
  co_return {};
}

}  // namespace

void add_config_set_verb(CLI::App& parent, Context& context, Action& action) {
  auto* verb =
      parent.add_subcommand("set", "change settings, all that are named or none")->alias("alter");
  const auto wanted = std::make_shared<SetArguments>();
  add_target(*verb, wanted->target);
  verb->add_option("SETTING", wanted->set,
                   "NAME=VALUE: give a setting a value; NAME= as --unset NAME");
  const auto add = [verb](const char* name, std::vector<std::string>& into, const char* type,
                          const char* help) {
    verb->add_option(name, into, help)->type_name(type)->allow_extra_args(false);
  };
  add("--set", wanted->also_set, "NAME=VALUE", "the same as NAME=VALUE alone");
  add("--append", wanted->append, "NAME=VALUE", "add to a list");
  add("--subtract", wanted->subtract, "NAME=VALUE", "take from a list");
  add("--unset,--delete", wanted->unset, "NAME", "let a setting be what it would be without");
  verb->add_flag("--dry-run,--validate-only", wanted->dry_run, "check the change, do not make it");
  add_examples(*verb, {"millrace config set --topic orders retention.ms=604800000",
                       "millrace config set --topic orders --unset retention.ms --dry-run",
                       "millrace config set --broker-default log.retention.ms=172800000"});
  verb->callback([&context, &action, wanted] {
    action = [&context, wanted] {
      return run([&](Environment& environment) { return set(environment, context, *wanted); });
    };
  });
}

}  // namespace millrace::kernel::cli
