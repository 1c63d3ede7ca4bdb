#include "sim_load.h"

#include <utility>

#include <millrace/batch.h>
#include <millrace/error_code.h>
#include <millrace/kafka/fetch.h>
#include <millrace/kafka/init_producer_id.h>
#include <millrace/kafka/metadata.h>
#include <millrace/kafka/produce.h>

#include "sim_client.h"

namespace millrace::testing {

namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Duration answer_time_max = seconds(3);
constexpr Duration ask_time_max = seconds(1);
constexpr Duration try_again_after = milliseconds(100);
constexpr Duration send_each = milliseconds(20);
constexpr std::int32_t produce_time_ms = 2'500;
constexpr std::int32_t fetch_bytes_max = 64 * 1024;

// What an idempotent producer is told when the log has lost something, or has it twice.
bool tells_of_loss(ErrorCode error) {
  return error == ErrorCode::out_of_order_sequence_number ||
         error == ErrorCode::unknown_producer_id || error == ErrorCode::duplicate_sequence_number ||
         error == ErrorCode::corrupt_message;
}

Result<> take_records(const Buffer& records, std::int64_t next, std::vector<SimRecord>& into) {
  for (auto left = records; !left.empty();) {
    const auto head = read_entry_head(left);
    if (!head || head->total_bytes > left.size()) return {};  // the answer was cut to its limit
    const auto batch = left.slice(0, head->total_bytes);
    left = left.slice(head->total_bytes);
    MR_TRY(const auto header, read_batch_header(batch));
    MR_TRY(const auto section, open_records(header, batch, {}, std::size_t{1} << 20));
    MR_CHECK(for_each_record(header, section, [&](const RecordView& record) {
      if (record.offset.value >= next) {
        into.push_back({record.offset.value, std::string(as_text(*record.value))});
      }
      return true;
    }));
  }
  return {};
}

}  // namespace

SimLoad::SimLoad(Network& network, std::vector<std::string> hosts, TopicPartition partition)
    : network_(network), hosts_(std::move(hosts)), partition_(std::move(partition)) {}

Task<SimLoad::Connection> SimLoad::connect(std::size_t broker) {
  auto connecting = with_deadline(connect_to(network_, hosts_[broker]), ask_time_max);
  co_return co_await std::move(connecting);
}

Task<> SimLoad::create(std::int16_t replicas) {
  MR_CO_TRY(auto client, co_await connect(0));
  MR_CO_CHECK(co_await create_topic(*client, partition_.topic, 1, replicas));
  auto asking = testing::topic_id(*client, partition_.topic);
  MR_CO_TRY(topic_id_, co_await std::move(asking));
  co_return {};
}

// ---- who leads ----

Task<SimPartitionState> SimLoad::state_at(std::size_t broker) {
  MR_CO_TRY(auto client, co_await connect(broker));
  kafka::MetadataRequest request;
  request.topics.emplace().emplace_back().name = partition_.topic;
  auto asking = with_deadline(client->call(std::move(request)), ask_time_max);
  MR_CO_TRY(const auto answer, co_await std::move(asking));
  if (answer.topics.size() != 1 || answer.topics[0].partitions.empty()) {
    co_return Error{Errc::not_found, "the topic is not known there"};
  }
  const auto& partition = answer.topics[0].partitions[0];
  SimPartitionState state{.controller = answer.controller_id, .leader = partition.leader_id};
  for (const auto one : partition.isr_nodes) state.in_sync.push_back(one);
  co_return std::move(state);
}

Task<SimPartitionState> SimLoad::state() {
  for (std::size_t n = 0; n < hosts_.size(); ++n) {
    const auto broker = (first_asked_ + n) % hosts_.size();
    auto state = co_await state_at(broker);
    if (!state) continue;
    first_asked_ = broker;
    co_return std::move(state);
  }
  co_return Error{Errc::not_found, "nobody answers"};
}

Task<SimLoad::Connection> SimLoad::connect_to_leader() {
  MR_CO_TRY(const auto now, co_await state());
  ++first_asked_;  // the next time somebody else: this one may be cut off from the others
  if (now.leader < 1) co_return Error{Errc::not_found, "there is no leader"};
  co_return co_await connect(static_cast<std::size_t>(now.leader) - 1);
}

// ---- the producer ----

Task<std::int64_t> SimLoad::init_producer() {
  MR_CO_TRY(auto client, co_await connect(0));
  kafka::InitProducerIdRequest request;
  request.transactional_id.reset();
  MR_CO_TRY(const auto answer, co_await client->call(std::move(request)));
  if (answer.error_code != 0) co_return Error{Errc::internal, "no producer id"};
  co_return answer.producer_id;
}

