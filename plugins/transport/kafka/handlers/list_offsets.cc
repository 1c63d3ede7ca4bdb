#include <algorithm>
#include <utility>
#include <vector>

#include <millrace/kafka/list_offsets.h>

#include "handlers.h"
#include "names.h"

namespace millrace::kafka_transport {
namespace {

struct Asked {
  ListOffsetsRequest request;
  ListOffsetsAnswer unsupported;  ///< special timestamps that the version does not have
};

Result<Asked> read_request(const Request& request) {
  MR_TRY(const auto asked, request.decode<kafka::ListOffsetsRequest>());
  const auto features = list_offsets_features(request.head.version);
  Asked result;
  result.request.replica_id = asked.replica_id;
  result.request.isolation =
      asked.isolation_level == 1 ? Isolation::read_committed : Isolation::read_uncommitted;
  for (const auto& topic : asked.topics) {
    auto& query = result.request.topics.emplace_back(std::string(topic.name));
    auto& refused = result.unsupported.topics.emplace_back(std::string(topic.name));
    for (const auto& partition : topic.partitions) {
      if (partition.timestamp < features.oldest_spec) {
        refused.partitions.push_back(
            {.partition = partition.partition_index, .error = ErrorCode::unsupported_version});
      } else {
        query.partitions.push_back(
            {.partition = partition.partition_index,
             .current_leader_epoch = {partition.current_leader_epoch},
             .timestamp = partition.timestamp,
             .segments_max = features.offset_list ? std::max(partition.max_num_offsets, 0) : 0});
      }
    }
  }
  return result;
}

kafka::ListOffsetsResponse::Partition write_partition(const PartitionOffsetFound& found,
                                                      const ListOffsetsFeatures& features) {
  kafka::ListOffsetsResponse::Partition partition;
  partition.partition_index = found.partition;
  partition.error_code = code_of(found.error);
  if (features.offset_list) {
    for (const auto& offset : found.segments) partition.old_style_offsets.push_back(offset.value);
    return partition;
  }
  partition.timestamp = found.timestamp.ms;
  partition.offset = found.offset.value;
  // Versions without the field cannot say it; theirs is the default.
  if (features.leader_epoch) partition.leader_epoch = found.leader_epoch.value;
  return partition;
}

/// Topics stand in the same order in both answers.
Result<Payload> write_answer(const Request& request, const ListOffsetsAnswer& answer,
                             const ListOffsetsAnswer& unsupported) {
  const auto features = list_offsets_features(request.head.version);
  kafka::ListOffsetsResponse response;
  for (const auto* part : {&answer, &unsupported}) {
    response.topics.resize(part->topics.size());
    for (std::size_t at = 0; at < part->topics.size(); ++at) {
      auto& topic = response.topics[at];
      topic.name = part->topics[at].topic;
      for (const auto& partition : part->topics[at].partitions) {
        topic.partitions.push_back(write_partition(partition, features));
      }
    }
  }
  return request.encode(response);
}

}  // namespace

Task<Payload> handle_list_offsets(Request& request) {
  MR_CO_TRY(auto asked, read_request(request));
  auto listing = request.broker.list_offsets(request.session, std::move(asked.request));
  MR_CO_TRY(const auto answer, co_await std::move(listing));
  co_return write_answer(request, answer, asked.unsupported);
}

}  // namespace millrace::kafka_transport
