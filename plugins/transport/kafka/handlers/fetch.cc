#include <utility>

#include <millrace/kafka/fetch.h>

#include "../leader_hints.h"
#include "handlers.h"
#include "names.h"

namespace millrace::kafka_transport {
namespace {

TopicFetch read_topic(const kafka::FetchRequest::Topic& topic) {
  TopicFetch fetch{topic_name(topic.topic, topic.topic_id), {}};
  fetch.partitions.reserve(topic.partitions.size());
  for (const auto& partition : topic.partitions) {
    fetch.partitions.push_back({.partition = partition.partition,
                                .current_leader_epoch = {partition.current_leader_epoch},
                                .from = {partition.fetch_offset},
                                .last_fetched_epoch = {partition.last_fetched_epoch},
                                .log_start = {partition.log_start_offset},
                                .high_watermark = {partition.high_watermark},
                                .bytes_max = partition.partition_max_bytes});
  }
  return fetch;
}

Result<FetchRequest> read_request(const Request& request) {
  MR_TRY(const auto asked, request.decode<kafka::FetchRequest>());
  const auto features = fetch_features(request.head.version);
  FetchRequest fetch;
  // A follower's id has moved into a struct of its own; the other one stays at -1.
  fetch.replica_id =
      asked.replica_state.replica_id >= 0 ? asked.replica_state.replica_id : asked.replica_id;
  fetch.replica_epoch = asked.replica_state.replica_epoch;
  fetch.wait_max = milliseconds(asked.max_wait_ms);
  fetch.bytes_min = asked.min_bytes;
  fetch.bytes_max = asked.max_bytes;
  fetch.isolation =
      asked.isolation_level == 1 ? Isolation::read_committed : Isolation::read_uncommitted;
  fetch.session_id = asked.session_id;
  fetch.session_epoch = asked.session_epoch;
  fetch.by_topic_id = features.by_topic_id;
  fetch.newest_magic = features.newest_magic;
  fetch.zstd = features.zstd;
  fetch.rack = asked.rack_id;
  fetch.topics.reserve(asked.topics.size());
  for (const auto& topic : asked.topics) fetch.topics.push_back(read_topic(topic));
  for (const auto& topic : asked.forgotten_topics_data) {
    fetch.forgotten.push_back({topic_name(topic.topic, topic.topic_id), topic.partitions});
  }
  return fetch;
}

kafka::FetchResponse::Partition write_partition(PartitionFetched& fetched, std::int16_t version) {
  kafka::FetchResponse::Partition partition;
  partition.partition_index = fetched.partition;
  partition.error_code = code_of(fetch_error(version, fetched.error));
  partition.high_watermark = fetched.high_watermark.value;
  partition.last_stable_offset = fetched.last_stable.value;
  partition.log_start_offset = fetched.log_start.value;
  if (fetched.diverging_end.value >= 0) {
    partition.diverging_epoch.epoch = fetched.diverging_epoch.value;
    partition.diverging_epoch.end_offset = fetched.diverging_end.value;
  }
  partition.aborted_transactions.reset();
  if (fetched.aborted) {
    auto& aborted = partition.aborted_transactions.emplace();
    for (const auto& transaction : *fetched.aborted) {
      aborted.emplace_back(transaction.producer_id, transaction.first_offset.value);
    }
  }
  partition.records = std::move(fetched.records);
  return partition;
}

LeaderHints wanted_hints(const FetchAnswer& answer, std::int16_t version) {
  LeaderHints hints;
  if (!fetch_tells_leaders(version)) return hints;
  for (const auto& topic : answer.topics) {
    for (const auto& partition : topic.partitions) {
      if (LeaderHints::is_wanted(partition.error)) hints.want(topic.topic);
    }
  }
  return hints;
}

Result<Payload> write_answer(const Request& request, FetchAnswer answer, const LeaderHints& hints) {
  kafka::FetchResponse response;
  hints.write_endpoints(response.node_endpoints);
  response.error_code = code_of(answer.error);
  response.session_id = answer.session_id;
  response.responses.reserve(answer.topics.size());
  for (auto& fetched : answer.topics) {
    auto& topic = response.responses.emplace_back(fetched.topic.name, fetched.topic.id);
    topic.partitions.reserve(fetched.partitions.size());
    for (auto& partition : fetched.partitions) {
      const auto error = partition.error;
      auto& to = topic.partitions.emplace_back(write_partition(partition, request.head.version));
      if (LeaderHints::is_wanted(error)) hints.write(fetched.topic, partition.partition, to);
    }
  }
  return request.encode(response);
}

Task<FetchAnswer> wait_for(Pending<FetchAnswer> done) { co_return co_await done; }

/// A follower sends another fetch when the one that waits asks for the wrong partitions. It does
/// not read its answer, and must not have to wait for it, as answers leave in order.
Task<FetchAnswer> wait_or_give_way(Request& request, Pending<FetchAnswer> done) {
  auto* outer = co_await this_scope();
  CancelScope waiting(outer);
  request.give_way(&waiting);
  request.dispatched();
  auto polling = wait_for(std::move(done)).within(waiting);
  auto answer = co_await std::move(polling);
  request.stop_giving_way(&waiting);
  const bool gave_way = waiting.cancelled() && !(outer && outer->cancelled());
  if (answer || !gave_way) co_return std::move(answer);
  co_return FetchAnswer();
}

}  // namespace

Task<Payload> handle_fetch(Request& request) {
  MR_CO_TRY(auto fetch, read_request(request));
  const bool of_follower = fetch.replica_id >= 0;  // it hears of leaders from the controller
  request.park();
  auto call = request.broker.fetch(request.session, std::move(fetch));
  MR_CO_CHECK(co_await call.dispatched);
  if (!of_follower) request.dispatched();
  auto waiting = of_follower ? wait_or_give_way(request, std::move(call.done))
                             : wait_for(std::move(call.done));
  MR_CO_TRY(auto answer, co_await std::move(waiting));
  auto hints = of_follower ? LeaderHints() : wanted_hints(answer, request.head.version);
  if (hints.wanted()) MR_CO_CHECK(co_await hints.find(request));
  co_return write_answer(request, std::move(answer), hints);
}

}  // namespace millrace::kafka_transport
