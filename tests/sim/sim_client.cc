#include "sim_client.h"

#include <millrace/batch.h>
#include <millrace/error_code.h>
#include <millrace/kafka/create_topics.h>
#include <millrace/kafka/fetch.h>
#include <millrace/kafka/metadata.h>
#include <millrace/kafka/produce.h>

namespace millrace::testing {

namespace {

constexpr std::uint16_t port = 9092;
constexpr std::int32_t timeout_ms = 10'000;
constexpr std::int32_t fetch_bytes_max = 4096;

Result<> check(std::int16_t code, const std::string& what) {
  const ErrorCode error{code};
  if (error == ErrorCode::none) return {};
  return Error{Errc::internal, what + ": " + std::string(name_of(error))};
}

Task<kafka::FetchResponse> fetch(kafka::Client& client, TopicPartition partition, Uuid id,
                                 std::int64_t from) {
  kafka::FetchRequest request;
  request.max_wait_ms = 100;
  request.min_bytes = 1;
  request.max_bytes = fetch_bytes_max;
  auto& topic = request.topics.emplace_back();
  topic.topic = partition.topic;
  topic.topic_id = id;
  auto& wanted = topic.partitions.emplace_back();
  wanted.partition = partition.partition;
  wanted.fetch_offset = from;
  wanted.partition_max_bytes = fetch_bytes_max;
  co_return co_await client.call(std::move(request));
}

// Appends the values of the whole batches in `records` from offset `next` on, and moves `next`.
Result<> append_values(const Buffer& records, std::int64_t& next,
                       std::vector<std::string>& values) {
  for (auto left = records; !left.empty();) {
    const auto head = read_entry_head(left);
    if (!head || head->total_bytes > left.size()) return {};  // the answer was cut to its limit
    const auto batch = left.slice(0, head->total_bytes);
    left = left.slice(head->total_bytes);
    MR_TRY(const auto header, read_batch_header(batch));
    if (!verify_crc(batch)) return Error{Errc::corrupt, "a fetched batch has a wrong crc"};
    MR_TRY(const auto section, open_records(header, batch, {}, std::size_t{1} << 20));
    MR_CHECK(for_each_record(header, section, [&](const RecordView& record) {
      if (record.offset.value >= next) {
        values.emplace_back(record.value ? as_text(*record.value) : std::string_view());
        next = record.offset.value + 1;
      }
      return true;
    }));
  }
  return {};
}

}  // namespace

Task<std::unique_ptr<kafka::Client>> connect_to(Network& network, std::string host) {
  Address address{std::move(host), port};
  co_return co_await kafka::Client::connect(network, std::move(address), {});
}

Task<> create_topic(kafka::Client& client, std::string topic, std::int32_t partitions,
                    std::int16_t replicas) {
  kafka::CreateTopicsRequest request;
  request.timeout_ms = timeout_ms;
  auto& wanted = request.topics.emplace_back();
  wanted.name = topic;
  wanted.num_partitions = partitions;
  wanted.replication_factor = replicas;
  MR_CO_TRY(const auto answer, co_await client.call(std::move(request)));
  if (answer.topics.size() != 1) co_return Error{Errc::corrupt, "another topic was created"};
  co_return check(answer.topics[0].error_code, "create " + topic);
}

Task<Uuid> topic_id(kafka::Client& client, std::string topic) {
  kafka::MetadataRequest request;
  request.topics.emplace().emplace_back().name = topic;
  MR_CO_TRY(const auto answer, co_await client.call(std::move(request)));
  if (answer.topics.size() != 1) co_return Error{Errc::corrupt, "metadata of another topic"};
  MR_CO_CHECK(check(answer.topics[0].error_code, "metadata of " + topic));
  co_return answer.topics[0].topic_id;
}

Task<std::string> leader_host(kafka::Client& client, std::string topic) {
  kafka::MetadataRequest request;
  request.topics.emplace().emplace_back().name = topic;
  MR_CO_TRY(const auto answer, co_await client.call(std::move(request)));
  if (answer.topics.size() != 1 || answer.topics[0].partitions.empty()) {
    co_return Error{Errc::not_found, topic + " is not known there"};
  }
  const auto leader = answer.topics[0].partitions[0].leader_id;
  for (const auto& broker : answer.brokers) {
    if (broker.node_id == leader) co_return std::string(broker.host);
  }
  co_return Error{Errc::not_found, topic + " has no leader"};
}

Task<std::int64_t> produce(kafka::Client& client, TopicPartition partition, std::string value) {
  MR_CO_TRY(const auto id, co_await topic_id(client, partition.topic));
  BatchBuilder builder({});
  builder.add(Timestamp{1'735'689'600'000}, std::nullopt, as_bytes(value));
  MR_CO_TRY(auto batch, std::move(builder).finish());
  kafka::ProduceRequest request;
  request.acks = -1;
  request.timeout_ms = timeout_ms;
  auto& topic = request.topic_data.emplace_back();
  topic.name = partition.topic;
  topic.topic_id = id;
  auto& data = topic.partition_data.emplace_back();
  data.index = partition.partition;
  data.records = std::move(batch);
  MR_CO_TRY(const auto answer, co_await client.call(std::move(request)));
  if (answer.responses.size() != 1 || answer.responses[0].partition_responses.size() != 1) {
    co_return Error{Errc::corrupt, "the broker answered for another partition"};
  }
  const auto& produced = answer.responses[0].partition_responses[0];
  MR_CO_CHECK(check(produced.error_code, "produce to " + to_string(partition)));
  co_return produced.base_offset;
}

Task<std::vector<std::string>> consume(kafka::Client& client, TopicPartition partition) {
  MR_CO_TRY(const auto id, co_await topic_id(client, partition.topic));
  std::vector<std::string> values;
  std::int64_t next = 0;
  while (true) {
    MR_CO_TRY(const auto answer, co_await fetch(client, partition, id, next));
    MR_CO_CHECK(check(answer.error_code, "fetch"));
    if (answer.responses.empty()) co_return values;
    const auto& fetched = answer.responses.at(0).partitions.at(0);
    MR_CO_CHECK(check(fetched.error_code, "fetch from " + to_string(partition)));
    if (fetched.records) {
      MR_CO_TRY(const auto records, fetched.records->flatten());
      MR_CO_CHECK(append_values(records, next, values));
    }
    if (next >= fetched.high_watermark) co_return values;
  }
}

}  // namespace millrace::testing
