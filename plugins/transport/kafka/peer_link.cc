#include "peer_link.h"

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <millrace/kafka/client.h>
#include <millrace/kafka/controlled_shutdown.h>
#include <millrace/kafka/create_topics.h>
#include <millrace/kafka/delete_topics.h>
#include <millrace/kafka/fetch.h>
#include <millrace/kafka/offset_for_leader_epoch.h>

#include "cluster_messages.h"
#include "handlers/names.h"
#include "lost_brokers.h"

namespace millrace::kafka_transport {
namespace {

/// What the controller may take for topics; the caller has a deadline of its own.
constexpr std::int32_t topics_timeout_ms = 30'000;

ErrorCode error_of(std::int16_t code) { return static_cast<ErrorCode>(code); }

// ---- Fetch ----

kafka::FetchRequest::Topic write_topic(const TopicFetch& fetch) {
  kafka::FetchRequest::Topic topic;
  topic.topic_id = fetch.topic.id;
  topic.partitions.reserve(fetch.partitions.size());
  for (const auto& asked : fetch.partitions) {
    auto& partition = topic.partitions.emplace_back();
    partition.partition = asked.partition;
    partition.current_leader_epoch = asked.current_leader_epoch.value;
    partition.fetch_offset = asked.from.value;
    partition.last_fetched_epoch = asked.last_fetched_epoch.value;
    partition.log_start_offset = asked.log_start.value;
    partition.partition_max_bytes = asked.bytes_max;
    partition.high_watermark = asked.high_watermark.value;
  }
  return topic;
}

Result<kafka::FetchRequest> write_fetch(const FetchRequest& fetch) {
  kafka::FetchRequest request;
  request.replica_state.replica_id = fetch.replica_id;
  request.replica_state.replica_epoch = fetch.replica_epoch;
  request.max_wait_ms = static_cast<std::int32_t>(
      std::chrono::duration_cast<std::chrono::milliseconds>(fetch.wait_max).count());
  request.min_bytes = fetch.bytes_min;
  request.max_bytes = fetch.bytes_max;
  request.isolation_level = static_cast<std::int8_t>(fetch.isolation);
  request.session_id = fetch.session_id;
  request.session_epoch = fetch.session_epoch;
  request.rack_id = fetch.rack;
  request.topics.reserve(fetch.topics.size());
  for (const auto& topic : fetch.topics) {
    if (topic.topic.id.is_none()) {
      return Error{Errc::unsupported, "fetch from a peer: topic " + topic.topic.name +
                                          " has no id; those of version 2.8 on have one"};
    }
    request.topics.push_back(write_topic(topic));
  }
  for (const auto& topic : fetch.forgotten) {
    auto& forgotten = request.forgotten_topics_data.emplace_back();
    forgotten.topic_id = topic.topic.id;
    forgotten.partitions = topic.partitions;
  }
  return request;
}

PartitionFetched read_partition(kafka::FetchResponse::Partition& partition) {
  PartitionFetched fetched;
  fetched.partition = partition.partition_index;
  fetched.error = error_of(partition.error_code);
  fetched.high_watermark = {partition.high_watermark};
  fetched.last_stable = {partition.last_stable_offset};
  fetched.log_start = {partition.log_start_offset};
  fetched.diverging_epoch = {partition.diverging_epoch.epoch};
  fetched.diverging_end = {partition.diverging_epoch.end_offset};
  if (partition.aborted_transactions) {
    auto& aborted = fetched.aborted.emplace();
    for (const auto& transaction : *partition.aborted_transactions) {
      aborted.push_back(
          {.producer_id = transaction.producer_id, .first_offset = {transaction.first_offset}});
    }
  }
  if (partition.records) fetched.records = *std::move(partition.records);
  return fetched;
}

FetchAnswer read_fetched(kafka::FetchResponse& response) {
  FetchAnswer answer{
      .error = error_of(response.error_code), .session_id = response.session_id, .topics = {}};
  answer.topics.reserve(response.responses.size());
  for (auto& topic : response.responses) {
    auto& fetched = answer.topics.emplace_back(TopicName{{}, topic.topic_id});
    fetched.partitions.reserve(topic.partitions.size());
    for (auto& partition : topic.partitions) {
      fetched.partitions.push_back(read_partition(partition));
    }
  }
  return answer;
}

// ---- topics ----

kafka::CreateTopicsRequest write_creation(const std::vector<NewTopic>& topics) {
  kafka::CreateTopicsRequest request;
  request.timeout_ms = topics_timeout_ms;
  for (const auto& topic : topics) {
    auto& asked = request.topics.emplace_back();
    asked.name = topic.name;
    asked.num_partitions = topic.partitions;
    asked.replication_factor = topic.replication_factor;
    for (const auto& [partition, brokers] : topic.assignments) {
      auto& assignment = asked.assignments.emplace_back();
      assignment.partition_index = partition;
      assignment.broker_ids = brokers;
    }
    for (const auto& [name, value] : topic.configs) {
      auto& config = asked.configs.emplace_back();
      config.name = name;
      config.value = value;
    }
  }
  return request;
}

std::vector<TopicCreated> read_created(const kafka::CreateTopicsResponse& response) {
  std::vector<TopicCreated> created;
  for (const auto& topic : response.topics) {
    created.push_back({.name = std::string(topic.name),
                       .id = topic.topic_id,
                       .error = error_of(topic.error_code),
                       .message = std::string(topic.error_message.value_or("")),
                       .partitions = topic.num_partitions,
                       .replication_factor = topic.replication_factor,
                       .configs = nullptr});
  }
  return created;
}

kafka::DeleteTopicsRequest write_deletion(const std::vector<TopicName>& topics) {
  kafka::DeleteTopicsRequest request;
  request.timeout_ms = topics_timeout_ms;
  for (const auto& topic : topics) {
    auto& asked = request.topics.emplace_back();
    // By the one or by the other; the id tells a topic from its successor.
    asked.topic_id = topic.id;
    if (topic.id.is_none()) asked.name = topic.name;
  }
  return request;
}

std::vector<TopicDeleted> read_deleted(const kafka::DeleteTopicsResponse& response) {
  std::vector<TopicDeleted> deleted;
  for (const auto& topic : response.responses) {
    deleted.push_back({.topic = topic_name(topic.name.value_or(""), topic.topic_id),
                       .error = error_of(topic.error_code),
                       .message = std::string(topic.error_message.value_or(""))});
  }
  return deleted;
}

// ---- epochs ----

kafka::OffsetForLeaderEpochRequest write_queries(std::int32_t replica,
                                                 const std::vector<TopicEpochQuery>& topics) {
  kafka::OffsetForLeaderEpochRequest request;
  request.replica_id = replica;
  for (const auto& topic : topics) {
    auto& asked = request.topics.emplace_back();
    asked.topic = topic.topic;
    for (const auto& query : topic.partitions) {
      auto& partition = asked.partitions.emplace_back();
      partition.partition = query.partition;
      partition.current_leader_epoch = query.current_leader_epoch.value;
      partition.leader_epoch = query.epoch.value;
    }
  }
  return request;
}

std::vector<TopicEpochEnds> read_ends(const kafka::OffsetForLeaderEpochResponse& response) {
  std::vector<TopicEpochEnds> ends;
  for (const auto& topic : response.topics) {
    auto& to = ends.emplace_back(std::string(topic.topic));
    for (const auto& end : topic.partitions) {
      to.partitions.push_back({.partition = end.partition,
                               .error = error_of(end.error_code),
                               .epoch = {end.leader_epoch},
                               .end = {end.end_offset}});
    }
  }
  return ends;
}

// ---- a connection ----

/// What a message refers to is a parameter of the call that sends it, and lives until its end.
class KafkaPeer final : public Peer {
 public:
  explicit KafkaPeer(std::unique_ptr<kafka::Client> client) : client_(std::move(client)) {}

