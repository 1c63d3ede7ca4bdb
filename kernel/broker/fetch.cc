// Fetch: a long poll on the connection's shard. It reads what is there from every shard at once;
// while that is not enough it registers one waiter with all partitions and reads again when one of
// them has grown.
#include <algorithm>
#include <utility>

#include "kernel/broker/broker.h"
#include "kernel/broker/session.h"

namespace millrace::kernel {

namespace {

struct Part {
  std::size_t topic_at = 0;
  std::size_t partition_at = 0;
  std::string topic;
  PartitionFetch fetch;
};
using Group = std::vector<Part>;

// A request with its partitions sorted by the shard that owns them.
struct Plan {
  ShardState& local;
  FetchRequest request;
  std::vector<Group> groups;  // by shard
  FetchAnswer refused;        // the answer so far: what is unknown has its error
};

// Reads one shard's part: at most `bytes_max` together, whole batches.  [the owner's shard]
Task<std::vector<PartitionFetched>> read_group(ShardState& owner, Group group,
                                               ReadContext context) {
  std::vector<PartitionFetched> fetched;
  fetched.reserve(group.size());
  for (auto& part : group) {
    const auto partition = owner.find(part.topic, part.fetch.partition);
    if (!partition) {
      fetched.push_back(
          {.partition = part.fetch.partition, .error = ErrorCode::not_leader_or_follower});
      continue;
    }
    const auto number = part.fetch.partition;
    auto read = co_await partition->read(part.fetch, context);
    if (!read) {
      fetched.push_back({.partition = number, .error = error_code_of(read.error())});
      continue;
    }
    const auto bytes = read->records.size();
    context.bytes_max -= std::min(bytes, context.bytes_max);
    if (bytes > 0) context.at_least_one = false;
    fetched.push_back(*std::move(read));
  }
  co_return std::move(fetched);
}

// [the owner's shard]
Task<> wait_group(ShardState& owner, Group group, std::vector<Offset> from, Isolation isolation,
                  std::shared_ptr<FetchWaiter> waiter) {
  for (std::size_t at = 0; at < group.size(); ++at) {
    const auto partition = owner.find(group[at].topic, group[at].fetch.partition);
    if (partition) {
      partition->add_waiter(from[at], isolation, waiter);
    } else {
      waiter->notify();
    }
  }
  co_return {};
}

// [the owner's shard]
void forget_group(ShardState& owner, const Group& group, const FetchWaiter& waiter) {
  for (const auto& part : group) {
    const auto partition = owner.find(part.topic, part.fetch.partition);
    if (partition) partition->remove_waiter(waiter);
  }
}

PartitionFetched& slot(FetchAnswer& answer, const Part& part) {
  return answer.topics[part.topic_at].partitions[part.partition_at];
}

// Every shard read up to the request's limit: keep the partitions in request order until it is used
// up. What is dropped are file ranges; they cost nothing.
void keep_within(FetchAnswer& answer, std::uint64_t bytes_max) {
  std::uint64_t kept = 0;
  for (auto& topic : answer.topics) {
    for (auto& partition : topic.partitions) {
      const auto bytes = partition.records.size();
      if (bytes == 0) continue;
      if (kept > 0 && kept + bytes > bytes_max) {
        partition.records = Payload();
        continue;
      }
      kept += bytes;
    }
  }
}

struct Outcome {
  std::uint64_t bytes = 0;
  bool any_error = false;
};
Outcome outcome_of(const FetchAnswer& answer) {
  Outcome outcome;
  for (const auto& topic : answer.topics) {
    for (const auto& partition : topic.partitions) {
      outcome.bytes += partition.records.size();
      outcome.any_error |= partition.error != ErrorCode::none;
    }
  }
  return outcome;
}

// Reads from all shards side by side.
Task<FetchAnswer> read_all(PartitionMap& partitions, const Plan& plan) {
  const auto& request = plan.request;
  const ReadContext context{.isolation = request.isolation,
                            .newest_magic = request.newest_magic,
                            .zstd = request.zstd,
                            .bytes_max = static_cast<std::uint64_t>(std::max(request.bytes_max, 0)),
                            .at_least_one = true};
  struct Reading {
    const Group* group;
    Pending<std::vector<PartitionFetched>> read;
  };
  std::vector<Reading> reading;
  CancelScope* scope = co_await this_scope();
  for (std::size_t at = 0; at < plan.groups.size(); ++at) {
    const auto& group = plan.groups[at];
    if (group.empty()) continue;
    auto& owner = *partitions.shards()[at];
    auto make = [&owner, group, context] { return read_group(owner, group, context); };
    auto task = run_on(owner.shard(), std::move(make));
    reading.push_back({&group, start(plan.local.shard(), std::move(task), scope)});
  }
  FetchAnswer answer;
  answer.error = plan.refused.error;
  for (const auto& topic : plan.refused.topics) {
    auto& copy = answer.topics.emplace_back();
    copy.topic = topic.topic;
    for (const auto& partition : topic.partitions) {
      copy.partitions.push_back({.partition = partition.partition, .error = partition.error});
    }
  }
  for (auto& one : reading) {
    MR_CO_TRY(auto fetched, co_await one.read);
    for (std::size_t at = 0; at < fetched.size(); ++at) {
      slot(answer, (*one.group)[at]) = std::move(fetched[at]);
    }
  }
  keep_within(answer, context.bytes_max);
  co_return std::move(answer);
}

// What is readable is known from the last read; anything beyond it wakes the poll.
Task<> register_waiter(PartitionMap& partitions, const Plan& plan, const FetchAnswer& seen,
                       std::shared_ptr<FetchWaiter> waiter) {
  const auto isolation = plan.request.isolation;
  for (std::size_t at = 0; at < plan.groups.size(); ++at) {
    const auto& group = plan.groups[at];
    if (group.empty()) continue;
    std::vector<Offset> from;
    for (const auto& part : group) {
      const auto& fetched = seen.topics[part.topic_at].partitions[part.partition_at];
      const auto readable =
          isolation == Isolation::read_committed ? fetched.last_stable : fetched.high_watermark;
      from.push_back(std::max(readable, part.fetch.from));
    }
    auto& owner = *partitions.shards()[at];
    auto make = [&owner, group, from = std::move(from), isolation, waiter] {
      return wait_group(owner, group, from, isolation, waiter);
    };
    MR_CO_CHECK(co_await run_on(owner.shard(), std::move(make)));
  }
  co_return {};
}

// Registers one waiter with every partition, waits for it or the deadline, and takes it back, also
// when the poll was cancelled in between.
Task<> wait_for_growth(PartitionMap& partitions, Plan& plan, FetchAnswer& seen, Duration limit) {
  auto waiter = std::make_shared<FetchWaiter>(plan.local.shard());
  auto grown = co_await register_waiter(partitions, plan, seen, waiter);
  if (grown) grown = co_await with_deadline(waiter->wait(), limit);
  for (std::size_t at = 0; at < plan.groups.size(); ++at) {
    const auto& group = plan.groups[at];
    if (group.empty()) continue;
    auto& owner = *partitions.shards()[at];
    owner.shard().post([&owner, group, waiter] { forget_group(owner, group, *waiter); });
  }
  if (!grown && grown.error().code != Errc::timed_out) co_return grown.error();
  co_return {};
}

Task<FetchAnswer> poll(PartitionMap& partitions, std::unique_ptr<Plan> plan) {
  Shard& shard = co_await this_shard();
  const auto deadline = shard.now() + plan->request.wait_max;
  const auto bytes_min = static_cast<std::uint64_t>(std::max(plan->request.bytes_min, 0));
  while (true) {
    MR_CO_TRY(auto answer, co_await read_all(partitions, *plan));
    const auto outcome = outcome_of(answer);
    const auto left = deadline - shard.now();
    if (outcome.bytes >= bytes_min || outcome.any_error || left <= Duration::zero()) {
      co_return std::move(answer);
    }
    MR_CO_CHECK(co_await wait_for_growth(partitions, *plan, answer, left));
  }
}

Plan make_plan(PartitionMap& partitions, ShardState& local, FetchRequest request) {
  Plan plan{local, std::move(request), std::vector<Group>(partitions.shards().size()), {}};
  for (const auto& topic : plan.request.topics) {
    const auto topic_at = plan.refused.topics.size();
    const auto* known = local.cluster() ? local.cluster()->find(topic.topic) : nullptr;
    auto& answered = plan.refused.topics.emplace_back();
    answered.topic = topic.topic;
    answered.partitions.resize(topic.partitions.size());
    for (std::size_t at = 0; at < topic.partitions.size(); ++at) {
      const auto number = topic.partitions[at].partition;
      answered.partitions[at].partition = number;
      if (!known || number < 0 || static_cast<std::size_t>(number) >= known->partitions.size()) {
        answered.partitions[at].error = plan.request.by_topic_id
                                            ? ErrorCode::unknown_topic_id
                                            : ErrorCode::unknown_topic_or_partition;
        continue;
      }
      auto& owner = partitions.owner_of(known->name, number);
      plan.groups[owner.shard().index()].push_back(
          {topic_at, at, known->name, topic.partitions[at]});
    }
  }
  return plan;
}

// Runs the poll so that it ends with whoever waits for its answer, and before the broker closes.
Task<> run_poll(PartitionMap& partitions, std::unique_ptr<Plan> plan,
                std::shared_ptr<CancelScope> scope, Resolver<FetchAnswer> done) {
  MR_CO_TRY(const auto pass, plan->local.running().enter());
  done.on_abandoned([scope] { scope->cancel(); });
  auto polled = co_await poll(partitions, std::move(plan)).within(*scope);
  done.resolve(std::move(polled));
  co_return {};
}

}  // namespace

Call<FetchAnswer> KernelBroker::fetch(Session& session, FetchRequest request) {
  auto& local = kernel_session(session).shard();
  // Sessions (KIP-227) are not kept: a client that asks for one is told session 0, and goes on with
  // full requests.
  if (request.session_id != 0) {
    FetchAnswer unknown{.error = ErrorCode::fetch_session_id_not_found, .topics = {}};
    return {Pending<>::ready({}), Pending<FetchAnswer>::ready(std::move(unknown))};
  }
  const auto bytes_max = config_.number_of("fetch.max.bytes", 57'671'680);
  request.bytes_max =
      static_cast<std::int32_t>(std::min<std::int64_t>(request.bytes_max, bytes_max));
  auto plan = std::make_unique<Plan>(make_plan(partitions_, local, std::move(request)));
  auto [done, answer] = make_pending<FetchAnswer>();
  auto scope = std::make_shared<CancelScope>(&local.background());
  spawn(local.shard(), run_poll(partitions_, std::move(plan), scope, std::move(done)), "fetch");
  return {Pending<>::ready({}), std::move(answer)};
}

}  // namespace millrace::kernel
