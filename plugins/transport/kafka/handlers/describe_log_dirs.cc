#include <utility>
#include <vector>

#include <millrace/admin.h>
#include <millrace/kafka/describe_log_dirs.h>

#include "handlers.h"
#include "names.h"

namespace millrace::kafka_transport {
namespace {

kafka::DescribeLogDirsResponse::Result write_folder(const LogFolder& folder) {
  kafka::DescribeLogDirsResponse::Result result;
  result.error_code = code_of(folder.error);
  result.log_dir = folder.path;
  result.total_bytes = folder.bytes_total;
  result.usable_bytes = folder.bytes_usable;
  for (const auto& sizes : folder.topics) {
    auto& topic = result.topics.emplace_back(sizes.topic);
    for (const auto& partition : sizes.partitions) {
      topic.partitions.emplace_back(partition.partition, static_cast<std::int64_t>(partition.bytes),
                                    partition.offset_lag);
    }
  }
  return result;
}

}  // namespace

Task<Payload> handle_describe_log_dirs(Request& request) {
  MR_CO_TRY(const auto asked, request.decode<kafka::DescribeLogDirsRequest>());
  std::optional<std::vector<TopicPartitions>> wanted;
  if (asked.topics) {
    wanted.emplace();
    for (const auto& topic : *asked.topics) {
      wanted->push_back({std::string(topic.topic), topic.partitions});
    }
  }
  auto describing = request.broker.admin().describe_log_folders(request.session, std::move(wanted));
  MR_CO_TRY(const auto folders, co_await std::move(describing));
  kafka::DescribeLogDirsResponse response;
  for (const auto& folder : folders) response.results.push_back(write_folder(folder));
  co_return request.encode(response);
}

}  // namespace millrace::kafka_transport
