// millrace config diff: two topics or brokers, or one and its defaults; a file and the broker that
// runs.
#include <algorithm>
#include <iostream>
#include <map>

#include <CLI/CLI.hpp>
#include <boost/json.hpp>

#include "kernel/cli/admin_client.h"
#include "kernel/cli/config_client.h"
#include "kernel/cli/config_verbs.h"
#include "kernel/cli/output.h"
#include "kernel/cli/usage.h"
#include "kernel/config/text.h"
#include "kernel/daemon/read_plan.h"
#include "kernel/daemon/reload.h"
#include "kernel/host/trial.h"

namespace millrace::kernel::cli {

namespace {

namespace json = boost::json;

struct DiffArguments {
  std::vector<std::string> topics;
  std::vector<std::string> brokers;
  ConfigSource file;
  std::string admin = "127.0.0.1:9644";
};

using Values = std::map<std::string, std::optional<std::string>>;

struct Difference {
  std::string name;
  std::optional<std::string> left;
  std::optional<std::string> right;
};

std::vector<Difference> differences(const Values& left, const Values& right) {
  Values names = left;
  names.insert(right.begin(), right.end());
  const auto value_in = [](const Values& values, const std::string& name) {
    const auto found = values.find(name);
    return found == values.end() ? std::nullopt : found->second;
  };
  std::vector<Difference> found;
  for (const auto& [name, any] : names) {
    Difference one{name, value_in(left, name), value_in(right, name)};
    if (one.left != one.right) found.push_back(std::move(one));
  }
  return found;
}

json::value value_or_null(const std::optional<std::string>& value) {
  return value ? json::value(*value) : json::value(nullptr);
}

void print(const Context& context, const std::string& left, const std::string& right,
           const std::vector<Difference>& found) {
  if (context.output == OutputFormat::json) {
    json::array list;
    for (const auto& one : found) {
      list.emplace_back(json::object{{"name", one.name},
                                     {"left", value_or_null(one.left)},
                                     {"right", value_or_null(one.right)}});
    }
    print_json(json::object{{"left", left}, {"right", right}, {"differences", std::move(list)}});
    return;
  }
  if (found.empty()) {
    std::cout << left << " and " << right << ": no difference\n";
    return;
  }
  Table table({"NAME", left, right});
  for (const auto& one : found) {
    table.add({one.name, one.left.value_or("-"), one.right.value_or("-")});
  }
  table.print();
}

Values values_of(const std::vector<ShownSetting>& settings) {
  Values values;
  for (const auto& setting : settings) values.emplace(setting.name, setting.value);
  return values;
}

// What there would be if nothing were set of its own: for a topic what the broker gives it, for a
// broker what nobody has set.
Values defaults_of(const std::vector<ShownSetting>& settings, const ConfigTarget& target) {
  Values values;
  for (const auto& setting : settings) {
    const bool of_topic = !target.topic.empty();
    const bool own = of_topic ? setting.source == SettingSource::topic
                              : setting.source != SettingSource::fallback;
    if (!own || setting.layers.empty()) {
      values.emplace(setting.name, setting.value);
    } else if (of_topic) {
      const ConfigStep taken_away{setting.name, ConfigOperation::remove, ""};
      values.emplace(setting.name, value_after(setting, taken_away, target));
    } else {
      const auto layer =
          std::ranges::find(setting.layers, SettingSource::fallback, &SettingLayer::source);
      values.emplace(setting.name, layer == setting.layers.end() ? std::nullopt : layer->value);
    }
  }
  return values;
}

Task<> compare(Environment& environment, const Context& context,
               std::vector<ConfigTarget> targets) {
  MR_CO_TRY(auto cluster,
            co_await ClusterClient::connect(environment.network(), context.bootstrap));
  std::vector<std::string> all_names;
  auto first_asked = describe_settings(*cluster, targets.front(), all_names);
  MR_CO_TRY(const auto first, co_await std::move(first_asked));
  const auto left = targets.front().text();
  if (targets.size() == 1) {
    const auto defaults = defaults_of(first, targets.front());
    print(context, left, "defaults", differences(values_of(first), defaults));
    co_return {};
  }
  auto second_asked = describe_settings(*cluster, targets.back(), all_names);
  MR_CO_TRY(const auto second, co_await std::move(second_asked));
  print(context, left, targets.back().text(), differences(values_of(first), values_of(second)));
  co_return {};
}

// ---- a file and a broker ----

Result<std::vector<SettingFact>> running_settings(const json::object& answer) {
  std::vector<SettingFact> facts;
  const auto* settings = answer.if_contains("settings");
  if (settings == nullptr || !settings->is_object()) {
    return Error{Errc::corrupt, "/admin/config answers no settings"};
  }
  for (const auto& [key, value] : settings->get_object()) {
    if (!value.is_object()) continue;
    const auto& setting = value.get_object();
    const auto text = [&setting](std::string_view name) {
      const auto* member = setting.if_contains(name);
      return member != nullptr && member->is_string() ? std::string(member->get_string())
                                                      : std::string();
    };
    facts.push_back({.key = std::string(key),
                     .value = text("value"),
                     .source = text("source"),
                     .secret = setting.contains("sensitive")});
  }
  std::ranges::sort(facts, {}, &SettingFact::key);
  return facts;
}

Task<> ask_running(Network& network, std::string admin, std::vector<SettingFact>& running) {
  auto asking = ask_admin(network, std::move(admin), "GET", "/admin/config");
  MR_CO_TRY(const auto answer, co_await std::move(asking));
  MR_CO_TRY(running, running_settings(answer));
  co_return {};
}

struct Side {
  std::optional<std::string> value;
  std::string source;
};

std::map<std::string, Side> sides_of(const std::vector<SettingFact>& facts) {
  std::map<std::string, Side> sides;
  for (const auto& fact : facts) sides.insert({fact.key, {fact.value, fact.source}});
  return sides;
}

json::object object_of(const Side& side) {
  return {{"value", value_or_null(side.value)}, {"source", side.source}};
}

void print_file(const Context& context, const std::string& file,
                const std::vector<SettingFact>& running, const std::vector<SettingFact>& wanted) {
  auto left = sides_of(running);
  auto right = sides_of(wanted);
  for (const auto& [key, side] : left) right.insert({key, {}});
  const auto at_restart =
      changed_at_restart(running, wanted, transports_that_change(running, wanted));
  json::array list;
  Table table({"KEY", "RUNNING", "FILE", "FROM", "TAKEN UP BY"});
  for (const auto& [key, side] : right) {
    const auto& before = left[key];
    if (before.value == side.value) continue;
    const std::string when = contains(at_restart, key) ? "restart" : "reload";
    list.emplace_back(json::object{{"key", key},
                                   {"running", object_of(before)},
                                   {"file", object_of(side)},
                                   {"taken_up_by", when}});
    table.add({key, before.value.value_or("-"), side.value.value_or("-"), side.source, when});
  }
  if (context.output == OutputFormat::json) {
    print_json(json::object{{"file", file}, {"differences", std::move(list)}});
  } else if (list.empty()) {
    std::cout << file << " and the running broker: no difference\n";
  } else {
    table.print();
  }
}

Result<> compare_file(const Context& context, const DiffArguments& arguments) {
  const auto plan =
      read_plan(arguments.file, [&context](const std::string& path, std::string_view kind) {
        return load_tried(path, kind, context.trial);
      });
  if (!plan) return to_error(plan.error());
  std::vector<SettingFact> running;
  MR_CHECK(run([&](Environment& environment) {
    return ask_running(environment.network(), arguments.admin, running);
  }));
  print_file(context, arguments.file.path, running, plan->settings);
  return {};
}

std::vector<ConfigTarget> targets_of(const DiffArguments& arguments) {
  std::vector<ConfigTarget> targets;
  for (const auto& topic : arguments.topics) targets.push_back({.topic = topic});
  for (const auto& broker : arguments.brokers) targets.push_back({.broker = broker});
  return targets;
}

}  // namespace

void add_config_diff_verb(CLI::App& parent, Context& context, Action& action) {
  auto* verb = parent.add_subcommand(
      "diff", "what two have set differently, or one and its defaults, or a file and the broker");
  const auto wanted = std::make_shared<DiffArguments>();
  auto* which = verb->add_option_group("of what");
  const auto add = [which](const char* name, std::vector<std::string>& into, const char* type,
                           const char* help) {
    which->add_option(name, into, help)
        ->type_name(type)
        ->expected(1, 2)
        ->allow_extra_args(false)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
        ->check(not_empty);
  };
  add("--topic", wanted->topics, "NAME", "a topic; given twice, two of them");
  add("--broker", wanted->brokers, "ID", "a broker; given twice, two of them");
  which
      ->add_option("--file", wanted->file.path,
                   "a configuration, and the broker that --admin names")
      ->type_name("FILE")
      ->check(not_empty);
  which->require_option(1);
  verb->add_option("--set", wanted->file.sets, "beside --file, as millraced is given it")
      ->type_name("KEY=VALUE")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->expected(1)
      ->allow_extra_args(false);
  verb->add_option("--admin", wanted->admin, "where the broker is administered")
      ->type_name("HOST:PORT")
      ->capture_default_str()
      ->check(not_empty);
  add_examples(*verb,
               {"millrace config diff --topic orders --topic payments",
                "millrace config diff --topic orders", "millrace config diff --broker 1 --broker 2",
                "millrace config diff --file /etc/millrace/millrace.toml"});
  verb->callback([&context, &action, wanted] {
    action = [&context, wanted] {
      if (!wanted->file.path.empty()) return compare_file(context, *wanted);
      if (wanted->topics.size() > 2 || wanted->brokers.size() > 2) {
        return Result<>(Error{Errc::invalid_argument, "two are compared, no more"});
      }
      return run([&](Environment& environment) {
        return compare(environment, context, targets_of(*wanted));
      });
    };
  });
}

}  // namespace millrace::kernel::cli
