// Changes: those of topics are made on the control thread, those of logs on their shards. Answers
// stand in the request's order.
#include "kernel/broker/admin.h"

#include <algorithm>
#include <string>

#include "kernel/broker/ask_partitions.h"
#include "kernel/broker/session.h"
#include "kernel/cluster/topics.h"

namespace millrace::kernel {

namespace {

Task<PartitionTrimmed> trim_partition(std::shared_ptr<Partition> partition, PartitionTrim wanted) {
  if (is_internal_topic(partition->id().topic)) {
    co_return PartitionTrimmed{.partition = wanted.partition,
                               .error = ErrorCode::invalid_topic_exception};
  }
  co_return co_await partition->trim(wanted);
}

// As Kafka bounds it: a request of 1 MiB can name topics whose answers alone take a GiB.
bool asks_too_much(const CreateTopicsRequest& request) {
  std::size_t partitions = 0;
  for (const auto& topic : request.topics) {
    partitions += std::max({topic.assignments.size(), std::size_t{1},
                            static_cast<std::size_t>(std::max(topic.partitions, 0))});
  }
  return request.topics.size() > 1 && partitions > std::size_t{new_topic_partitions_max};
}

std::vector<TopicCreated> refused_together(const CreateTopicsRequest& request) {
  std::vector<TopicCreated> answers;
  for (const auto& topic : request.topics) {
    answers.push_back({.name = topic.name,
                       .error = ErrorCode::policy_violation,
                       .message = "At most " + std::to_string(new_topic_partitions_max) +
                                  " partitions are created by one request.",
                       .configs = {}});
  }
  return answers;
}

}  // namespace

Task<std::vector<TopicCreated>> KernelAdmin::create_topics(Session&, CreateTopicsRequest request) {
  if (asks_too_much(request)) co_return refused_together(request);
  std::vector<TopicCreated> answers;
  for (auto& wanted : request.topics) {
    const auto name = wanted.name;
    auto make = [this, wanted = std::move(wanted), only = request.validate_only] {
      return topics_.create(wanted, only);
    };
    auto created = co_await run_on(control(), std::move(make));
    if (!created) {
      created = TopicCreated{.name = name,
                             .error = error_code_of(created.error()),
                             .message = created.error().detail,
                             .configs = {}};
    }
    answers.push_back(*std::move(created));
  }
  co_return std::move(answers);
}

Task<std::vector<TopicDeleted>> KernelAdmin::delete_topics(Session&, std::vector<TopicName> topics,
                                                           Duration) {
  std::vector<TopicDeleted> answers;
  for (const auto& name : topics) {
    auto make = [this, name] { return topics_.erase(name); };
    auto deleted = co_await run_on(control(), std::move(make));
    if (!deleted) {
      deleted = TopicDeleted{.topic = name,
                             .error = error_code_of(deleted.error()),
                             .message = deleted.error().detail};
    }
    answers.push_back(*std::move(deleted));
  }
  co_return std::move(answers);
}

Task<std::vector<TopicGrown>> KernelAdmin::grow_topics(Session&, GrowTopicsRequest request) {
  std::vector<TopicGrown> answers;
  for (const auto& wanted : request.topics) {
    auto make = [this, wanted, only = request.validate_only] { return topics_.grow(wanted, only); };
    auto grown = co_await run_on(control(), std::move(make));
    if (!grown) {
      grown = TopicGrown{.name = wanted.name,
                         .error = error_code_of(grown.error()),
                         .message = grown.error().detail};
    }
    answers.push_back(*std::move(grown));
  }
  co_return std::move(answers);
}

Task<std::vector<TopicTrimmed>> KernelAdmin::trim(Session& session, TrimRequest request) {
  auto& local = kernel_session(session).shard();
  auto trimming =
      ask_topics<TopicTrimmed>(partitions_, local, std::move(request.topics), &trim_partition);
  MR_CO_TRY(auto topics, co_await std::move(trimming));
  const auto kept = co_await keep_log_starts(request.timeout);
  if (kept) co_return std::move(topics);
  parts_.log.error("log starts that were moved could not be written",
                   {{"error", to_string(kept.error())}});
  for (auto& topic : topics) {
    for (auto& partition : topic.partitions) {
      if (partition.error != ErrorCode::none) continue;
      partition = {.partition = partition.partition, .error = error_code_of(kept.error())};
    }
  }
  co_return std::move(topics);
}

// Moved log starts would come back after a crash until they are written.
Task<> KernelAdmin::keep_log_starts(Duration timeout) {
  auto make = [this] { return checkpoints_.write_log_starts(); };
  auto writing = run_on(control(), std::move(make));
  co_return co_await with_deadline(std::move(writing), timeout);
}

}  // namespace millrace::kernel
