#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <millrace/configs.h>
#include <millrace/kafka/alter_configs.h>
#include <millrace/kafka/describe_configs.h>
#include <millrace/kafka/incremental_alter_configs.h>
#include <millrace/kafka/list_config_resources.h>

#include "handlers.h"
#include "names.h"

namespace millrace::kafka_transport {
namespace {

ConfigResource resource_of(std::int8_t type, std::string_view name) {
  return {static_cast<ConfigResourceType>(type), std::string(name)};
}
std::int8_t number_of(ConfigResourceType type) { return static_cast<std::int8_t>(type); }

// ---- DescribeConfigs ----

struct Description {
  std::vector<ConfigQuery> queries;
  bool synonyms = false;
  bool documentation = false;
  DescribeConfigsFeatures features;
};

Result<Description> read_description(const Request& request) {
  MR_TRY(const auto asked, request.decode<kafka::DescribeConfigsRequest>());
  Description description{.queries = {},
                          .synonyms = asked.include_synonyms,
                          .documentation = asked.include_documentation,
                          .features = describe_configs_features(request.head.version)};
  for (const auto& resource : asked.resources) {
    auto& query = description.queries.emplace_back();
    query.resource = resource_of(resource.resource_type, resource.resource_name);
    if (!resource.configuration_keys) continue;
    for (const auto name : *resource.configuration_keys) query.names.emplace_back(name);
  }
  return description;
}

kafka::DescribeConfigsResponse::Config write_entry(const ConfigEntry& entry,
                                                   const Description& asked) {
  using Written = std::optional<std::string_view>;
  const auto shown = [&entry](const std::optional<std::string>& value) {
    return value && !entry.sensitive ? Written(*value) : std::nullopt;
  };
  kafka::DescribeConfigsResponse::Config config;
  config.name = entry.name;
  config.value = shown(entry.value);
  config.read_only = entry.read_only;
  if (asked.features.sources) {
    config.config_source = static_cast<std::int8_t>(entry.source);
  } else {
    config.is_default = entry.source == ConfigSource::fallback;
  }
  config.is_sensitive = entry.sensitive;
  config.config_type = static_cast<std::int8_t>(entry.type);
  config.documentation = asked.documentation ? Written(entry.documentation) : std::nullopt;
  if (!asked.synonyms) return config;
  for (const auto& synonym : entry.synonyms) {
    config.synonyms.emplace_back(synonym.name, shown(synonym.value),
                                 static_cast<std::int8_t>(synonym.source));
  }
  return config;
}

kafka::DescribeConfigsResponse::Result write_described(const ConfigsDescribed& described,
                                                       const Description& asked) {
  kafka::DescribeConfigsResponse::Result result;
  result.error_code = code_of(described.error);
  result.error_message = bounded_message(described.message);
  result.resource_type = number_of(described.resource.type);
  result.resource_name = described.resource.name;
  for (const auto& entry : described.entries) result.configs.push_back(write_entry(entry, asked));
  return result;
}

// ---- AlterConfigs, IncrementalAlterConfigs ----

Result<AlterConfigsRequest> read_replacement(const Request& request) {
  MR_TRY(const auto asked, request.decode<kafka::AlterConfigsRequest>());
  AlterConfigsRequest wanted{.alterations = {}, .validate_only = asked.validate_only};
  for (const auto& resource : asked.resources) {
    auto& alteration = wanted.alterations.emplace_back();
    alteration.resource = resource_of(resource.resource_type, resource.resource_name);
    alteration.replace_all = true;
    for (const auto& config : resource.configs) {
      alteration.changes.push_back({.name = std::string(config.name),
                                    .operation = ConfigOperation::set,
                                    .value = owned(config.value)});
    }
  }
  return wanted;
}

Result<AlterConfigsRequest> read_changes(const Request& request) {
  MR_TRY(const auto asked, request.decode<kafka::IncrementalAlterConfigsRequest>());
  AlterConfigsRequest wanted{.alterations = {}, .validate_only = asked.validate_only};
  for (const auto& resource : asked.resources) {
    auto& alteration = wanted.alterations.emplace_back();
    alteration.resource = resource_of(resource.resource_type, resource.resource_name);
    for (const auto& config : resource.configs) {
      alteration.changes.push_back(
          {.name = std::string(config.name),
           .operation = static_cast<ConfigOperation>(config.config_operation),
           .value = owned(config.value)});
    }
  }
  return wanted;
}

template <class Response>
Response write_altered(const std::vector<ConfigsAltered>& altered) {
  Response response;
  for (const auto& one : altered) {
    response.responses.emplace_back(code_of(one.error), message_of(one.message),
                                    number_of(one.resource.type), one.resource.name);
  }
  return response;
}

}  // namespace

Task<Payload> handle_describe_configs(Request& request) {
  MR_CO_TRY(auto asked, read_description(request));
  auto describing = request.broker.configs().describe(request.session, std::move(asked.queries));
  MR_CO_TRY(const auto described, co_await std::move(describing));
  kafka::DescribeConfigsResponse response;
  for (const auto& one : described) response.results.push_back(write_described(one, asked));
  co_return request.encode(response);
}

Task<Payload> handle_alter_configs(Request& request) {
  MR_CO_TRY(auto wanted, read_replacement(request));
  auto altering = request.broker.configs().alter(request.session, std::move(wanted));
  MR_CO_TRY(const auto altered, co_await std::move(altering));
  co_return request.encode(write_altered<kafka::AlterConfigsResponse>(altered));
}

Task<Payload> handle_incremental_alter_configs(Request& request) {
  MR_CO_TRY(auto wanted, read_changes(request));
  auto altering = request.broker.configs().alter(request.session, std::move(wanted));
  MR_CO_TRY(const auto altered, co_await std::move(altering));
  co_return request.encode(write_altered<kafka::IncrementalAlterConfigsResponse>(altered));
}

Task<Payload> handle_list_config_resources(Request& request) {
  MR_CO_TRY(const auto asked, request.decode<kafka::ListConfigResourcesRequest>());
  std::vector<ConfigResourceType> types;
  for (const auto type : asked.resource_types) {
    types.push_back(static_cast<ConfigResourceType>(type));
  }
  if (!config_resources_features(request.head.version).all_types) {
    types = {ConfigResourceType::client_metrics};
  }
  auto listing = request.broker.configs().list(request.session, std::move(types));
  MR_CO_TRY(const auto resources, co_await std::move(listing));
  kafka::ListConfigResourcesResponse response;
  for (const auto& resource : resources) {
    response.config_resources.emplace_back(resource.name, number_of(resource.type));
  }
  co_return request.encode(response);
}

}  // namespace millrace::kafka_transport