Task<std::int64_t> SimLoad::send(Connection& leader, std::int32_t sequence, std::string value) {
  if (!leader) {
    MR_CO_TRY(leader, co_await connect_to_leader());
  }
  BatchBuilder builder(
      {.producer_id = producer_id_, .producer_epoch = 0, .base_sequence = sequence});
  builder.add(Timestamp{1'735'689'600'000}, std::nullopt, as_bytes(value));
  MR_CO_TRY(auto batch, std::move(builder).finish());
  kafka::ProduceRequest request;
  request.acks = -1;
  request.timeout_ms = produce_time_ms;
  auto& topic = request.topic_data.emplace_back();
  topic.name = partition_.topic;
  topic.topic_id = topic_id_;
  auto& data = topic.partition_data.emplace_back();
  data.index = partition_.partition;
  data.records = std::move(batch);
  MR_CO_TRY(const auto answer, co_await leader->call(std::move(request)));
  if (answer.responses.size() != 1 || answer.responses[0].partition_responses.size() != 1) {
    co_return Error{Errc::corrupt, "the broker answered for another partition"};
  }
  const auto& produced = answer.responses[0].partition_responses[0];
  const ErrorCode error{produced.error_code};
  if (error == ErrorCode::none) co_return produced.base_offset;
  if (tells_of_loss(error)) {
    history_.errors.push_back(value + ": " + std::string(name_of(error)));
    ending_ = true;
  }
  co_return Error{Errc::internal, std::string(name_of(error))};
}

// Until it is acknowledged.
Task<> SimLoad::send_one(Connection& leader, std::int32_t sequence, std::string value) {
  history_.sent.push_back(value);
  while (history_.errors.empty()) {
    auto sending = with_deadline(send(leader, sequence, value), answer_time_max);
    const auto offset = co_await std::move(sending);
    if (offset) {
      history_.acknowledged.emplace(value, *offset);
      co_return {};
    }
    last_error_ = to_string(offset.error());
    leader.reset();
    MR_CO_CHECK(co_await sleep(try_again_after));
  }
  co_return {};
}

Task<> SimLoad::send_all() {
  MR_CO_TRY(producer_id_, co_await init_producer());
  Connection leader;
  for (std::int32_t n = 0; !ending_; ++n) {
    MR_CO_CHECK(co_await send_one(leader, n, "record " + std::to_string(n)));
    MR_CO_CHECK(co_await sleep(send_each));
  }
  sent_ = true;
  co_return {};
}

// ---- the reader ----

// Answers whether the high watermark is reached.
Task<bool> SimLoad::fetch(Connection& leader, std::int64_t next, std::vector<SimRecord>& into) {
  if (!leader) {
    MR_CO_TRY(leader, co_await connect_to_leader());
  }
  kafka::FetchRequest request;
  request.max_wait_ms = 200;
  request.min_bytes = 1;
  request.max_bytes = fetch_bytes_max;
  auto& topic = request.topics.emplace_back();
  topic.topic = partition_.topic;
  topic.topic_id = topic_id_;
  auto& wanted = topic.partitions.emplace_back();
  wanted.partition = partition_.partition;
  wanted.fetch_offset = next;
  wanted.partition_max_bytes = fetch_bytes_max;
  MR_CO_TRY(const auto answer, co_await leader->call(std::move(request)));
  if (answer.error_code != 0) co_return Error{Errc::internal, "fetch failed"};
  if (answer.responses.empty()) co_return false;
  const auto& fetched = answer.responses.at(0).partitions.at(0);
  const ErrorCode error{fetched.error_code};
  if (error == ErrorCode::offset_out_of_range) {
    history_.errors.push_back("a reader is told that " + std::to_string(next) + " is out of range");
    ending_ = true;
  }
  if (error != ErrorCode::none) co_return Error{Errc::internal, std::string(name_of(error))};
  if (fetched.records) {
    MR_CO_TRY(const auto records, fetched.records->flatten());
    MR_CO_CHECK(take_records(records, next, into));
  }
  const auto end = into.empty() ? 0 : into.back().offset + 1;
  co_return end >= fetched.high_watermark;
}

Task<> SimLoad::follow() {
  Connection leader;
  while (!ending_) {
    const auto next = history_.shown.empty() ? 0 : history_.shown.back().offset + 1;
    auto fetching = with_deadline(fetch(leader, next, history_.shown), answer_time_max);
    if (co_await std::move(fetching)) continue;
    leader.reset();
    MR_CO_CHECK(co_await sleep(try_again_after));
  }
  followed_ = true;
  co_return {};
}

Task<> SimLoad::read_log() {
  MR_CO_TRY(auto leader, co_await connect_to_leader());
  history_.log.clear();
  while (true) {
    const auto next = history_.log.empty() ? 0 : history_.log.back().offset + 1;
    MR_CO_TRY(const auto ended, co_await fetch(leader, next, history_.log));
    if (ended) co_return {};
  }
}

}  // namespace millrace::testing
