#include <algorithm>
#include <utility>

#include <millrace/kafka/produce.h>

#include "../leader_hints.h"
#include "handlers.h"
#include "names.h"

namespace millrace::kafka_transport {
namespace {

Result<ProduceRequest> read_request(const Request& request) {
  MR_TRY(auto asked, request.decode<kafka::ProduceRequest>());
  ProduceRequest produce;
  produce.transactional_id = owned(asked.transactional_id);
  produce.acks = asked.acks;
  produce.timeout = milliseconds(asked.timeout_ms);
  produce.features = produce_features(request.head.version);
  produce.topics.reserve(asked.topic_data.size());
  for (auto& topic : asked.topic_data) {
    auto& to = produce.topics.emplace_back(topic_name(topic.name, topic.topic_id));
    to.partitions.reserve(topic.partition_data.size());
    for (auto& partition : topic.partition_data) {
      to.partitions.emplace_back(partition.index, std::move(partition.records));
    }
  }
  return produce;
}

kafka::ProduceResponse::Partition write_partition(const PartitionProduced& produced,
                                                  std::int16_t version) {
  kafka::ProduceResponse::Partition partition;
  partition.index = produced.partition;
  partition.error_code = code_of(produce_error(version, produced.error));
  partition.base_offset = produced.base_offset.value;
  partition.log_append_time_ms = produced.log_append_time.ms;
  partition.log_start_offset = produced.log_start.value;
  partition.error_message = message_of(produced.message);
  for (const auto& error : produced.record_errors) {
    partition.record_errors.emplace_back(error.record_at, message_of(error.message));
  }
  return partition;
}

LeaderHints wanted_hints(const ProduceAnswer& answer, std::int16_t version) {
  LeaderHints hints;
  if (!produce_tells_leaders(version)) return hints;
  for (const auto& topic : answer.topics) {
    for (const auto& partition : topic.partitions) {
      if (LeaderHints::is_wanted(partition.error)) hints.want(topic.topic);
    }
  }
  return hints;
}

Result<Payload> write_answer(const Request& request, const ProduceAnswer& answer,
                             const LeaderHints& hints) {
  kafka::ProduceResponse response;
  hints.write_endpoints(response.node_endpoints);
  response.responses.reserve(answer.topics.size());
  for (const auto& produced : answer.topics) {
    auto& topic = response.responses.emplace_back(produced.topic.name, produced.topic.id);
    topic.partition_responses.reserve(produced.partitions.size());
    for (const auto& partition : produced.partitions) {
      auto& to =
          topic.partition_responses.emplace_back(write_partition(partition, request.head.version));
      if (LeaderHints::is_wanted(partition.error)) {
        hints.write(produced.topic, partition.partition, to);
      }
    }
  }
  return request.encode(response);
}

/// What to tell a client that asked for no answer: nothing, or, when something went wrong, by
/// closing the connection, which makes it look for the leaders again.
/// The first partition whose records open to too much, and what was said of them.
std::optional<std::string> find_bomb(const ProduceAnswer& answer) {
  for (const auto& topic : answer.topics) {
    for (const auto& partition : topic.partitions) {
      if (!partition.opens_too_large) continue;
      return topic.topic.name + "-" + std::to_string(partition.partition) + ": " +
             partition.message;
    }
  }
  return std::nullopt;
}

Result<Payload> answer_without_acks(const ProduceAnswer& answer) {
  for (const auto& topic : answer.topics) {
    for (const auto& partition : topic.partitions) {
      if (partition.error == ErrorCode::none) continue;
      return Error{Errc::closed, "records sent with acks=0 to " + topic.topic.name + "-" +
                                     std::to_string(partition.partition) +
                                     " were refused: " + std::string(name_of(partition.error))};
    }
  }
  return Payload();
}

}  // namespace

Task<Payload> handle_produce(Request& request) {
  MR_CO_TRY(auto produce, read_request(request));
  const bool answered = produce.acks != 0;
  produce.memory = std::move(request.memory);
  auto call = request.broker.produce(request.session, std::move(produce));
  MR_CO_CHECK(co_await call.dispatched);
  request.dispatched();
  request.park();  // waiting for the log, or for followers, needs nothing of it
  MR_CO_TRY(const auto answer, co_await call.done);
  // A client that meant no harm knows what to do with the answer, and comes back for the rest.
  if (auto bomb = find_bomb(answer)) request.end_for_bomb(*std::move(bomb));
  if (!answered) co_return answer_without_acks(answer);
  auto hints = wanted_hints(answer, request.head.version);
  if (hints.wanted()) MR_CO_CHECK(co_await hints.find(request));
  co_return write_answer(request, answer, hints);
}

}  // namespace millrace::kafka_transport
