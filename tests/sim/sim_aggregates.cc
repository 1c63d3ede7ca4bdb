#include "sim_aggregates.h"

#include <utility>

#include "kernel/broker/broker.h"

namespace millrace::testing {

namespace {

std::vector<std::string> with_aggregates(std::vector<std::string> more) {
  std::vector<std::string> sets = {
      std::string("plugins.path=[\"") + MILLRACE_AGGREGATES_DIR + "\"]",
      "operators.plugins=[\"journal\", \"queue\", \"transactions\"]", "operators.snapshot_events=5",
      R"(defaults."log.flush.interval.messages"=1)"};
  sets.insert(sets.end(), more.begin(), more.end());
  return sets;
}

std::unique_ptr<Message> message(std::string_view words) {
  return std::make_unique<BytesMessage>(Buffer::copy_of(words));
}

Said said(const Result<AggregateAnswer>& answer) {
  if (!answer) return {false, to_string(answer.error())};
  if (answer->error != ErrorCode::none) return {false, std::string(name_of(answer->error))};
  const auto* bytes = static_cast<const BytesMessage*>(answer->message.get());
  return {true, bytes ? std::string(bytes->bytes.text()) : std::string()};
}

bool again(const Said& said) {
  return !said.well && (said.words.starts_with("COORDINATOR_") || said.words == "NOT_COORDINATOR");
}

Task<> command_into(Aggregates& aggregates, std::string aggregate, std::string key,
                    std::string words, std::shared_ptr<std::optional<Said>> into) {
  auto call = aggregates.command(aggregate, key, message(words));
  static_cast<void>(co_await call.dispatched);
  const auto answer = co_await call.done;
  into->emplace(said(answer));
  co_return {};
}

Task<> query_into(Aggregates& aggregates, std::string aggregate, std::string key,
                  std::shared_ptr<std::optional<Said>> into) {
  auto asking = aggregates.query(aggregate, key, message(""));
  const auto answer = co_await std::move(asking);
  into->emplace(said(answer));
  co_return {};
}

Task<> create(Broker& broker, std::string topic, std::int32_t partitions) {
  auto session = broker.open_session({});
  CreateTopicsRequest request{.topics = {}, .timeout = std::chrono::seconds(30)};
  auto& wanted = request.topics.emplace_back();
  wanted.name = std::move(topic);
  wanted.partitions = partitions;
  auto creating = broker.admin().create_topics(*session, std::move(request));
  MR_CO_TRY(const auto answers, co_await std::move(creating));
  if (answers.at(0).error == ErrorCode::none) co_return {};
  co_return Error{Errc::internal, answers[0].message};
}

}  // namespace

SimAggregates::SimAggregates(std::uint64_t seed, std::vector<std::string> more)
    : world_(seed),
      node_(world_.add_node("b1", 2)),
      broker_(world_, node_, with_aggregates(std::move(more))) {}

Aggregates& SimAggregates::aggregates() {
  Broker& broker = broker_.broker();
  return *broker.service<Aggregates>();
}

std::shared_ptr<std::optional<Said>> SimAggregates::begin(const std::string& aggregate,
                                                          const std::string& key,
                                                          const std::string& words) {
  auto answer = std::make_shared<std::optional<Said>>();
  auto& shard = *node_.shards()[0];
  shard.post([this, &shard, aggregate, key, words, answer] {
    spawn(shard, command_into(aggregates(), aggregate, key, words, answer), "command");
  });
  return answer;
}

std::optional<Said> SimAggregates::try_command(const std::string& aggregate, const std::string& key,
                                               const std::string& words, Duration limit) {
  const auto answer = begin(aggregate, key, words);
  world_.run_until([&answer] { return answer->has_value(); }, limit);
  return *answer;
}

Said SimAggregates::command(const std::string& aggregate, const std::string& key,
                            const std::string& words, Duration limit) {
  const auto give_up_at = world_.now() + limit;
  while (true) {
    auto answer = try_command(aggregate, key, words, give_up_at - world_.now());
    if (!answer) return {false, "no answer"};
    if (!again(*answer) || world_.now() >= give_up_at) return *answer;
    world_.run_for(std::chrono::milliseconds(50));
  }
}

Said SimAggregates::query(const std::string& aggregate, const std::string& key, Duration limit) {
  const auto give_up_at = world_.now() + limit;
  while (true) {
    auto answer = std::make_shared<std::optional<Said>>();
    auto& shard = *node_.shards()[1];
    shard.post([this, &shard, aggregate, key, answer] {
      spawn(shard, query_into(aggregates(), aggregate, key, answer), "query");
    });
    world_.run_until([&answer] { return answer->has_value(); }, limit);
    if (!*answer) return {false, "no answer"};
    if (!again(**answer) || world_.now() >= give_up_at) return **answer;
    world_.run_for(std::chrono::milliseconds(50));
  }
}

void SimAggregates::create_topic(const std::string& topic, std::int32_t partitions) {
  auto& broker = broker_.broker();
  const auto created = world_.run(*node_.shards()[0], [&broker, topic, partitions] {
    return create(broker, topic, partitions);
  });
  MR_ASSERT(created.has_value());
}

}  // namespace millrace::testing
