#include "kernel/cli/config_check.h"

#include <iostream>
#include <memory>
#include <utility>

#include <CLI/CLI.hpp>
#include <boost/json.hpp>

#include "kernel/cli/config_verbs.h"
#include "kernel/cli/doctor_proc.h"
#include "kernel/cli/output.h"
#include "kernel/cli/usage.h"
#include "kernel/config/text.h"
#include "kernel/daemon/engine.h"
#include "kernel/daemon/plan_remarks.h"
#include "kernel/daemon/read_plan.h"
#include "kernel/env/block_on.h"
#include "kernel/env/real_environment.h"
#include "kernel/log/metrics_registry.h"
#include "kernel/log/stderr_log.h"

namespace millrace::kernel::cli {

namespace {

// What code of plugins runs in.
struct Room {
  // Who asks wants the verdict alone.
  StderrLog sink{{.others = LogLevel::error, .of = {}}, "text"};
  MetricsRegistry metrics;
  std::unique_ptr<RealEnvironment> environment;
};

Result<std::vector<Error>> try_out(Plan plan) {
  auto room = std::make_unique<Room>();
  MR_TRY(room->environment, RealEnvironment::start({.shards = 1, .workers = 1},
                                                   Log(room->sink, "environment"), room->metrics));
  auto wrong = [&] {
    Engine engine(std::move(plan), {*room->environment, room->sink, room->metrics});
    return block_on(room->environment->control(), [&engine] { return engine.check(); });
  }();
  room->environment->stop();
  // An operator that never came back is still in there.
  if (room->environment->threads_lent() > 0) {
    [[maybe_unused]] const auto* left_behind = room.release();
  }
  return wrong;
}

Result<> check(const Context& context, const ConfigSource& source) {
  namespace json = boost::json;
  MR_TRY(const auto verdict, check_configuration(source, context.trial));
  const auto mistakes = verdict.wrong.size();
  if (context.output == OutputFormat::json) {
    json::array errors;
    for (const auto& line : verdict.wrong) {
      const auto place = place_of_wrong(line);
      errors.emplace_back(json::object{{"source", place.source},
                                       {"line", place.line},
                                       {"column", place.column},
                                       {"message", place.message}});
    }
    json::array warnings(verdict.remarks.begin(), verdict.remarks.end());
    print_json(json::object{{"file", source.path},
                            {"good", mistakes == 0},
                            {"errors", std::move(errors)},
                            {"warnings", std::move(warnings)}});
  } else {
    for (const auto& line : verdict.wrong) std::cout << line << '\n';
    for (const auto& line : verdict.remarks) std::cout << "warning: " << line << '\n';
    if (mistakes == 0) std::cout << source.path << ": the configuration is good\n";
  }
  if (mistakes == 0) return {};
  return Error{Errc::conflict,
               concat(source.path, ": ", mistakes, mistakes == 1 ? " mistake" : " mistakes")};
}

}  // namespace

Result<ConfigVerdict> check_configuration(const ConfigSource& source, const PluginTrial& trial) {
  ConfigVerdict verdict;
  auto plan = read_plan(source, [&trial](const std::string& path, std::string_view kind) {
    return load_tried(path, kind, trial);
  });
  if (!plan) {
    for (const auto& error : plan.error()) verdict.wrong.push_back(to_string(error));
    return verdict;
  }
  auto& config = verdict.config.emplace();
  for (const auto& plugin : plan->plugins) config.plugins.push_back(plugin.request);
  config.settings = plan->settings;
  config.plugin_folders = plan->plugin_folders;
  verdict.remarks = warnings_of(*plan);
  MR_TRY(auto wrong, try_out(*std::move(plan)));
  for (auto& error : wrong) verdict.wrong.push_back(std::move(error.detail));
  return verdict;
}

WrongPlace place_of_wrong(const std::string& line) {
  // A file's name may have ": " in it, so the numbers before decide.
  for (auto end = line.find(": "); end != std::string::npos; end = line.find(": ", end + 1)) {
    const auto place = std::string_view(line).substr(0, end);
    if (place.starts_with("--set ")) return {std::string(place), 0, 0, line.substr(end + 2)};
    const auto second = place.rfind(':');
    if (second == std::string_view::npos || second == 0) continue;
    const auto first = place.rfind(':', second - 1);
    if (first == std::string_view::npos) continue;
    const auto row = doctor::unsigned_of(place.substr(first + 1, second - first - 1));
    const auto column = doctor::unsigned_of(place.substr(second + 1));
    if (!row || !column) continue;
    return {std::string(place.substr(0, first)), static_cast<std::uint32_t>(*row),
            static_cast<std::uint32_t>(*column), line.substr(end + 2)};
  }
  return {"", 0, 0, line};
}

void add_config_check_verb(CLI::App& parent, Context& context, Action& action) {
  auto* verb = parent.add_subcommand(
      "check", "tell all that is wrong with a configuration, as millraced --check does");
  const auto source = std::make_shared<ConfigSource>();
  verb->add_option("FILE", source->path, "the TOML file; conf.d/*.toml beside it is read too")
      ->required()
      ->check(not_empty);
  verb->add_option("--set", source->sets, "one key, after all files, as millraced is given it")
      ->type_name("KEY=VALUE")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->expected(1)
      ->allow_extra_args(false);
  add_examples(*verb, {"millrace config check /etc/millrace/millrace.toml"});
  verb->callback([&context, &action, source] {
    action = [&context, source] { return check(context, *source); };
  });
}

}  // namespace millrace::kernel::cli
