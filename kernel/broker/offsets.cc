// ListOffsets and ends of epochs: each partition is asked on its own shard.
#include "kernel/broker/ask_partitions.h"
#include "kernel/broker/broker.h"
#include "kernel/broker/session.h"

namespace millrace::kernel {

namespace {

struct OffsetQuestion {
  std::int32_t partition = -1;
  PartitionOffsetQuery query;
  Isolation isolation = Isolation::read_uncommitted;
};

Task<PartitionOffsetFound> find_offset(std::shared_ptr<Partition> partition,
                                       OffsetQuestion question) {
  co_return co_await partition->find_offset(question.query, question.isolation);
}

Task<PartitionEpochEnd> find_epoch_end(std::shared_ptr<Partition> partition,
                                       PartitionEpochQuery query) {
  co_return partition->epoch_end(query);
}

}  // namespace

Task<ListOffsetsAnswer> KernelBroker::list_offsets(Session& session, ListOffsetsRequest request) {
  auto& local = kernel_session(session).shard();
  std::vector<PartitionQuestion<OffsetQuestion>> questions;
  for (const auto& topic : request.topics) {
    for (const auto& query : topic.partitions) {
      questions.push_back({topic.topic, {query.partition, query, request.isolation}});
    }
  }
  auto asking = ask_partitions(partitions_, local, std::move(questions), &find_offset);
  MR_CO_TRY(auto found, co_await std::move(asking));
  ListOffsetsAnswer answer;
  auto next = found.begin();
  for (auto& topic : request.topics) {
    auto& group = answer.topics.emplace_back(std::move(topic.topic));
    for (std::size_t n = 0; n < topic.partitions.size(); ++n) group.partitions.push_back(*next++);
  }
  co_return std::move(answer);
}

Task<std::vector<TopicEpochEnds>> KernelBroker::epoch_ends(Session& session,
                                                           std::vector<TopicEpochQuery> topics) {
  auto& local = kernel_session(session).shard();
  co_return co_await ask_topics<TopicEpochEnds>(partitions_, local, std::move(topics),
                                                &find_epoch_end);
}

}  // namespace millrace::kernel
