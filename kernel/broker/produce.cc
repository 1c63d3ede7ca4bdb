// Produce: the request is split by shard, each shard appends its part, and the answers are put back
// in the request's order.
#include <algorithm>
#include <chrono>
#include <optional>
#include <string_view>
#include <utility>

#include "kernel/broker/broker.h"
#include "kernel/broker/session.h"
#include "kernel/broker/tell.h"

namespace millrace::kernel {

namespace {

// One partition's part of a request, and where its answer goes.
struct Part {
  ShardState* owner = nullptr;
  std::size_t topic_at = 0;
  std::size_t partition_at = 0;
  std::string topic;
  PartitionRecords records;
};
struct Answered {
  std::size_t topic_at = 0;
  std::size_t partition_at = 0;
  PartitionProduced produced;
};
// One that its partition has begun.
struct Running {
  std::size_t topic_at = 0;
  std::size_t partition_at = 0;
  std::int32_t number = -1;
  std::shared_ptr<Partition> partition;  // kept while its append is under way
  Producing call;
};

// Lives on the connection's shard until the last group has answered.
struct ProduceCall {
  ProduceAnswer answer;
  MemoryBudget::Lease memory;  // of the request's records
  std::size_t groups_undispatched = 0;
  std::size_t groups_unreleased = 0;
  std::size_t groups_undone = 0;
  Resolver<> dispatched;
  Resolver<ProduceAnswer> done;

