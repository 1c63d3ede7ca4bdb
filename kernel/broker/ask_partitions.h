// One question to many partitions: split by shard, one message per shard, answers in the order of
// the questions.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <millrace/error_code.h>
#include <millrace/shard.h>

#include "kernel/broker/partitions.h"

namespace millrace::kernel {

/// `Query` and `Answer` have a field `partition`, `Answer` also `error`. Runs on the partition's
/// shard; an error is answered as a code.
template <class Query, class Answer>
using AskPartition = Task<Answer> (*)(std::shared_ptr<Partition> partition, Query query);

template <class Query>
struct PartitionQuestion {
  std::string topic;
  Query query;
};

namespace detail {

template <class Query>
struct PlacedQuestion {
  std::size_t at = 0;  // among all questions
  PartitionQuestion<Query> question;
};

template <class Answer>
Answer refused(std::int32_t partition, ErrorCode error) {
  Answer answer;
  answer.partition = partition;
  answer.error = error;
  return answer;
}

template <class Query, class Answer>
Task<std::vector<Answer>> ask_shard(ShardState& owner, std::vector<PlacedQuestion<Query>> questions,
                                    AskPartition<Query, Answer> ask) {
  std::vector<Pending<Answer>> asked;
  asked.reserve(questions.size());
  for (auto& [at, question] : questions) {
    const auto number = question.query.partition;
    if (auto partition = owner.find(question.topic, number)) {
      auto task = ask(std::move(partition), std::move(question.query));
      asked.push_back(start(owner.shard(), std::move(task)));
    } else {
      auto gone = refused<Answer>(number, ErrorCode::not_leader_or_follower);
      asked.push_back(Pending<Answer>::ready(std::move(gone)));
    }
  }
  std::vector<Answer> answers;
  for (std::size_t at = 0; at < asked.size(); ++at) {
    auto answer = co_await asked[at];
    if (!answer) {
      const auto number = questions[at].question.query.partition;
      answer = refused<Answer>(number, error_code_of(answer.error()));
    }
    answers.push_back(*std::move(answer));
  }
  co_return std::move(answers);
}

}  // namespace detail

/// Partitions that the cluster does not know are answered UNKNOWN_TOPIC_OR_PARTITION, those that
/// are not here NOT_LEADER_OR_FOLLOWER.  [connection's shard]
template <class Query, class Answer>
Task<std::vector<Answer>> ask_partitions(PartitionMap& partitions, ShardState& local,
                                         std::vector<PartitionQuestion<Query>> questions,
                                         AskPartition<Query, Answer> ask) {
  using Placed = std::vector<detail::PlacedQuestion<Query>>;
  MR_CO_TRY(const auto cluster, co_await local.joined());
  std::vector<Answer> answers(questions.size());
  std::vector<Placed> by_shard(partitions.shards().size());
  for (std::size_t at = 0; at < questions.size(); ++at) {
    const auto number = questions[at].query.partition;
    const auto* topic = cluster->find(std::string_view(questions[at].topic));
    if (!topic || number < 0 || static_cast<std::size_t>(number) >= topic->partitions.size()) {
      answers[at] = detail::refused<Answer>(number, ErrorCode::unknown_topic_or_partition);
      continue;
    }
    auto& owner = partitions.owner_of(topic->name, number);
    by_shard[owner.shard().index()].push_back({at, std::move(questions[at])});
  }

  struct Asked {
    std::vector<std::pair<std::size_t, std::int32_t>> places;  // and the partition's number
    Pending<std::vector<Answer>> answers;
  };
  std::vector<Asked> asked;
  CancelScope* scope = co_await this_scope();
  for (std::size_t shard = 0; shard < by_shard.size(); ++shard) {
    auto& group = by_shard[shard];
    if (group.empty()) continue;
    Asked one;
    for (const auto& [at, question] : group) one.places.emplace_back(at, question.query.partition);
    auto& owner = *partitions.shards()[shard];
    auto make = [&owner, group = std::move(group), ask]() mutable {
      return detail::ask_shard<Query, Answer>(owner, std::move(group), ask);
    };
    one.answers = start(local.shard(), run_on(owner.shard(), std::move(make)), scope);
    asked.push_back(std::move(one));
  }
  for (auto& one : asked) {
    auto answered = co_await one.answers;
    for (std::size_t n = 0; n < one.places.size(); ++n) {
      const auto [at, number] = one.places[n];
      answers[at] = answered ? std::move((*answered)[n])
                             : detail::refused<Answer>(number, error_code_of(answered.error()));
    }
  }
  co_return std::move(answers);
}

/// The same for requests and answers that group partitions by topic. `TopicQuery` has `topic` and
/// `partitions`; so has `TopicAnswer`.
template <class TopicAnswer, class TopicQuery, class Query, class Answer>
Task<std::vector<TopicAnswer>> ask_topics(PartitionMap& partitions, ShardState& local,
                                          std::vector<TopicQuery> topics,
                                          AskPartition<Query, Answer> ask) {
  std::vector<PartitionQuestion<Query>> questions;
  for (const auto& topic : topics) {
    for (const auto& query : topic.partitions) questions.push_back({topic.topic, Query{query}});
  }
  auto asking = ask_partitions<Query, Answer>(partitions, local, std::move(questions), ask);
  MR_CO_TRY(auto answers, co_await std::move(asking));
  std::vector<TopicAnswer> grouped;
  auto next = answers.begin();
  for (auto& topic : topics) {
    auto& group = grouped.emplace_back();
    group.topic = std::move(topic.topic);
    for (std::size_t n = 0; n < topic.partitions.size(); ++n) {
      group.partitions.push_back(std::move(*next++));
    }
  }
  co_return std::move(grouped);
}

}  // namespace millrace::kernel
