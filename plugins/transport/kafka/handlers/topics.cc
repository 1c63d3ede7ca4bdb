#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <millrace/admin.h>
#include <millrace/kafka/create_partitions.h>
#include <millrace/kafka/create_topics.h>
#include <millrace/kafka/delete_topics.h>

#include "handlers.h"
#include "names.h"

namespace millrace::kafka_transport {
namespace {

constexpr std::string_view duplicate_name = "Duplicate topic name.";

// ---- CreateTopics ----

struct Creation {
  CreateTopicsRequest request;
  std::vector<TopicCreated> refused;
};

/// False when a partition is assigned twice.
bool read_assignments(const kafka::CreateTopicsRequest::Topic& asked, NewTopic& topic) {
  for (const auto& assignment : asked.assignments) {
    const auto added = topic.assignments.emplace(assignment.partition_index, assignment.broker_ids);
    if (!added.second) return false;
  }
  return true;
}

Result<Creation> read_creation(const Request& request) {
  MR_TRY(const auto asked, request.decode<kafka::CreateTopicsRequest>());
  Creation creation;
  creation.request.timeout = milliseconds(asked.timeout_ms);
  creation.request.validate_only = asked.validate_only;
  std::map<std::string_view, int> uses;
  for (const auto& topic : asked.topics) ++uses[topic.name];

  const auto refuse = [&](std::string_view name, ErrorCode error, std::string message) {
    creation.refused.push_back(
        {.name = std::string(name), .error = error, .message = std::move(message)});
  };
  for (const auto& topic : asked.topics) {
    const auto used = uses[topic.name];
    if (used > 1) {
      uses[topic.name] = 0;  // told once
      refuse(topic.name, ErrorCode::invalid_request, std::string(duplicate_name));
    }
    if (used != 1) continue;
    NewTopic wanted{.name = std::string(topic.name),
                    .partitions = topic.num_partitions,
                    .replication_factor = topic.replication_factor};
    if (!read_assignments(topic, wanted)) {
      refuse(topic.name, ErrorCode::invalid_replica_assignment, "a partition is assigned twice");
      continue;
    }
    for (const auto& config : topic.configs) {
      wanted.configs.emplace_back(std::string(config.name), owned(config.value));
    }
    creation.request.topics.push_back(std::move(wanted));
  }
  return creation;
}

kafka::CreateTopicsResponse::Topic write_created(const TopicCreated& created) {
  kafka::CreateTopicsResponse::Topic topic;
  topic.name = created.name;
  topic.topic_id = created.id;
  topic.error_code = code_of(created.error);
  topic.error_message = message_of(created.message);
  topic.num_partitions = created.partitions;
  topic.replication_factor = created.replication_factor;
  auto& configs = topic.configs.emplace();
  if (!created.configs) return topic;
  configs.reserve(created.configs->size());
  for (const auto& config : *created.configs) {
    const auto value = config.value && !config.sensitive
                           ? std::optional<std::string_view>(*config.value)
                           : std::nullopt;
    configs.emplace_back(config.name, value, config.read_only,
                         static_cast<std::int8_t>(config.source), config.sensitive);
  }
  return topic;
}

// ---- CreatePartitions ----

struct Growth {
  GrowTopicsRequest request;
  std::vector<TopicGrown> refused;
};

Result<Growth> read_growth(const Request& request) {
  MR_TRY(const auto asked, request.decode<kafka::CreatePartitionsRequest>());
  Growth growth;
  growth.request.timeout = milliseconds(asked.timeout_ms);
  growth.request.validate_only = asked.validate_only;
  std::map<std::string_view, int> uses;
  for (const auto& topic : asked.topics) ++uses[topic.name];
  for (const auto& topic : asked.topics) {
    const auto used = uses[topic.name];
    if (used > 1) {
      uses[topic.name] = 0;  // told once
      growth.refused.push_back({.name = std::string(topic.name),
                                .error = ErrorCode::invalid_request,
                                .message = std::string(duplicate_name)});
    }
    if (used != 1) continue;
    TopicGrowth wanted{.name = std::string(topic.name), .partitions = topic.count};
    if (topic.assignments) {
      auto& assignments = wanted.assignments.emplace();
      for (const auto& one : *topic.assignments) assignments.push_back(one.broker_ids);
    }
    growth.request.topics.push_back(std::move(wanted));
  }
  return growth;
}

kafka::CreatePartitionsResponse::Topic write_grown(const TopicGrown& grown) {
  return {grown.name, code_of(grown.error), message_of(grown.message)};
}

// ---- DeleteTopics ----

struct Deletion {
  std::vector<TopicName> topics;
  Duration timeout{};
  std::vector<TopicDeleted> refused;
};

Result<Deletion> read_deletion(const Request& request) {
  MR_TRY(const auto asked, request.decode<kafka::DeleteTopicsRequest>());
  Deletion deletion{.timeout = milliseconds(asked.timeout_ms)};
  // Only one of the two lists is there, depending on the version.
  for (const auto name : asked.topic_names) deletion.topics.push_back(topic_name(name, {}));
  for (const auto& topic : asked.topics) {
    auto name = topic_name(topic.name.value_or(""), topic.topic_id);
    if (topic.name.has_value() == topic.topic_id.is_none()) {
      deletion.topics.push_back(std::move(name));
    } else {
      deletion.refused.push_back({.topic = std::move(name),
                                  .error = ErrorCode::invalid_request,
                                  .message = "name a topic either by its name or by its id"});
    }
  }
  return deletion;
}

kafka::DeleteTopicsResponse::Topic write_deleted(const TopicDeleted& deleted) {
  kafka::DeleteTopicsResponse::Topic topic;
  topic.name = deleted.topic.name;
  if (!deleted.topic.id.is_none()) topic.name = unless_empty(deleted.topic.name);
  topic.topic_id = deleted.topic.id;
  topic.error_code = code_of(deleted.error);
  topic.error_message = message_of(deleted.message);
  return topic;
}

}  // namespace

Task<Payload> handle_create_topics(Request& request) {
  MR_CO_TRY(auto creation, read_creation(request));
  auto creating =
      request.broker.admin().create_topics(request.session, std::move(creation.request));
  MR_CO_TRY(const auto created, co_await std::move(creating));
  kafka::CreateTopicsResponse response;
  for (const auto& topic : creation.refused) response.topics.push_back(write_created(topic));
  for (const auto& topic : created) response.topics.push_back(write_created(topic));
  co_return request.encode(response);
}

Task<Payload> handle_create_partitions(Request& request) {
  MR_CO_TRY(auto growth, read_growth(request));
  auto growing = request.broker.admin().grow_topics(request.session, std::move(growth.request));
  MR_CO_TRY(const auto grown, co_await std::move(growing));
  kafka::CreatePartitionsResponse response;
  for (const auto& topic : growth.refused) response.results.push_back(write_grown(topic));
  for (const auto& topic : grown) response.results.push_back(write_grown(topic));
  co_return request.encode(response);
}

Task<Payload> handle_delete_topics(Request& request) {
  MR_CO_TRY(auto deletion, read_deletion(request));
  auto deleting = request.broker.admin().delete_topics(request.session, std::move(deletion.topics),
                                                       deletion.timeout);
  MR_CO_TRY(const auto deleted, co_await std::move(deleting));
  kafka::DeleteTopicsResponse response;
  for (const auto& topic : deletion.refused) response.responses.push_back(write_deleted(topic));
  for (const auto& topic : deleted) response.responses.push_back(write_deleted(topic));
  co_return request.encode(response);
}

}  // namespace millrace::kafka_transport
