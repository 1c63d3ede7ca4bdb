// /admin/topics: listed, shown, made, grown, removed.
#include <chrono>
#include <limits>
#include <utility>

#include <boost/json/array.hpp>

#include <millrace/admin.h>

#include "../json.h"
#include "../members.h"
#include "config_json.h"
#include "handlers.h"

namespace millrace::http_transport {
namespace {

namespace json = boost::json;

constexpr Duration change_max = std::chrono::seconds(30);
constexpr auto int32_max = std::numeric_limits<std::int32_t>::max();
constexpr auto int16_max = std::numeric_limits<std::int16_t>::max();

Task<MetadataAnswer> describe(Exchange& exchange, std::string topic) {
  MetadataRequest request;
  request.topics.emplace().push_back({std::move(topic), {}});
  auto asking = exchange.services.broker.metadata(exchange.session, std::move(request));
  co_return co_await std::move(asking);
}

/// What this broker keeps of one topic, by partition.
Task<std::vector<PartitionSize>> sizes_of(Exchange& exchange, TopicInfo topic) {
  std::vector<TopicPartitions> wanted;
  auto& partitions = wanted.emplace_back(topic.topic.name).partitions;
  for (const auto& partition : topic.partitions) partitions.push_back(partition.partition);
  auto asking =
      exchange.services.broker.admin().describe_log_folders(exchange.session, std::move(wanted));
  MR_CO_TRY(auto folders, co_await std::move(asking));
  std::vector<PartitionSize> sizes;
  for (auto& folder : folders) {
    for (auto& found : folder.topics) {
      sizes.insert(sizes.end(), found.partitions.begin(), found.partitions.end());
    }
  }
  co_return sizes;
}

json::object partition_json(const PartitionInfo& info, const std::vector<PartitionSize>& sizes) {
  json::object partition{{"partition", info.partition},
                         {"leader", info.leader},
                         {"leader_epoch", info.leader_epoch.value},
                         {"replicas", json::array(info.replicas.begin(), info.replicas.end())},
                         {"in_sync", json::array(info.in_sync.begin(), info.in_sync.end())}};
  if (info.error != ErrorCode::none) partition["error"] = name_of(info.error);
  const auto size = std::ranges::find(sizes, info.partition, &PartitionSize::partition);
  if (size == sizes.end()) return partition;  // it is kept elsewhere
  partition["log_start"] = size->log_start.value;
  partition["last_stable"] = size->last_stable.value;
  partition["high_watermark"] = size->high_watermark.value;
  partition["log_end"] = size->end.value;
  partition["bytes"] = size->bytes;
  return partition;
}

json::object topic_json(const TopicInfo& topic) {
  return {
      {"name", topic.topic.name}, {"id", to_string(topic.topic.id)}, {"internal", topic.internal}};
}

/// `{"name": "orders", "partitions": 3, "replication_factor": 1, "configs": {"retention.ms": 1000},
/// "validate_only": false}`; all but the name may be left out.
Result<CreateTopicsRequest> read_creation(const std::string& body) {
  MR_TRY(auto members, Members::read(body));
  MR_TRY(auto name, members.text("name"));
  if (!name) return Error{Errc::invalid_argument, "name: expected a text, found nothing"};
  MR_TRY(const auto partitions, members.integer("partitions", 1, int32_max));
  MR_TRY(const auto replicas, members.integer("replication_factor", 1, int16_max));
  MR_TRY(const auto configs, members.object("configs"));
  MR_TRY(const auto validate_only, members.boolean("validate_only"));
  MR_CHECK(members.end());

  CreateTopicsRequest request{
      .topics = {}, .timeout = change_max, .validate_only = validate_only.value_or(false)};
  auto& topic = request.topics.emplace_back();
  topic.name = *std::move(name);
  topic.partitions = static_cast<std::int32_t>(partitions.value_or(-1));
  topic.replication_factor = static_cast<std::int16_t>(replicas.value_or(-1));
  for (const auto& [key, value] : configs.value_or(json::object())) {
    MR_TRY(auto text, setting_text(key, value));
    topic.configs.emplace_back(std::string(key), std::move(text));
  }
  return request;
}

/// `{"partitions": 6}`.
Result<std::int32_t> read_growth(const std::string& body) {
  MR_TRY(auto members, Members::read(body));
  MR_TRY(const auto partitions, members.integer("partitions", 1, int32_max));
  MR_CHECK(members.end());
  if (!partitions) return Error{Errc::invalid_argument, "partitions: expected a number of them"};
  return static_cast<std::int32_t>(*partitions);
}

}  // namespace

Task<HttpResponse> handle_list_topics(Exchange& exchange) {
  auto asking = exchange.services.broker.metadata(exchange.session, {});
  MR_CO_TRY(const auto answer, co_await std::move(asking));
  json::array topics;
  for (const auto& topic : answer.topics) {
    auto& shown = topics.emplace_back(topic_json(topic)).get_object();
    shown["partitions"] = topic.partitions.size();
  }
  co_return json_response({{"topics", std::move(topics)}});
}

Task<HttpResponse> handle_show_topic(Exchange& exchange) {
  const auto name = exchange.arguments.front();
  auto describing = describe(exchange, name);
  MR_CO_TRY(const auto answer, co_await std::move(describing));
  const auto& topic = answer.topics.at(0);
  if (topic.error != ErrorCode::none) {
    co_return error_response(topic.error, "there is no topic " + name);
  }
  auto measuring = sizes_of(exchange, topic);
  MR_CO_TRY(const auto sizes, co_await std::move(measuring));
  auto reading = read_configs(exchange, {ConfigResourceType::topic, name});
  MR_CO_TRY(const auto configs, co_await std::move(reading));

  auto shown = topic_json(topic);
  json::array partitions;
  for (const auto& info : topic.partitions) partitions.push_back(partition_json(info, sizes));
  shown["partitions"] = std::move(partitions);
  shown["configs"] = configs_json(configs);
  co_return json_response(std::move(shown));
}

Task<HttpResponse> handle_create_topic(Exchange& exchange) {
  auto request = read_creation(exchange.request.body);
  if (!request) co_return bad_body(request.error());
  auto creating =
      exchange.services.broker.admin().create_topics(exchange.session, *std::move(request));
  MR_CO_TRY(const auto answers, co_await std::move(creating));
  const auto& created = answers.at(0);
  if (created.error != ErrorCode::none) co_return error_response(created.error, created.message);
  co_return json_response({{"name", created.name},
                           {"id", to_string(created.id)},
                           {"partitions", created.partitions},
                           {"replication_factor", created.replication_factor}},
                          201);
}

Task<HttpResponse> handle_grow_topic(Exchange& exchange) {
  const auto partitions = read_growth(exchange.request.body);
  if (!partitions) co_return bad_body(partitions.error());
  GrowTopicsRequest request{.topics = {}, .timeout = change_max};
  request.topics.push_back({exchange.arguments.front(), *partitions, std::nullopt});
  auto growing = exchange.services.broker.admin().grow_topics(exchange.session, std::move(request));
  MR_CO_TRY(const auto answers, co_await std::move(growing));
  const auto& grown = answers.at(0);
  if (grown.error != ErrorCode::none) co_return error_response(grown.error, grown.message);
  co_return json_response({{"name", grown.name}, {"partitions", *partitions}});
}

Task<HttpResponse> handle_delete_topic(Exchange& exchange) {
  std::vector<TopicName> topics;
  topics.push_back({exchange.arguments.front(), {}});
  auto deleting = exchange.services.broker.admin().delete_topics(exchange.session,
                                                                 std::move(topics), change_max);
  MR_CO_TRY(const auto answers, co_await std::move(deleting));
  const auto& deleted = answers.at(0);
  if (deleted.error != ErrorCode::none) co_return error_response(deleted.error, deleted.message);
  co_return json_response({{"deleted", exchange.arguments.front()}});
}

}  // namespace millrace::http_transport
