// /admin/brokers, and what this broker is as a program: /admin/plugins, /admin/config,
// /admin/log-level.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <optional>
#include <utility>

#include <boost/json/array.hpp>

#include <millrace/plugin_starts.h>
#include <millrace/streams.h>

#include "../json.h"
#include "../members.h"
#include "handlers.h"

namespace millrace::http_transport {
namespace {

namespace json = boost::json;

HttpResponse no_operations() {
  return error_response(501, "not_offered", "this kernel does not tell how it runs");
}

std::optional<LogLevel> level_of(std::string_view name) {
  for (const auto level :
       {LogLevel::trace, LogLevel::debug, LogLevel::info, LogLevel::warning, LogLevel::error}) {
    if (name_of(level) == name) return level;
  }
  return std::nullopt;
}

json::object levels_json(const std::vector<LogLevelFact>& facts) {
  json::object levels{{"level", nullptr}};
  json::object subsystems;
  for (const auto& [subsystem, level] : facts) {
    if (subsystem.empty()) {
      levels["level"] = name_of(level);
    } else {
      subsystems[subsystem] = name_of(level);
    }
  }
  levels["subsystems"] = std::move(subsystems);
  return levels;
}

struct LevelChange {
  std::string subsystem;
  std::optional<LogLevel> level;
};

/// `{"subsystem": "storage.filelog", "level": "debug"}`: without a subsystem for everything that
/// has no level of its own; null takes a level away.
Result<LevelChange> read_level(const std::string& body) {
  MR_TRY(auto members, Members::read(body));
  MR_TRY(auto subsystem, members.text("subsystem"));
  MR_TRY(const auto written, members.any("level"));
  MR_CHECK(members.end());
  LevelChange change{std::move(subsystem).value_or(""), std::nullopt};
  if (written.is_null()) return change;
  if (written.is_string()) change.level = level_of(written.get_string());
  if (change.level) return change;
  return Error{Errc::invalid_argument,
               "level: expected trace, debug, info, warning, error or null"};
}

/// Where the configuration has, or would have, what the plugin is set by.
std::string table_of(const PluginFact& plugin) {
  const bool one_of_its_kind = plugin.kind == "storage" || plugin.kind == "coordination";
  return one_of_its_kind ? plugin.kind : plugin.kind + '.' + plugin.instance;
}

json::value since_json(const std::vector<PluginStart>& starts, const PluginFact& plugin) {
  const auto start = std::ranges::find_if(starts, [&plugin](const PluginStart& one) {
    return one.kind == plugin.kind && one.instance == plugin.instance;
  });
  if (start == starts.end()) return nullptr;
  const auto time = std::chrono::floor<std::chrono::seconds>(
      std::chrono::sys_time<std::chrono::milliseconds>(std::chrono::milliseconds(start->since.ms)));
  const auto day = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(time - day);
  std::array<char, 32> text;
  const auto written = std::snprintf(
      text.data(), text.size(), "%04d-%02u-%02uT%02d:%02d:%02dZ", static_cast<int>(date.year()),
      static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
      static_cast<int>(clock.hours().count()), static_cast<int>(clock.minutes().count()),
      static_cast<int>(clock.seconds().count()));
  return json::string(text.data(), static_cast<std::size_t>(written));
}

void add_steps(const StreamFact& stream, json::array& steps) {
  for (const auto& step : stream.steps) {
    steps.push_back(json::object{{"stream", stream.spec.name},
                                 {"step", step.name},
                                 {"state", stream.state},
                                 {"id", step.id},
                                 {"version", step.version},
                                 {"path", step.path},
                                 {"table", "stream." + stream.spec.name}});
  }
}

}  // namespace

Task<HttpResponse> handle_brokers(Exchange& exchange) {
  MetadataRequest request;
  request.topics.emplace();
  auto asking = exchange.services.broker.metadata(exchange.session, std::move(request));
  MR_CO_TRY(const auto answer, co_await std::move(asking));
  json::array brokers;
  for (const auto& broker : answer.brokers) {
    brokers.push_back(json::object{
        {"id", broker.id}, {"address", to_string(broker.address)}, {"rack", broker.rack}});
  }
  co_return json_response({{"cluster_id", answer.cluster_id},
                           {"controller", answer.controller_id},
                           {"brokers", std::move(brokers)}});
}

Task<HttpResponse> handle_plugins(Exchange& exchange) {
  const auto* operations = exchange.services.operations;
  if (operations == nullptr) co_return no_operations();
  auto* streams = exchange.services.broker.service<Streams>();
  std::vector<StreamFact> running;
  if (streams != nullptr) {
    auto asking = streams->list();
    MR_CO_TRY(running, co_await std::move(asking));
  }
  const auto* told = exchange.services.broker.service<PluginStarts>();
  const auto starts = told == nullptr ? std::vector<PluginStart>() : told->plugin_starts();
  json::array plugins;
  for (const auto& plugin : operations->plugins()) {
    plugins.push_back(json::object{{"kind", plugin.kind},
                                   {"instance", plugin.instance},
                                   {"id", plugin.id},
                                   {"version", plugin.version},
                                   {"path", plugin.path},
                                   {"table", table_of(plugin)},
                                   {"since", since_json(starts, plugin)}});
  }
  json::array steps;
  for (const auto& stream : running) add_steps(stream, steps);
  co_return json_response({{"plugins", std::move(plugins)}, {"steps", std::move(steps)}});
}

Task<HttpResponse> handle_config(Exchange& exchange) {
  const auto* operations = exchange.services.operations;
  if (operations == nullptr) co_return no_operations();
  json::object settings;
  for (const auto& setting : operations->settings()) {
    json::object shown{{"value", setting.value}, {"source", setting.source}};
    if (setting.secret) {
      shown["value"] = nullptr;
      shown["sensitive"] = true;
    }
    settings[setting.key] = std::move(shown);
  }
  co_return json_response({{"settings", std::move(settings)}});
}

Task<HttpResponse> handle_log_levels(Exchange& exchange) {
  const auto* operations = exchange.services.operations;
  if (operations == nullptr) co_return no_operations();
  co_return json_response(levels_json(operations->log_levels()));
}

Task<HttpResponse> handle_change_log_level(Exchange& exchange) {
  auto* operations = exchange.services.operations;
  if (operations == nullptr) co_return no_operations();
  const auto change = read_level(exchange.request.body);
  if (!change) co_return bad_body(change.error());
  const auto changed = operations->set_log_level(change->subsystem, change->level);
  if (!changed) co_return bad_body(changed.error());
  exchange.services.log.info("log level changed",
                             {{"subsystem", change->subsystem.empty() ? "all" : change->subsystem},
                              {"level", change->level ? name_of(*change->level) : "none"}});
  co_return json_response(levels_json(operations->log_levels()));
}

}  // namespace millrace::http_transport