  Task<FetchAnswer> fetch(FetchRequest request) override {
    MR_CO_TRY(auto asked, write_fetch(request));
    auto asking = client_->call(std::move(asked));
    MR_CO_TRY(auto response, co_await std::move(asking));
    co_return read_fetched(response);
  }

  Task<std::vector<TopicEpochEnds>> epoch_ends(std::int32_t replica,
                                               std::vector<TopicEpochQuery> topics) override {
    auto asking = client_->call(write_queries(replica, topics));
    MR_CO_TRY(const auto response, co_await std::move(asking));
    co_return read_ends(response);
  }

  Task<ClusterUpdated> update(ClusterUpdate update) override {
    auto asking = client_->call(write_update(update));
    MR_CO_TRY(const auto response, co_await std::move(asking));
    co_return read_updated(response);
  }

  Task<std::vector<InSyncChanged>> change_in_sync(std::int32_t broker, std::int64_t broker_epoch,
                                                  std::vector<InSyncChange> changes) override {
    auto asking = client_->call(write_changes(broker, broker_epoch, changes));
    MR_CO_TRY(const auto response, co_await std::move(asking));
    co_return read_changed(response, changes);
  }

  Task<std::vector<TopicCreated>> create_topics(std::vector<NewTopic> topics) override {
    auto asking = client_->call(write_creation(topics));
    MR_CO_TRY(const auto response, co_await std::move(asking));
    co_return read_created(response);
  }

  Task<std::vector<TopicDeleted>> delete_topics(std::vector<TopicName> topics) override {
    auto asking = client_->call(write_deletion(topics));
    MR_CO_TRY(const auto response, co_await std::move(asking));
    co_return read_deleted(response);
  }

  Task<LeadersMoved> shut_down(std::int32_t broker, std::int64_t broker_epoch) override {
    kafka::ControlledShutdownRequest request;
    request.broker_id = broker;
    request.broker_epoch = broker_epoch;
    auto asking = client_->call(std::move(request));
    MR_CO_TRY(const auto response, co_await std::move(asking));
    LeadersMoved moved{.error = error_of(response.error_code), .remaining = {}};
    for (const auto& partition : response.remaining_partitions) {
      moved.remaining.push_back({std::string(partition.topic_name), partition.partition_index});
    }
    co_return moved;
  }

 private:
  std::unique_ptr<kafka::Client> client_;
};

}  // namespace

Task<std::unique_ptr<kafka::Client>> connect_as_broker(Network& network, Address address) {
  kafka::ClientOptions options;
  options.client_id = peer_software;
  options.software = peer_software;
  return kafka::Client::connect(network, std::move(address), std::move(options));
}

Task<std::unique_ptr<Peer>> KafkaPeerLink::connect(Address address) {
  auto connecting = connect_as_broker(network_, address);
  auto client = co_await std::move(connecting);
  const bool given_up = !client && client.error().code == Errc::cancelled;
  if (lost_ && !given_up) {
    const auto now = (co_await this_shard()).now();
    lost_->note(address, client.has_value(), now);
  }
  if (!client) co_return client.error();
  co_return std::make_unique<KafkaPeer>(*std::move(client));
}

}  // namespace millrace::kafka_transport
