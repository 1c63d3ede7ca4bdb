#include <utility>

#include <millrace/admin.h>
#include <millrace/kafka/delete_records.h>

#include "handlers.h"
#include "names.h"

namespace millrace::kafka_transport {

Task<Payload> handle_delete_records(Request& request) {
  MR_CO_TRY(const auto asked, request.decode<kafka::DeleteRecordsRequest>());
  TrimRequest trim{.topics = {}, .timeout = milliseconds(asked.timeout_ms)};
  for (const auto& topic : asked.topics) {
    auto& to = trim.topics.emplace_back(std::string(topic.name));
    for (const auto& partition : topic.partitions) {
      to.partitions.push_back({partition.partition_index, {partition.offset}});
    }
  }
  auto trimming = request.broker.admin().trim(request.session, std::move(trim));
  MR_CO_TRY(const auto trimmed, co_await std::move(trimming));
  kafka::DeleteRecordsResponse response;
  for (const auto& topic : trimmed) {
    auto& to = response.topics.emplace_back(topic.topic);
    for (const auto& partition : topic.partitions) {
      to.partitions.emplace_back(partition.partition, partition.log_start.value,
                                 code_of(partition.error));
    }
  }
  co_return request.encode(response);
}

}  // namespace millrace::kafka_transport