  void group_dispatched() {
    if (--groups_undispatched == 0) dispatched.resolve();
  }
  void group_released() {
    if (--groups_unreleased == 0) memory.shrink_to(0);
  }
  void group_done(std::vector<Answered> parts) {
    for (auto& part : parts) {
      answer.topics[part.topic_at].partitions[part.partition_at] = std::move(part.produced);
    }
    if (--groups_undone == 0) done.resolve(std::move(answer));
  }
};

Producing refuse(std::int32_t partition, ErrorCode error) {
  PartitionProduced refused{.partition = partition, .error = error};
  return {Pending<>::ready({}), {}, Pending<PartitionProduced>::ready(std::move(refused))};
}

// A request of many large batches lets others of the shard have their turn in between.
constexpr Duration turn_max = std::chrono::milliseconds(1);

Task<> let_others_run(Shard& shard) {
  auto [resolver, pending] = make_pending<>();
  shard.post([mine = std::move(resolver)]() mutable { mine.resolve(); });
  co_return co_await pending;
}

// The partition lets go of the records, or keeps what it needs of them.  [the shard that owns it]
Running begin(ShardState& owner, Part& part, const ProduceContext& context) {
  const auto number = part.records.partition;
  auto partition = owner.find(part.topic, number);
  auto call = partition ? partition->produce(part.records, context)
                        : refuse(number, ErrorCode::not_leader_or_follower);
  part.records.records.reset();
  return {part.topic_at, part.partition_at, number, std::move(partition), std::move(call)};
}

bool is_answered(const Producing& call) {
  return call.dispatched.is_ready() && !call.released && call.done.is_ready();
}

PartitionProduced outcome_of(std::int32_t number, Result<PartitionProduced> produced) {
  if (produced) return *std::move(produced);
  return {.partition = number,
          .error = error_code_of(produced.error()),
          .message = produced.error().detail};
}

// What one shard has begun of a request, until it is answered.  [the shard that owns the
// partitions]
Task<> finish_group(ShardState& owner, Shard& home, std::shared_ptr<ProduceCall> call,
                    std::vector<Running> running) {
  for (auto& one : running) {
    // A failure shows again, with its reason, when `done` is awaited.
    static_cast<void>(co_await one.call.dispatched);
  }
  const bool released =
      std::ranges::none_of(running, [](const auto& one) { return one.call.released.has_value(); });
  tell(owner.shard(), home, [call, released] {
    if (released) call->group_released();
    call->group_dispatched();
  });
  if (!released) {
    for (auto& one : running) {
      if (one.call.released) static_cast<void>(co_await *one.call.released);
    }
    tell(owner.shard(), home, [call] { call->group_released(); });
  }

  std::vector<Answered> answered;
  answered.reserve(running.size());
  for (auto& one : running) {
    auto produced = co_await one.call.done;
    answered.push_back(
        {one.topic_at, one.partition_at, outcome_of(one.number, std::move(produced))});
  }
  tell(owner.shard(), home,
       [call, answered = std::move(answered)]() mutable { call->group_done(std::move(answered)); });
  co_return {};
}

// One shard's part of a request.  [the shard that owns the partitions]
Task<> produce_group(ShardState& owner, Shard& home, std::shared_ptr<ProduceCall> call,
                     std::vector<Part> parts, ProduceContext context) {
  std::vector<Running> running;
  running.reserve(parts.size());
  auto began_at = owner.shard().now();
  for (auto& part : parts) {
    if (owner.shard().now() - began_at >= turn_max) {
      // It cannot fail but at the end of the shard, where what follows is refused.
      static_cast<void>(co_await let_others_run(owner.shard()));
      began_at = owner.shard().now();
    }
    running.push_back(begin(owner, part, context));
  }
  auto finishing = finish_group(owner, home, std::move(call), std::move(running));
  co_return co_await std::move(finishing);
}

}  // namespace

namespace {

// As Kafka has it: for tools that mend what is broken.
constexpr std::string_view mending_client = "__admin_client";

// Why a client may not write to a topic.
std::optional<PartitionProduced> refuse_internal(const TopicState& topic, const Session& session) {
  if (!topic.internal() || kernel_session(session).client().client_id == mending_client) {
    return std::nullopt;
  }
  return PartitionProduced{.error = ErrorCode::invalid_topic_exception,
                           .message = "Cannot append to internal topic " + topic.name};
}

}  // namespace

Call<ProduceAnswer> KernelBroker::produce(Session& session, ProduceRequest request) {
  auto& local = kernel_session(session).shard();
  ProduceAnswer answer;
  std::vector<Part> parts;

  for (auto& topic : request.topics) {
    const auto topic_at = answer.topics.size();
    const auto* known = local.cluster() ? local.cluster()->find(topic.topic) : nullptr;
    auto& answered = answer.topics.emplace_back();
    answered.partitions.resize(topic.partitions.size());
    for (std::size_t at = 0; at < topic.partitions.size(); ++at) {
      auto& records = topic.partitions[at];
      const auto number = records.partition;
      answered.partitions[at].partition = number;
      if (!known || number < 0 || static_cast<std::size_t>(number) >= known->partitions.size()) {
        const bool by_id = topic.topic.name.empty();
        answered.partitions[at].error =
            by_id ? ErrorCode::unknown_topic_id : ErrorCode::unknown_topic_or_partition;
        continue;
      }
      if (auto refused = refuse_internal(*known, session)) {
        answered.partitions[at] = *std::move(refused);
        answered.partitions[at].partition = number;
        continue;
      }
      auto& owner = partitions_.owner_of(known->name, number);
      parts.push_back({&owner, topic_at, at, known->name, std::move(records)});
    }
    answered.topic = std::move(topic.topic);
  }

  const ProduceContext context{request.acks, request.timeout, request.features};
  std::vector<Running> begun;
  if (parts.size() == 1 && parts.front().owner == &local) {
    // A small request: most often there is nothing to split, to pass on, or to wait for.
    begun.push_back(begin(local, parts.front(), context));
    if (auto& one = begun.front(); is_answered(one.call)) {
      answer.topics[one.topic_at].partitions[one.partition_at] =
          outcome_of(one.number, one.call.done.await_resume());
      parts.clear();
    }
  }
  if (parts.empty()) {
    return {Pending<>::ready({}), Pending<ProduceAnswer>::ready(std::move(answer))};
  }

  auto call = std::make_shared<ProduceCall>();
  call->answer = std::move(answer);
  call->memory = std::move(request.memory);
  auto [dispatched, when_dispatched] = make_pending<>();
  auto [done, when_done] = make_pending<ProduceAnswer>();
  call->dispatched = std::move(dispatched);
  call->done = std::move(done);
  Shard& home = local.shard();
  if (!begun.empty()) {
    call->groups_undispatched = call->groups_unreleased = call->groups_undone = 1;
    spawn(home, finish_group(local, home, call, std::move(begun)), "produce");
    return {std::move(when_dispatched), std::move(when_done)};
  }

  std::vector<std::vector<Part>> groups(partitions_.shards().size());
  for (auto& part : parts) groups[part.owner->shard().index()].push_back(std::move(part));
  for (const auto& group : groups) {
    if (!group.empty()) ++call->groups_undispatched;
  }
  call->groups_unreleased = call->groups_undone = call->groups_undispatched;
  for (auto& group : groups) {
    if (group.empty()) continue;
    auto& owner = *group.front().owner;
    tell(home, owner.shard(), [&owner, &home, call, context, parts = std::move(group)]() mutable {
      spawn(owner.shard(), produce_group(owner, home, call, std::move(parts), context), "produce");
    });
  }
  return {std::move(when_dispatched), std::move(when_done)};
}

}  // namespace millrace::kernel
