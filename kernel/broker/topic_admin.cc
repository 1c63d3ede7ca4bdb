#include "kernel/broker/topic_admin.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <set>

#include "kernel/broker/topic_info.h"
#include "kernel/cluster/topics.h"

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

// What is made stays made when this is the last that the controller does.
Task<TopicAdmin::Made> TopicAdmin::make(NewTopic wanted, bool validate_only,
                                        TopicCreated& created) {
  auto& controller = cluster_.controller();
  MR_CO_TRY(const auto turn, co_await controller.turn());
  if (controller.being_erased(wanted.name)) {
    created.error = ErrorCode::topic_already_exists;
    created.message = "Topic '" + wanted.name + "' is marked for deletion.";
    co_return Made{};
  }
  const ConfigSources sources(config_, controller.state());
  auto planned =
      plan_topic(wanted, controller.state(), sources.merged(), parts_.environment.random());
  if (planned.refusal) {
    created.error = planned.refusal->error;
    created.message = planned.refusal->message;
    co_return Made{};
  }
  created.partitions = static_cast<std::int32_t>(planned.topic.partitions.size());
  created.replication_factor =
      static_cast<std::int16_t>(planned.topic.partitions.front().replicas.size());
  created.configs = describe_new(planned.topic.configs, sources);
  created.id = planned.topic.id;
  if (validate_only) co_return Made{};
  Made made{std::make_shared<const TopicState>(planned.topic)};
  MR_CO_TRY(made.moment, co_await controller.add_topic(std::move(planned.topic)));
  co_return std::move(made);
}

Task<> TopicAdmin::take_back(const TopicState& topic) {
  auto& controller = cluster_.controller();
  UpdateSender::Moment moment = 0;
  {
    MR_CO_TRY(const auto turn, co_await controller.turn());
    MR_CO_TRY(moment, co_await controller.erase_topic(topic.name));
  }
  MR_CO_CHECK(co_await controller.told(moment));
  co_return co_await controller.erased(topic.name);
}

Task<TopicCreated> TopicAdmin::create(NewTopic wanted, bool validate_only) {
  TopicCreated created{.name = wanted.name, .message = {}, .configs = {}};
  const auto made = co_await make(std::move(wanted), validate_only, created);
  if (!made && is_refused(made.error(), created)) co_return std::move(created);
  if (!made) co_return made.error();
  if (!made->topic) co_return std::move(created);
  const auto& topic = *made->topic;
  auto& controller = cluster_.controller();
  MR_CO_CHECK(co_await controller.told(made->moment, made->topic));
  if (const auto failure = hopeless(topic, controller.failures_of(topic))) {
    created.error = failure->error;
    created.message = failure->message;
    parts_.log.error("a new topic could not be opened; its creation is taken back",
                     {{"topic", topic.name}, {"error", failure->message}});
    MR_CO_CHECK(co_await take_back(topic));
    co_return std::move(created);
  }
  parts_.log.info("topic created", {{"topic", topic.name}, {"partitions", created.partitions}});
  co_return std::move(created);
}

Task<TopicCreated> TopicAdmin::create_anywhere(NewTopic wanted) {
  auto& controller = cluster_.controller();
  if (!controller.active()) co_return co_await cluster_.create_at_controller(std::move(wanted));
  const auto name = wanted.name;
  MR_CO_TRY(auto created, co_await create(std::move(wanted), false));
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
  MR_CO_CHECK(co_await controller.told(moment, topic));
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
    MR_CO_CHECK(co_await controller.told(moment, topic));
    co_return std::move(grown);
  }
  parts_.log.info("topic grown",
                  {{"topic", topic->name}, {"partitions", topic->partitions.size()}});
  co_return std::move(grown);
}

Task<TopicDeleted> TopicAdmin::erase(TopicName name) {
  TopicDeleted deleted{.topic = name, .message = {}};
  auto& controller = cluster_.controller();
  UpdateSender::Moment moment = 0;
  {
    const auto turn = co_await controller.turn();
    if (!turn && is_refused(turn.error(), deleted)) co_return std::move(deleted);
    if (!turn) co_return turn.error();
    const auto* known = controller.state().find(name);
    if (!known) {
      deleted.error = why_unknown(name);
      deleted.message = deleted.error == ErrorCode::unknown_topic_id
                            ? "This server does not host this topic ID."
                            : "This server does not host this topic-partition.";
      co_return std::move(deleted);
    }
    deleted.topic = {known->name, known->id};
    const auto refuse = [&deleted](std::string why) {
      deleted.error = ErrorCode::topic_deletion_disabled;
      deleted.message = std::move(why);
    };
    MR_CO_TRY(auto kept_why, co_await cluster_.kept_why(known->name));
    if (config_.default_of("delete.topic.enable", "true") != "true") {
      refuse("delete.topic.enable is false.");
    } else if (!kept_why.empty()) {
      refuse(std::move(kept_why));
    }
    if (deleted.error != ErrorCode::none) co_return std::move(deleted);
    MR_CO_TRY(moment, co_await controller.erase_topic(deleted.topic.name));
  }
  MR_CO_CHECK(co_await controller.told(moment));
  MR_CO_CHECK(co_await controller.erased(deleted.topic.name));
  parts_.log.info("topic deleted", {{"topic", deleted.topic.name}});
  co_return std::move(deleted);
}

}  // namespace millrace::kernel
