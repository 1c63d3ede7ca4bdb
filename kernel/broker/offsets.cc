// ListOffsets: each partition is asked on its own shard.
#include "kernel/broker/broker.h"
#include "kernel/broker/session.h"

namespace millrace::kernel {

namespace {

Task<PartitionOffsetFound> find_on_owner(ShardState& owner, std::string topic,
                                         PartitionOffsetQuery query, Isolation isolation) {
  const auto partition = owner.find(topic, query.partition);
  if (!partition) {
    co_return PartitionOffsetFound{.partition = query.partition,
                                   .error = ErrorCode::not_leader_or_follower};
  }
  co_return co_await partition->find_offset(query, isolation);
}

}  // namespace

Task<ListOffsetsAnswer> KernelBroker::list_offsets(Session& session, ListOffsetsRequest request) {
  auto& local = kernel_session(session).shard();
  MR_CO_TRY(const auto cluster, co_await local.joined());
  const auto isolation = request.isolation;
  struct Asked {
    std::size_t topic_at;
    std::int32_t partition;
    Pending<PartitionOffsetFound> found;
  };
  std::vector<Asked> asked;
  ListOffsetsAnswer answer;
  CancelScope* scope = co_await this_scope();
  for (const auto& topic : request.topics) {
    const auto topic_at = answer.topics.size();
    answer.topics.push_back({topic.topic, {}});
    const auto* known = cluster->find(topic.topic);
    for (const auto& query : topic.partitions) {
      const auto number = query.partition;
      if (!known || number < 0 || static_cast<std::size_t>(number) >= known->partitions.size()) {
        PartitionOffsetFound unknown{.partition = number,
                                     .error = ErrorCode::unknown_topic_or_partition};
        asked.push_back({topic_at, number, Pending<PartitionOffsetFound>::ready(unknown)});
        continue;
      }
      auto& owner = partitions_.owner_of(topic.topic, number);
      auto make = [&owner, name = topic.topic, query, isolation] {
        return find_on_owner(owner, name, query, isolation);
      };
      auto task = run_on(owner.shard(), std::move(make));
      asked.push_back({topic_at, number, start(local.shard(), std::move(task), scope)});
    }
  }
  for (auto& one : asked) {
    auto found = co_await one.found;
    if (!found) {
      found =
          PartitionOffsetFound{.partition = one.partition, .error = error_code_of(found.error())};
    }
    answer.topics[one.topic_at].partitions.push_back(*found);
  }
  co_return std::move(answer);
}

}  // namespace millrace::kernel
