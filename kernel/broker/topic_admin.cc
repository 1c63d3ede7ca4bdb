#include "kernel/broker/topic_admin.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <set>
#include <utility>

#include "kernel/broker/topic_info.h"
#include "kernel/cluster/balance.h"

namespace millrace::kernel {

namespace {

constexpr Duration known_time_max = std::chrono::seconds(10);
constexpr std::string_view not_controller_message =
    "This is not the correct controller for this cluster.";

// Refuses where we are not the controller; other errors are the broker's.
template <class Answer>
bool is_refused(const Error& error, Answer& answer) {
  if (error.code != Errc::fenced) return false;
  answer.error = ErrorCode::not_controller;
  answer.message = not_controller_message;
  return true;
}

// Those that are not answered yet.
template <class Answer>
void fail_all(const Error& error, TopicAdmin::Each<Answer>& answers) {
  for (auto& answer : answers) {
    const bool is_open = answer && answer->error == ErrorCode::none;
    if (is_open && !is_refused(error, *answer)) answer = error;
  }
}

template <class Answer>
Result<Answer> only(Result<TopicAdmin::Each<Answer>> answers) {
  if (!answers) return answers.error();
  return std::move(answers->front());
}

bool lacks_brokers(ErrorCode refusal) {
  return refusal == ErrorCode::invalid_replication_factor ||
         refusal == ErrorCode::invalid_replica_assignment;
}

// A partition that none of its brokers could open.
std::optional<ReplicaFailure> hopeless(const TopicState& topic,
                                       const std::vector<ReplicaFailure>& failures) {
  std::map<std::int32_t, std::size_t> failed;
  for (const auto& failure : failures) {
    const auto at = static_cast<std::size_t>(failure.partition.partition);
    if (at >= topic.partitions.size()) continue;
    if (++failed[failure.partition.partition] == topic.partitions[at].replicas.size()) {
      return failure;
    }
  }
  return std::nullopt;
}

}  // namespace

// An answer may be of thousands of topics: without what no client is sent, and one list for all
// that have nothing of their own.
std::shared_ptr<const std::vector<ConfigEntry>> TopicAdmin::describe_new(
    const ConfigMap& overrides, const ConfigSources& sources) {
  if (overrides.empty() && plain_made_for_ == sources.merged()) {
    if (auto plain = plain_configs_.lock()) return plain;
  }
  auto entries = sources.describe_topic(overrides);
  for (auto& entry : entries) {
    entry.synonyms = {};
    entry.documentation = {};
  }
  auto described = std::make_shared<const std::vector<ConfigEntry>>(std::move(entries));
  if (overrides.empty()) {
    plain_configs_ = described;
    plain_made_for_ = sources.merged();
  }
  return described;
}

// Where too few brokers live for it by now. Those that are gone are chosen last, and are not in
// sync.
Planned TopicAdmin::plan_as_then(const NewTopic& wanted, const ClusterState& cluster,
                                 const ConfigSources& sources, const LivedThen& lived) {
  auto then = cluster;
  then.brokers.insert(lived->begin(), lived->end());
  auto settings = sources.merged();
  auto& avoided = settings[std::string(balance_settings::drain_brokers)];
  for (const auto& [id, broker] : then.brokers) {
    if (!cluster.brokers.contains(id)) avoided += (avoided.empty() ? "" : ",") + std::to_string(id);
  }
  auto planned = plan_topic(wanted, then, settings, parts_.environment.random());
  if (planned.refusal) return planned;
  const auto gone = [&](std::int32_t broker) { return !cluster.brokers.contains(broker); };
  for (auto& partition : planned.topic.partitions) {
    auto in_sync = partition.in_sync;
    std::erase_if(in_sync, gone);
    partition.leader = in_sync.empty() ? -1 : in_sync.front();
    if (!in_sync.empty()) partition.in_sync = std::move(in_sync);
  }
  return planned;
}

Planned TopicAdmin::plan(const NewTopic& wanted, const ClusterState& cluster,
                         const ConfigSources& sources, const LivedThen& lived,
                         TopicCreated& created) {
  Planned planned;
  if (cluster_.controller().being_erased(wanted.name)) {
    planned.refusal = {ErrorCode::topic_already_exists,
                       "Topic '" + wanted.name + "' is marked for deletion."};
  } else {
    planned = plan_topic(wanted, cluster, sources.merged(), parts_.environment.random());
    if (lived && planned.refusal && lacks_brokers(planned.refusal->error)) {
      planned = plan_as_then(wanted, cluster, sources, lived);
    }
  }
  if (planned.refusal) {
    created.error = planned.refusal->error;
    created.message = planned.refusal->message;
    return planned;
  }
  created.partitions = static_cast<std::int32_t>(planned.topic.partitions.size());
  created.replication_factor =
      static_cast<std::int16_t>(planned.topic.partitions.front().replicas.size());
  created.configs = describe_new(planned.topic.configs, sources);
  created.id = planned.topic.id;
  return planned;
}

// Each is planned in a cluster that has those before it. What is made stays made when this is the
// last that the controller does.
Task<TopicAdmin::Made> TopicAdmin::make(std::vector<NewTopic> wanted, bool validate_only,
                                        LivedThen lived, Each<TopicCreated>& created) {
  auto& controller = cluster_.controller();
  MR_CO_TRY(const auto turn, co_await controller.turn());
  const ConfigSources sources(config_, controller.state());
  auto cluster = controller.state();
  if (lived && lived->empty()) *lived = cluster.brokers;
  Made planned;
  std::vector<TopicState> topics;
  for (std::size_t at = 0; at < wanted.size(); ++at) {
    auto one = plan(wanted[at], cluster, sources, lived, *created[at]);
    if (one.refusal || validate_only) continue;
    planned.topics.emplace_back(at, std::make_shared<const TopicState>(one.topic));
    cluster.put(one.topic);
    topics.push_back(std::move(one.topic));
  }
  if (topics.empty()) co_return Made{};
  auto adding = controller.add_topics(std::move(topics));
  MR_CO_TRY(const auto added, co_await std::move(adding));
  Made made{.topics = {}, .moment = added.moment};
  for (std::size_t n = 0; n < planned.topics.size(); ++n) {
    if (added.each[n]) {
      made.topics.push_back(std::move(planned.topics[n]));
    } else {
      created[planned.topics[n].first] = added.each[n].error();
    }
  }
  co_return std::move(made);
}

Task<> TopicAdmin::take_back(std::shared_ptr<const TopicState> topic, ReplicaFailure failure) {
  parts_.log.error("a new topic could not be opened; its creation is taken back",
                   {{"topic", topic->name}, {"error", failure.message}});
  auto& controller = cluster_.controller();
  std::vector<std::string> names{topic->name};
  UpdateSender::Moment moment = 0;
  {
    MR_CO_TRY(const auto turn, co_await controller.turn());
    auto erasing = controller.erase_topics(std::move(names));
    MR_CO_TRY(const auto erased, co_await std::move(erasing));
    MR_CO_CHECK(erased.each.front());
    moment = erased.moment;
  }
  MR_CO_CHECK(co_await controller.told(moment));
  co_return co_await controller.erased(topic->name);
}

Task<TopicAdmin::Each<TopicCreated>> TopicAdmin::create_all(std::vector<NewTopic> wanted,
                                                            bool validate_only, LivedThen lived) {
  Each<TopicCreated> created;
  for (const auto& topic : wanted) {
    created.emplace_back(TopicCreated{.name = topic.name, .message = {}, .configs = {}});
  }
  auto making = make(std::move(wanted), validate_only, std::move(lived), created);
  const auto made = co_await std::move(making);
  if (!made) fail_all(made.error(), created);
  if (!made || made->topics.empty()) co_return std::move(created);
  auto& controller = cluster_.controller();
  Controller::Topics topics;
  for (const auto& [place, topic] : made->topics) topics.push_back(topic);
  auto telling = controller.told(made->moment, std::move(topics));
  if (const auto told = co_await std::move(telling); !told) {
    fail_all(told.error(), created);
    co_return std::move(created);
  }
  for (const auto& [place, topic] : made->topics) {
    auto& answer = *created[place];
    const auto failure = hopeless(*topic, controller.failures_of(*topic));
    if (!failure) {
      parts_.log.info("topic created", {{"topic", topic->name}, {"partitions", answer.partitions}});
      continue;
    }
    answer.error = failure->error;
    answer.message = failure->message;
    auto undoing = take_back(topic, *failure);
    if (auto undone = co_await std::move(undoing); !undone) created[place] = undone.error();
  }
  co_return std::move(created);
}

Task<TopicCreated> TopicAdmin::create_anywhere(NewTopic wanted) {
  auto& controller = cluster_.controller();
  if (!controller.active()) co_return co_await cluster_.create_at_controller(std::move(wanted));
  const auto name = wanted.name;
  std::vector<NewTopic> one;
  one.push_back(std::move(wanted));
  MR_CO_TRY(auto created, only(co_await create_all(std::move(one), false)));
  if (created.error == ErrorCode::topic_already_exists && !controller.being_erased(name)) {
    // Somebody else is making it.
    auto known = [name](const ClusterState& state) {
      return state.find(std::string_view(name)) != nullptr;
    };
    MR_CO_CHECK(co_await cluster_.until(std::move(known), known_time_max));
  }
  co_return std::move(created);
}

Task<TopicGrown> TopicAdmin::grow(TopicGrowth wanted, bool validate_only) {
  TopicGrown grown{.name = wanted.name, .message = {}};
  auto& controller = cluster_.controller();
  std::shared_ptr<const TopicState> topic;
  std::size_t first = 0;
  UpdateSender::Moment moment = 0;
  {
    const auto turn = co_await controller.turn();
    if (!turn && is_refused(turn.error(), grown)) co_return std::move(grown);
    if (!turn) co_return turn.error();
    const ConfigSources sources(config_, controller.state());
    auto planned = plan_growth(wanted, controller.state(), sources.merged());
    if (planned.refusal) {
      grown.error = planned.refusal->error;
      grown.message = planned.refusal->message;
    }
    if (planned.refusal || validate_only) co_return std::move(grown);
    first = controller.state().find(std::string_view(wanted.name))->partitions.size();
    topic = std::make_shared<const TopicState>(planned.topic);
    MR_CO_TRY(moment, co_await controller.grow_topic(std::move(planned.topic)));
  }
  Controller::Topics grown_alone{topic};
  MR_CO_CHECK(co_await controller.told(moment, grown_alone));
  const auto failures = controller.failures_of(*topic, static_cast<std::int32_t>(first));
  if (const auto failure = hopeless(*topic, failures)) {
    grown.error = failure->error;
    grown.message = failure->message;
    parts_.log.error("new partitions could not be opened; they are taken back",
                     {{"topic", topic->name}, {"error", failure->message}});
    {
      MR_CO_TRY(const auto turn, co_await controller.turn());
      MR_CO_TRY(moment, co_await controller.shrink_topic(topic->name, first));
    }
    MR_CO_CHECK(co_await controller.told(moment, grown_alone));
    co_return std::move(grown);
  }
  parts_.log.info("topic grown",
                  {{"topic", topic->name}, {"partitions", topic->partitions.size()}});
  co_return std::move(grown);
}

Task<TopicAdmin::Each<TopicGrown>> TopicAdmin::grow_all(std::vector<TopicGrowth> wanted,
                                                        bool validate_only) {
  Each<TopicGrown> grown;
  for (auto& one : wanted) {
    auto growing = grow(std::move(one), validate_only);
    grown.push_back(co_await std::move(growing));
  }
  co_return std::move(grown);
}

Task<std::vector<std::string>> TopicAdmin::why_kept(std::vector<std::string> topics) {
  Shard& control = co_await this_shard();
  CancelScope* scope = co_await this_scope();
  std::vector<Pending<std::string>> asking;
  for (auto& topic : topics) {
    asking.push_back(start(control, cluster_.kept_why(std::move(topic)), scope));
  }
  std::vector<std::string> kept;
  Result<> first_failure;
  for (auto& one : asking) {
    auto why = co_await one;
    if (!why && first_failure) first_failure = why.error();
    kept.push_back(why ? *std::move(why) : std::string());
  }
  if (!first_failure) co_return first_failure.error();
  co_return std::move(kept);
}

// Nobody knows them from here on.
Task<TopicAdmin::Erased> TopicAdmin::begin_erasing(Each<TopicDeleted>& deleted) {
  auto& controller = cluster_.controller();
  MR_CO_TRY(const auto turn, co_await controller.turn());
  std::vector<std::size_t> places;
  std::vector<std::string> names;
  for (std::size_t at = 0; at < deleted.size(); ++at) {
    auto& answer = *deleted[at];
    const auto* known = controller.state().find(answer.topic);
    if (known && std::ranges::find(names, known->name) == names.end()) {
      answer.topic = {known->name, known->id};
      places.push_back(at);
      names.push_back(known->name);
      continue;
    }
    answer.error = why_unknown(answer.topic);
    answer.message = answer.error == ErrorCode::unknown_topic_id
                         ? "This server does not host this topic ID."
                         : "This server does not host this topic-partition.";
  }
  const bool may = config_.default_of(&cluster_.state(), "delete.topic.enable", "true") == "true";
  auto asking = why_kept(names);
  MR_CO_TRY(auto kept, co_await std::move(asking));
  Erased marked;
  std::vector<std::string> going;
  for (std::size_t n = 0; n < places.size(); ++n) {
    auto& answer = *deleted[places[n]];
    if (may && kept[n].empty()) {
      marked.topics.emplace_back(places[n], names[n]);
      going.push_back(names[n]);
      continue;
    }
    answer.error = ErrorCode::topic_deletion_disabled;
    answer.message = may ? std::move(kept[n]) : "delete.topic.enable is false.";
  }
  if (going.empty()) co_return Erased{};
  auto erasing = controller.erase_topics(std::move(going));
  MR_CO_TRY(const auto changed, co_await std::move(erasing));
  Erased erased{.topics = {}, .moment = changed.moment};
  for (std::size_t n = 0; n < marked.topics.size(); ++n) {
    if (changed.each[n]) {
      erased.topics.push_back(std::move(marked.topics[n]));
    } else {
      deleted[marked.topics[n].first] = changed.each[n].error();
    }
  }
  co_return std::move(erased);
}

Task<TopicAdmin::Each<TopicDeleted>> TopicAdmin::erase_all(std::vector<TopicName> names) {
  Each<TopicDeleted> deleted;
  for (auto& name : names)
    deleted.emplace_back(TopicDeleted{.topic = std::move(name), .message = {}});
  auto beginning = begin_erasing(deleted);
  const auto erased = co_await std::move(beginning);
  if (!erased) fail_all(erased.error(), deleted);
  if (!erased || erased->topics.empty()) co_return std::move(deleted);
  auto& controller = cluster_.controller();
  if (const auto told = co_await controller.told(erased->moment); !told) {
    fail_all(told.error(), deleted);
    co_return std::move(deleted);
  }
  for (const auto& [place, name] : erased->topics) {
    auto ending = controller.erased(name);
    if (const auto ended = co_await std::move(ending); !ended) {
      deleted[place] = ended.error();
    } else {
      parts_.log.info("topic deleted", {{"topic", name}});
    }
  }
  co_return std::move(deleted);
}

Task<TopicDeleted> TopicAdmin::erase(TopicName name) {
  std::vector<TopicName> one;
  one.push_back(std::move(name));
  auto erasing = erase_all(std::move(one));
  co_return only(co_await std::move(erasing));
}

}  // namespace millrace::kernel
