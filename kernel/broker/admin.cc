// Changes: those of topics are made on the control thread, those of logs on their shards. Answers
// stand in the request's order.
#include "kernel/broker/admin.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>

#include "kernel/broker/ask_partitions.h"
#include "kernel/broker/session.h"
#include "kernel/cluster/topics.h"

namespace millrace::kernel {

namespace {

Task<PartitionTrimmed> trim_partition(std::shared_ptr<Partition> partition, PartitionTrim wanted) {
  co_return co_await partition->trim(wanted);
}

struct TrimWait {
  std::int32_t partition = -1;
  Offset start;
  Duration limit{};
};

Task<PartitionTrimmed> wait_for_followers(std::shared_ptr<Partition> partition, TrimWait wait) {
  co_return co_await partition->trimmed_everywhere(wait.start, wait.limit);
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

constexpr auto timed_out = ErrorCode::request_timed_out;
constexpr std::string_view timed_out_message = "The request timed out; the change goes on.";

// What has been answered so far, and what the rest is answered at the deadline.  [asker's shard]
template <class Answer>
struct Progress {
  std::vector<Answer> answers;
  std::vector<Answer> late;
  bool left = false;  // nobody waits any more
  Resolver<> all;

  void add(Result<Answer> done) {
    if (left) return;
    auto& answer = answers.emplace_back(std::move(late[answers.size()]));
    if (done) {
      answer = *std::move(done);
    } else {
      answer.error = error_code_of(done.error());
      answer.message = done.error().detail;
    }
  }
};

Task<> wait_for(Pending<> pending) { co_return co_await pending; }

// What is done together: enough that few commits do for many topics, little enough that answers
// and other changes come in between.
constexpr std::int64_t work_at_once_max = 1000;  // partitions
constexpr std::int64_t work_of_topic_min = 10;

std::int64_t work_of(const NewTopic& topic) {
  return std::max({work_of_topic_min, std::int64_t{topic.partitions},
                   static_cast<std::int64_t>(topic.assignments.size())});
}
std::int64_t work_of(const TopicName&) { return work_of_topic_min; }
std::int64_t work_of(const TopicGrowth&) { return work_at_once_max; }

template <class Wanted>
std::vector<std::vector<Wanted>> in_parts(std::vector<Wanted> wanted) {
  std::vector<std::vector<Wanted>> parts;
  std::int64_t work = work_at_once_max;
  for (auto& one : wanted) {
    const auto more = work_of(one);
    if (work + more > work_at_once_max) {
      parts.emplace_back();
      work = 0;
    }
    work += more;
    parts.back().push_back(std::move(one));
  }
  return parts;
}

}  // namespace

// A part after the other. At the deadline what is not done yet is answered as in `late`, and goes
// on.
template <class Answer, class Wanted, class Change>
Task<std::vector<Answer>> KernelAdmin::change_each(std::vector<Wanted> wanted,
                                                   std::vector<Answer> late, Duration timeout,
                                                   Change change) {
  Shard& home = co_await this_shard();
  // Who has just started is not told of its controller yet, which may be itself.
  MR_CO_CHECK(co_await partitions_.here().joined());
  auto progress = std::make_shared<Progress<Answer>>();
  progress->late = std::move(late);
  auto [all, when_all] = make_pending<>();
  progress->all = std::move(all);
  const auto work = [](KernelAdmin& self, Shard& asker, std::shared_ptr<Progress<Answer>> told,
                       std::vector<Wanted> todo, Change each) -> Task<> {
    MR_CO_TRY(const auto pass, self.running_.enter());
    for (auto& part : in_parts(std::move(todo))) {
      const auto count = part.size();
      auto doing = each(self.topics_, std::move(part));
      auto done = co_await std::move(doing);
      asker.post([told, count, done = std::move(done)]() mutable {
        for (std::size_t at = 0; at < count; ++at) {
          told->add(done ? std::move((*done)[at]) : Result<Answer>(done.error()));
        }
      });
    }
    asker.post([told] { told->all.resolve(); });
    co_return {};
  };
  control().post([this, &home, progress, work, change, todo = std::move(wanted)]() mutable {
    spawn(control(), work(*this, home, progress, std::move(todo), change), "changes of topics");
  });
  auto waiting = with_deadline(wait_for(std::move(when_all)), timeout);
  auto waited = co_await std::move(waiting);
  progress->left = true;
  if (!waited && waited.error().code != Errc::timed_out) co_return waited.error();
  auto answers = std::move(progress->answers);
  for (auto at = answers.size(); at < progress->late.size(); ++at) {
    answers.push_back(std::move(progress->late[at]));
  }
  co_return std::move(answers);
}

Task<std::vector<TopicCreated>> KernelAdmin::create_topics(Session&, CreateTopicsRequest request) {
  if (asks_too_much(request)) co_return refused_together(request);
  std::vector<TopicCreated> late;
  late.reserve(request.topics.size());
  for (const auto& topic : request.topics) {
    late.push_back({.name = topic.name,
                    .error = timed_out,
                    .message = std::string(timed_out_message),
                    .configs = {}});
  }
  auto lived = std::make_shared<TopicAdmin::LivedThen::element_type>();
  auto change = [only = request.validate_only, lived](TopicAdmin& topics,
                                                      std::vector<NewTopic> wanted) {
    return topics.create_all(std::move(wanted), only, lived);
  };
  auto changing = change_each(std::move(request.topics), std::move(late), request.timeout, change);
  co_return co_await std::move(changing);
}

Task<std::vector<TopicDeleted>> KernelAdmin::delete_topics(Session&, std::vector<TopicName> topics,
                                                           Duration timeout) {
  std::vector<TopicDeleted> late;
  late.reserve(topics.size());
  for (const auto& topic : topics) {
    late.push_back({.topic = topic, .error = timed_out, .message = std::string(timed_out_message)});
  }
  auto change = [](TopicAdmin& admin, std::vector<TopicName> names) {
    return admin.erase_all(std::move(names));
  };
  auto changing = change_each(std::move(topics), std::move(late), timeout, change);
  co_return co_await std::move(changing);
}

Task<std::vector<TopicGrown>> KernelAdmin::grow_topics(Session&, GrowTopicsRequest request) {
  std::vector<TopicGrown> late;
  late.reserve(request.topics.size());
  for (const auto& topic : request.topics) {
    late.push_back(
        {.name = topic.name, .error = timed_out, .message = std::string(timed_out_message)});
  }
  auto change = [only = request.validate_only](TopicAdmin& topics,
                                               std::vector<TopicGrowth> wanted) {
    return topics.grow_all(std::move(wanted), only);
  };
  auto changing = change_each(std::move(request.topics), std::move(late), request.timeout, change);
  co_return co_await std::move(changing);
}

Task<std::vector<TopicTrimmed>> KernelAdmin::trim(Session& session, TrimRequest request) {
  auto& local = kernel_session(session).shard();
  MR_CO_TRY(const auto cluster, co_await local.joined());
  // The broker's own state is not clients' to cut.
  std::map<std::size_t, std::vector<PartitionTrimmed>> refused;
  for (std::size_t at = 0; at < request.topics.size(); ++at) {
    auto& topic = request.topics[at];
    const auto* known = cluster->find(std::string_view(topic.topic));
    if (!known || !known->internal()) continue;
    for (const auto& partition : std::exchange(topic.partitions, {})) {
      refused[at].push_back(
          {.partition = partition.partition, .error = ErrorCode::invalid_topic_exception});
    }
  }
  auto trimming =
      ask_topics<TopicTrimmed>(partitions_, local, std::move(request.topics), &trim_partition);
  MR_CO_TRY(auto topics, co_await std::move(trimming));
  for (auto& [at, partitions] : refused) topics[at].partitions = std::move(partitions);
  const auto kept = co_await keep_log_starts(request.timeout);
  if (kept) co_return co_await trimmed_everywhere(session, std::move(topics), request.timeout);
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

// Kafka's low watermark: what a leader has removed comes back with a follower that has not.
Task<std::vector<TopicTrimmed>> KernelAdmin::trimmed_everywhere(Session& session,
                                                                std::vector<TopicTrimmed> topics,
                                                                Duration limit) {
  std::vector<PartitionQuestion<TrimWait>> questions;
  std::vector<PartitionTrimmed*> places;
  for (auto& topic : topics) {
    for (auto& partition : topic.partitions) {
      if (partition.error != ErrorCode::none) continue;
      questions.push_back({topic.topic, {partition.partition, partition.log_start, limit}});
      places.push_back(&partition);
    }
  }
  auto waiting = ask_partitions<TrimWait, PartitionTrimmed>(
      partitions_, kernel_session(session).shard(), std::move(questions), &wait_for_followers);
  MR_CO_TRY(auto answers, co_await std::move(waiting));
  for (std::size_t at = 0; at < places.size(); ++at) *places[at] = answers[at];
  co_return std::move(topics);
}

// Moved log starts would come back after a crash until they are written.
Task<> KernelAdmin::keep_log_starts(Duration timeout) {
  auto make = [this] { return checkpoints_.write_log_starts(); };
  auto writing = run_on(control(), std::move(make));
  co_return co_await with_deadline(std::move(writing), timeout);
}

}  // namespace millrace::kernel
