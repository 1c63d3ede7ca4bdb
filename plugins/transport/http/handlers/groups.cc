// /admin/groups: listed, shown with what they have read and what is left, deleted.
#include <algorithm>
#include <map>
#include <utility>

#include <boost/json/array.hpp>

#include <millrace/groups.h>
#include <millrace/kafka/consumer_assignment.h>

#include "../json.h"
#include "handlers.h"

namespace millrace::http_transport {
namespace {

namespace json = boost::json;

struct Shown {
  ErrorCode error = ErrorCode::none;
  json::object group;
};

HttpResponse no_groups() {
  return error_response(404, "not_loaded", "no plugin that offers consumer groups is loaded");
}

json::value or_null(const std::optional<std::string>& text) {
  return text ? json::value(*text) : json::value(nullptr);
}

json::array partitions_json(const std::vector<TopicPartition>& partitions) {
  json::array shown;
  for (const auto& one : partitions) {
    shown.push_back({{"topic", one.topic}, {"partition", one.partition}});
  }
  return shown;
}

template <class Member>
json::object member_json(const Member& member, const std::vector<TopicPartition>& partitions) {
  return {{"member_id", member.member_id},
          {"instance_id", or_null(member.instance_id)},
          {"client_id", member.client_id},
          {"host", member.client_host},
          {"partitions", partitions_json(partitions)}};
}

json::object consumer_group_json(const ConsumerGroupDescribed& group) {
  json::array members;
  for (const auto& member : group.members) {
    std::vector<TopicPartition> partitions;
    for (const auto& topic : member.assignment.topics) {
      for (const auto number : topic.partitions) partitions.push_back({topic.name, number});
    }
    std::ranges::sort(partitions);
    auto& shown = members.emplace_back(member_json(member, partitions)).get_object();
    shown["epoch"] = member.member_epoch;
  }
  return {{"group", group.group},       {"type", "consumer"},
          {"state", group.state},       {"epoch", group.group_epoch},
          {"assignor", group.assignor}, {"members", std::move(members)}};
}

json::object classic_group_json(const GroupDescribed& group) {
  json::array members;
  for (const auto& member : group.members) {
    std::vector<TopicPartition> partitions;
    if (group.protocol_type == "consumer") {
      partitions = kafka::read_consumer_assignment(member.assignment).value_or(partitions);
    }
    members.push_back(member_json(member, partitions));
  }
  return {{"group", group.group},       {"type", "classic"},
          {"state", group.state},       {"protocol_type", group.protocol_type},
          {"assignor", group.protocol}, {"members", std::move(members)}};
}

/// Of whichever protocol it is.
Task<Shown> describe(Exchange& exchange, std::string name) {
  auto& groups = *exchange.services.groups;
  auto asking_new = groups.describe_consumer_groups({name});
  MR_CO_TRY(const auto newer, co_await std::move(asking_new));
  if (!newer.empty() && newer[0].error == ErrorCode::none) {
    co_return Shown{ErrorCode::none, consumer_group_json(newer[0])};
  }
  auto asking = groups.describe({name});
  MR_CO_TRY(const auto described, co_await std::move(asking));
  if (described.empty()) co_return Shown{ErrorCode::group_id_not_found, {}};
  if (described[0].error != ErrorCode::none) co_return Shown{described[0].error, {}};
  co_return Shown{ErrorCode::none, classic_group_json(described[0])};
}

/// Where the logs of these topics end, of partitions that this broker leads.
Task<std::map<TopicPartition, Offset>> ends_of(Exchange& exchange,
                                               std::vector<GroupOffsets::Topic> topics) {
  ListOffsetsRequest request;
  for (const auto& topic : topics) {
    auto& query = request.topics.emplace_back(topic.topic.name);
    for (const auto& partition : topic.partitions) {
      query.partitions.push_back({.partition = partition.partition,
                                  .timestamp = static_cast<std::int64_t>(OffsetSpec::latest)});
    }
  }
  auto asking = exchange.services.broker.list_offsets(exchange.session, std::move(request));
  MR_CO_TRY(const auto answer, co_await std::move(asking));
  std::map<TopicPartition, Offset> ends;
  for (const auto& topic : answer.topics) {
    for (const auto& found : topic.partitions) {
      if (found.error == ErrorCode::none) ends[{topic.topic, found.partition}] = found.offset;
    }
  }
  co_return ends;
}

Task<json::array> offsets_json(Exchange& exchange, std::string group) {
  std::vector<GroupOffsetsQuery> queries;
  queries.emplace_back().group = std::move(group);
  auto asking = exchange.services.groups->offsets(std::move(queries), false);
  MR_CO_TRY(auto answers, co_await std::move(asking));
  json::array shown;
  if (answers.empty() || answers[0].error != ErrorCode::none) co_return shown;
  auto& topics = answers[0].topics;
  auto ending = ends_of(exchange, topics);
  MR_CO_TRY(const auto ends, co_await std::move(ending));
  for (const auto& topic : topics) {
    for (const auto& partition : topic.partitions) {
      if (partition.offset.value < 0) continue;
      auto& line = shown
                       .emplace_back(json::object{{"topic", topic.topic.name},
                                                  {"partition", partition.partition},
                                                  {"committed", partition.offset.value},
                                                  {"metadata", partition.metadata}})
                       .get_object();
      const auto end = ends.find({topic.topic.name, partition.partition});
      if (end == ends.end()) continue;
      line["end"] = end->second.value;
      line["lag"] = std::max<std::int64_t>(end->second - partition.offset, 0);
    }
  }
  co_return shown;
}

}  // namespace

Task<HttpResponse> handle_list_groups(Exchange& exchange) {
  if (!exchange.services.groups) co_return no_groups();
  auto listing = exchange.services.groups->list({});
  MR_CO_TRY(const auto listed, co_await std::move(listing));
  if (listed.error != ErrorCode::none) co_return error_response(listed.error, {});
  json::array groups;
  for (const auto& group : listed.groups) {
    groups.push_back({{"group", group.group},
                      {"state", group.state},
                      {"type", group.type},
                      {"protocol_type", group.protocol_type}});
  }
  co_return json_response({{"groups", std::move(groups)}});
}

Task<HttpResponse> handle_show_group(Exchange& exchange) {
  if (!exchange.services.groups) co_return no_groups();
  const auto name = exchange.arguments.front();
  auto describing = describe(exchange, name);
  MR_CO_TRY(auto shown, co_await std::move(describing));
  if (shown.error != ErrorCode::none) {
    const bool missing = shown.error == ErrorCode::group_id_not_found;
    co_return error_response(shown.error, missing ? "there is no group " + name : "");
  }
  auto reading = offsets_json(exchange, name);
  MR_CO_TRY(shown.group["offsets"], co_await std::move(reading));
  co_return json_response(std::move(shown.group));
}

Task<HttpResponse> handle_delete_group(Exchange& exchange) {
  if (!exchange.services.groups) co_return no_groups();
  const auto name = exchange.arguments.front();
  auto deleting = exchange.services.groups->remove({name});
  MR_CO_TRY(const auto deleted, co_await std::move(deleting));
  const auto error = deleted.empty() ? ErrorCode::group_id_not_found : deleted.front().error;
  if (error == ErrorCode::group_id_not_found) {
    co_return error_response(error, "there is no group " + name);
  }
  if (error == ErrorCode::non_empty_group) {
    co_return error_response(error, "group " + name + " has members: stop them first");
  }
  if (error != ErrorCode::none) co_return error_response(error, {});
  co_return json_response({{"deleted", name}});
}

}  // namespace millrace::http_transport
