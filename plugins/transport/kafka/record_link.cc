#include "record_link.h"

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>

#include <millrace/kafka/client.h>
#include <millrace/kafka/list_offsets.h>
#include <millrace/kafka/produce.h>

#include "handlers/names.h"
#include "peer_link.h"

namespace millrace::kafka_transport {
namespace {

ErrorCode error_of(std::int16_t code) { return static_cast<ErrorCode>(code); }

kafka::ProduceRequest write_produce(const ProduceRequest& produce) {
  kafka::ProduceRequest request;
  request.acks = produce.acks;
  request.timeout_ms = static_cast<std::int32_t>(
      std::chrono::duration_cast<std::chrono::milliseconds>(produce.timeout).count());
  request.topic_data.reserve(produce.topics.size());
  for (const auto& topic : produce.topics) {
    auto& to = request.topic_data.emplace_back();
    to.name = topic.topic.name;
    to.topic_id = topic.topic.id;
    for (const auto& partition : topic.partitions) {
      auto& data = to.partition_data.emplace_back();
      data.index = partition.partition;
      data.records = partition.records;
    }
  }
  return request;
}

ProduceAnswer read_produced(const kafka::ProduceResponse& response) {
  ProduceAnswer answer;
  for (const auto& topic : response.responses) {
    auto& produced = answer.topics.emplace_back();
    produced.topic = topic_name(topic.name, topic.topic_id);
    for (const auto& partition : topic.partition_responses) {
      produced.partitions.push_back({.partition = partition.index,
                                     .error = error_of(partition.error_code),
                                     .message = std::string(partition.error_message.value_or("")),
                                     .record_errors = {},
                                     .base_offset = {partition.base_offset},
                                     .log_append_time = {partition.log_append_time_ms},
                                     .log_start = {partition.log_start_offset}});
    }
  }
  return answer;
}

kafka::ListOffsetsRequest write_query(const ListOffsetsRequest& query) {
  kafka::ListOffsetsRequest request;
  request.replica_id = query.replica_id;
  request.isolation_level = static_cast<std::int8_t>(query.isolation);
  for (const auto& topic : query.topics) {
    auto& asked = request.topics.emplace_back();
    asked.name = topic.topic;
    for (const auto& partition : topic.partitions) {
      auto& one = asked.partitions.emplace_back();
      one.partition_index = partition.partition;
      one.current_leader_epoch = partition.current_leader_epoch.value;
      one.timestamp = partition.timestamp;
    }
  }
  return request;
}

ListOffsetsAnswer read_found(const kafka::ListOffsetsResponse& response) {
  ListOffsetsAnswer answer;
  for (const auto& topic : response.topics) {
    auto& found = answer.topics.emplace_back(TopicOffsetsFound{std::string(topic.name), {}});
    for (const auto& partition : topic.partitions) {
      found.partitions.push_back({.partition = partition.partition_index,
                                  .error = error_of(partition.error_code),
                                  .timestamp = {partition.timestamp},
                                  .offset = {partition.offset},
                                  .leader_epoch = {partition.leader_epoch},
                                  .segments = {}});
    }
  }
  return answer;
}

/// What a message refers to is a parameter of the call that sends it, and lives until its end.
class KafkaRecordPeer final : public RecordPeer {
 public:
  explicit KafkaRecordPeer(std::unique_ptr<kafka::Client> client) : client_(std::move(client)) {}

  Task<ProduceAnswer> produce(ProduceRequest request) override {
    auto asking = client_->call(write_produce(request));
    MR_CO_TRY(const auto response, co_await std::move(asking));
    co_return read_produced(response);
  }

  Task<ListOffsetsAnswer> list_offsets(ListOffsetsRequest request) override {
    auto asking = client_->call(write_query(request));
    MR_CO_TRY(const auto response, co_await std::move(asking));
    co_return read_found(response);
  }

 private:
  std::unique_ptr<kafka::Client> client_;
};

}  // namespace

Task<std::unique_ptr<RecordPeer>> KafkaRecordLink::connect(Address address) {
  auto connecting = connect_as_broker(network_, std::move(address));
  MR_CO_TRY(auto client, co_await std::move(connecting));
  co_return std::make_unique<KafkaRecordPeer>(std::move(client));
}

}  // namespace millrace::kafka_transport
