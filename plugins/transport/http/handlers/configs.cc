// /admin/topics/NAME/configs and /admin/brokers/ID/configs: shown and changed.
#include <utility>

#include <boost/json/parse.hpp>

#include "../json.h"
#include "../members.h"
#include "config_json.h"
#include "handlers.h"

namespace millrace::http_transport {
namespace {

namespace json = boost::json;

std::string_view name_of(ConfigSource source) {
  switch (source) {
    case ConfigSource::topic: return "topic";
    case ConfigSource::broker: return "broker";
    case ConfigSource::all_brokers: return "all brokers";
    case ConfigSource::static_broker: return "configuration file";
    case ConfigSource::broker_logger: return "log level";
    case ConfigSource::fallback: break;
  }
  return "default";
}

/// `{"retention.ms": 1000, "cleanup.policy": null}`: null takes a setting away.
Result<std::vector<ConfigChange>> read_changes(const std::string& body) {
  boost::json::error_code error;
  const auto value = json::parse(body, error);
  if (error || !value.is_object()) {
    return Error{Errc::invalid_argument,
                 "expected an object of settings, such as {\"retention.ms\": 1000}"};
  }
  std::vector<ConfigChange> changes;
  for (const auto& [key, written] : value.get_object()) {
    MR_TRY(auto text, setting_text(key, written));
    const auto operation = text ? ConfigOperation::set : ConfigOperation::remove;
    changes.push_back({std::string(key), operation, std::move(text)});
  }
  return changes;
}

Task<HttpResponse> show(Exchange& exchange, ConfigResource resource) {
  auto reading = read_configs(exchange, std::move(resource));
  MR_CO_TRY(const auto described, co_await std::move(reading));
  if (described.error != ErrorCode::none) {
    co_return error_response(described.error, described.message);
  }
  co_return json_response({{"configs", configs_json(described)}});
}

/// Answers what it came to.
Task<HttpResponse> change(Exchange& exchange, ConfigResource resource) {
  auto changes = read_changes(exchange.request.body);
  if (!changes) co_return bad_body(changes.error());
  AlterConfigsRequest request;
  request.alterations.push_back({resource, *std::move(changes), false});
  auto altering = exchange.services.broker.configs().alter(exchange.session, std::move(request));
  MR_CO_TRY(const auto answers, co_await std::move(altering));
  const auto& altered = answers.at(0);
  if (altered.error != ErrorCode::none) co_return error_response(altered.error, altered.message);
  auto showing = show(exchange, std::move(resource));
  co_return co_await std::move(showing);
}

}  // namespace

Task<ConfigsDescribed> read_configs(Exchange& exchange, ConfigResource resource) {
  std::vector<ConfigQuery> queries;
  queries.push_back({std::move(resource), {}});
  auto asking = exchange.services.broker.configs().describe(exchange.session, std::move(queries));
  MR_CO_TRY(auto answers, co_await std::move(asking));
  co_return std::move(answers.at(0));
}

json::object configs_json(const ConfigsDescribed& described) {
  json::object configs;
  for (const auto& entry : described.entries) {
    json::object shown{{"value", nullptr}, {"source", name_of(entry.source)}};
    if (entry.value && !entry.sensitive) shown["value"] = *entry.value;
    if (entry.read_only) shown["read_only"] = true;
    if (entry.sensitive) shown["sensitive"] = true;
    configs[entry.name] = std::move(shown);
  }
  return configs;
}

Task<HttpResponse> handle_topic_configs(Exchange& exchange) {
  return show(exchange, {ConfigResourceType::topic, exchange.arguments.front()});
}
Task<HttpResponse> handle_change_topic_configs(Exchange& exchange) {
  return change(exchange, {ConfigResourceType::topic, exchange.arguments.front()});
}
Task<HttpResponse> handle_broker_configs(Exchange& exchange) {
  return show(exchange, {ConfigResourceType::broker, exchange.arguments.front()});
}
Task<HttpResponse> handle_change_broker_configs(Exchange& exchange) {
  return change(exchange, {ConfigResourceType::broker, exchange.arguments.front()});
}

}  // namespace millrace::http_transport
