#include <utility>
#include <vector>

#include <millrace/kafka/offset_for_leader_epoch.h>

#include "handlers.h"
#include "names.h"

namespace millrace::kafka_transport {

Task<Payload> handle_offset_for_leader_epoch(Request& request) {
  MR_CO_TRY(const auto asked, request.decode<kafka::OffsetForLeaderEpochRequest>());
  std::vector<TopicEpochQuery> queries;
  for (const auto& topic : asked.topics) {
    auto& query = queries.emplace_back(std::string(topic.topic));
    for (const auto& partition : topic.partitions) {
      query.partitions.push_back({.partition = partition.partition,
                                  .current_leader_epoch = {partition.current_leader_epoch},
                                  .epoch = {partition.leader_epoch}});
    }
  }
  auto asking = request.broker.epoch_ends(request.session, std::move(queries));
  MR_CO_TRY(const auto found, co_await std::move(asking));
  kafka::OffsetForLeaderEpochResponse response;
  for (const auto& topic : found) {
    auto& to = response.topics.emplace_back(topic.topic);
    for (const auto& end : topic.partitions) {
      to.partitions.emplace_back(code_of(end.error), end.partition, end.epoch.value, end.end.value);
    }
  }
  co_return request.encode(response);
}

}  // namespace millrace::kafka_transport
