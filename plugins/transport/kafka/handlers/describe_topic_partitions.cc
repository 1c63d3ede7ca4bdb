#include <algorithm>
#include <utility>
#include <vector>

#include <millrace/admin.h>
#include <millrace/kafka/describe_topic_partitions.h>

#include "authorized_operations.h"
#include "handlers.h"
#include "names.h"

namespace millrace::kafka_transport {
namespace {

/// However many a client asks for, an answer has no more partitions.
constexpr std::int32_t page_partitions_max = 2000;

TopicPageRequest read_request(const kafka::DescribeTopicPartitionsRequest& asked) {
  TopicPageRequest page;
  if (!asked.topics.empty()) {
    auto& topics = page.topics.emplace();
    for (const auto& topic : asked.topics) topics.emplace_back(topic.name);
  }
  if (asked.cursor) {
    page.from = {std::string(asked.cursor->topic_name), asked.cursor->partition_index};
  }
  page.partitions_max = std::clamp(asked.response_partition_limit, 1, page_partitions_max);
  return page;
}

kafka::DescribeTopicPartitionsResponse::Topic write_topic(const TopicInfo& info) {
  kafka::DescribeTopicPartitionsResponse::Topic topic;
  topic.error_code = code_of(info.error);
  topic.name = info.topic.name;
  topic.topic_id = info.topic.id;
  topic.is_internal = info.internal;
  topic.topic_authorized_operations = topic_operations;
  topic.partitions.reserve(info.partitions.size());
  for (const auto& partition : info.partitions) {
    auto& to = topic.partitions.emplace_back();
    to.error_code = code_of(partition.error);
    to.partition_index = partition.partition;
    to.leader_id = partition.leader;
    to.leader_epoch = partition.leader_epoch.value;
    to.replica_nodes = partition.replicas;
    to.isr_nodes = partition.in_sync;
    to.eligible_leader_replicas.emplace();
    to.last_known_elr.emplace();
    to.offline_replicas = partition.offline;
  }
  return topic;
}

}  // namespace

Task<Payload> handle_describe_topic_partitions(Request& request) {
  MR_CO_TRY(const auto asked, request.decode<kafka::DescribeTopicPartitionsRequest>());
  kafka::DescribeTopicPartitionsResponse response;
  if (asked.cursor && asked.cursor->partition_index < 0) {
    for (const auto& topic : asked.topics) {
      auto& refused = response.topics.emplace_back();
      refused.error_code = code_of(ErrorCode::invalid_request);
      refused.name = topic.name;
    }
    co_return request.encode(response);
  }
  auto describing = request.broker.admin().describe_topics(request.session, read_request(asked));
  MR_CO_TRY(const auto page, co_await std::move(describing));
  for (const auto& topic : page.topics) response.topics.push_back(write_topic(topic));
  if (page.next) response.next_cursor.emplace(page.next->topic, page.next->partition);
  co_return request.encode(response);
}

}  // namespace millrace::kafka_transport
