#include <utility>
#include <vector>

#include <millrace/admin.h>
#include <millrace/kafka/describe_producers.h>

#include "handlers.h"
#include "names.h"

namespace millrace::kafka_transport {
namespace {

kafka::DescribeProducersResponse::Partition write_partition(const PartitionProducers& described) {
  kafka::DescribeProducersResponse::Partition partition;
  partition.partition_index = described.partition;
  partition.error_code = code_of(described.error);
  for (const auto& producer : described.producers) {
    partition.active_producers.emplace_back(
        producer.producer_id, producer.producer_epoch, producer.last_sequence,
        producer.last_timestamp.ms, producer.coordinator_epoch, producer.transaction_start.value);
  }
  return partition;
}

}  // namespace

Task<Payload> handle_describe_producers(Request& request) {
  MR_CO_TRY(const auto asked, request.decode<kafka::DescribeProducersRequest>());
  std::vector<TopicPartitions> wanted;
  for (const auto& topic : asked.topics) {
    wanted.push_back({std::string(topic.name), topic.partition_indexes});
  }
  auto describing = request.broker.admin().describe_producers(request.session, std::move(wanted));
  MR_CO_TRY(const auto described, co_await std::move(describing));
  kafka::DescribeProducersResponse response;
  for (const auto& topic : described) {
    auto& to = response.topics.emplace_back(topic.topic);
    for (const auto& partition : topic.partitions) {
      to.partitions.push_back(write_partition(partition));
    }
  }
  co_return request.encode(response);
}

}  // namespace millrace::kafka_transport
