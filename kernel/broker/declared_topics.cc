#include "kernel/broker/declared_topics.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "kernel/broker/config_sources.h"
#include "kernel/partition/topic_config.h"

namespace millrace::kernel {

namespace {

// A start waits no longer for topics; a controller that is slow makes them while clients are
// served.
constexpr Duration first_tries_max = std::chrono::seconds(10);
constexpr Duration pause = std::chrono::seconds(1);
constexpr Duration look_again_after = std::chrono::minutes(10);

// May be otherwise a moment later.
bool passes(ErrorCode error) {
  return error == ErrorCode::not_controller || error == ErrorCode::request_timed_out ||
         error == ErrorCode::invalid_replication_factor || error == ErrorCode::network_exception;
}

using Tried = std::vector<DeclaredTopic>;
using State = DeclaredTopic::State;

Task<Tried> wait_for(Pending<Tried> pending) { co_return co_await pending; }

bool is_settled(const DeclaredTopic& topic) { return topic.state != State::waits; }

}  // namespace

Task<Tried> DeclaredTopics::open(std::vector<NewTopic> topics) {
  if (topics.empty() && missing_.empty()) co_return Tried();
  const auto count = topics.size();
  auto [tried, when_tried] = make_pending<Tried>();
  spawn(parts_.environment.control(), make(std::move(topics), std::move(tried)), "declared topics");
  auto waiting = with_deadline(wait_for(std::move(when_tried)), first_tries_max);
  auto waited = co_await std::move(waiting);
  if (waited) co_return std::move(waited);
  if (waited.error().code == Errc::timed_out) {
    parts_.log.warning("declared topics are not made yet; the broker serves without them",
                       {{"topics", count}});
  }
  co_return Tried();
}

Task<> DeclaredTopics::close() {
  closing_ = true;
  background_.cancel();
  co_return co_await running_.close();
}

Task<> DeclaredTopics::make(std::vector<NewTopic> topics, Resolver<Tried> tried) {
  MR_CO_TRY(const auto pass, running_.enter());
  const auto mine = ++declared_;
  {
    MR_CO_TRY(const auto held, co_await trying_.lock());
    missing_ = std::move(topics);
    told_.clear();
    MR_CO_TRY(auto all, co_await try_all());
    tried.resolve(std::move(all));
  }
  while (mine == declared_ && !missing_.empty() && !closing_) {
    auto waiting = wait_for_brokers().within(background_);
    MR_CO_CHECK(co_await std::move(waiting));
    MR_CO_TRY(const auto held, co_await trying_.lock());
    if (mine != declared_) break;
    MR_CO_CHECK(co_await try_all());
  }
  co_return {};
}

Task<Tried> DeclaredTopics::try_all() {
  Tried tried;
  std::vector<NewTopic> left;
  for (const auto& topic : missing_) {
    auto trying = try_one(topic);
    MR_CO_TRY(auto one, co_await std::move(trying));
    if (!is_settled(one)) left.push_back(topic);
    tried.push_back(std::move(one));
    if (closing_) co_return std::move(tried);
  }
  missing_ = std::move(left);
  co_return std::move(tried);
}

Task<DeclaredTopic> DeclaredTopics::try_one(NewTopic topic) {
  const auto& cluster = cluster_.state();
  if (const auto* known = cluster.find(std::string_view(topic.name))) {
    co_return compared(*known, topic);
  }
  DeclaredTopic one{.name = topic.name};
  if (!can_be_made(topic, cluster)) {
    one.detail = "it needs " + std::to_string(replicas_of(topic)) +
                 " brokers for its replicas, there are " + std::to_string(cluster.brokers.size());
    if (is_news(topic.name)) {
      parts_.log.warning("a declared topic is made once there are brokers for its replicas",
                         {{"topic", topic.name},
                          {"replicas", replicas_of(topic)},
                          {"brokers", cluster.brokers.size()}});
    }
    co_return std::move(one);
  }
  auto creating = create_(topic);
  const auto created = co_await std::move(creating);
  if (created) co_return outcome_of(*created, topic);
  one.detail = to_string(created.error());
  if (is_news(one.name)) {
    parts_.log.warning("a declared topic could not be made; it is tried again",
                       {{"topic", one.name}, {"error", one.detail}});
  }
  co_return std::move(one);
}

DeclaredTopic DeclaredTopics::outcome_of(const TopicCreated& created, const NewTopic& declared) {
  DeclaredTopic one{.name = created.name, .state = State::made};
  if (created.error == ErrorCode::none) return one;
  const auto& cluster = cluster_.state();
  if (created.error == ErrorCode::topic_already_exists) {
    // Somebody else was quicker. Not to be looked at later: whoever deletes it meanwhile would get
    // it again.
    const auto* theirs = cluster.find(std::string_view(created.name));
    if (theirs != nullptr) return compared(*theirs, declared);
  }
  one.state = State::waits;
  one.detail = created.message;
  // Else one that was there before is being deleted.
  const bool unreadable = cluster.unreadable.contains(created.name);
  if (created.error == ErrorCode::topic_already_exists && !unreadable) return one;
  const bool again = passes(created.error);
  if (!again) one.state = State::refused;
  if (again && !is_news(created.name)) return one;
  parts_.log.write(again ? LogLevel::warning : LogLevel::error,
                   again ? "a declared topic could not be made; it is tried again"
                         : "a declared topic cannot be made",
                   {{"topic", created.name}, {"reason", created.message}});
  return one;
}

Task<> DeclaredTopics::wait_for_brokers() {
  MR_CO_CHECK(co_await sleep(pause));
  auto possible = [this](const ClusterState& cluster) {
    return std::ranges::any_of(missing_, [&](const NewTopic& topic) {
      return cluster.find(std::string_view(topic.name)) || can_be_made(topic, cluster);
    });
  };
  auto waiting = cluster_.until(std::move(possible), look_again_after);
  const auto waited = co_await std::move(waiting);
  if (!waited && waited.error().code != Errc::timed_out) co_return waited.error();
  co_return {};
}

std::size_t DeclaredTopics::replicas_of(const NewTopic& topic) const {
  if (topic.replication_factor > 0) return static_cast<std::size_t>(topic.replication_factor);
  const ConfigSources sources(config_, cluster_.state());
  return static_cast<std::size_t>(sources.number("default.replication.factor"));
}

bool DeclaredTopics::can_be_made(const NewTopic& topic, const ClusterState& cluster) const {
  // What the broker keeps its own state in has fewer replicas where there are fewer brokers.
  return cluster.is_own(topic.name) || replicas_of(topic) <= cluster.brokers.size();
}

DeclaredTopic DeclaredTopics::compared(const TopicState& topic, const NewTopic& declared) {
  std::string differences;
  const auto compare = [&](const std::string& what, const std::string& is,
                           const std::string& wanted) {
    if (is == wanted) return;
    if (!differences.empty()) differences += "; ";
    differences += what;
    differences += " is " + is + ", declared " + wanted;
  };
  if (declared.partitions > 0) {
    compare("partitions", std::to_string(topic.partitions.size()),
            std::to_string(declared.partitions));
  }
  if (declared.replication_factor > 0) {
    compare("replication-factor", std::to_string(topic.partitions.front().replicas.size()),
            std::to_string(declared.replication_factor));
  }
  const ConfigSources sources(config_, cluster_.state());
  for (const auto& [name, value] : declared.configs) {
    const auto* option = find_topic_option(name);
    if (!option || !value) continue;
    const auto is = effective_value(*option, sources.merged(), topic.configs);
    compare(name, normal_value(*option, is), normal_value(*option, *value));
  }
  if (differences.empty()) return {.name = topic.name, .state = State::as_declared};
  parts_.log.warning(
      "a topic differs from its declaration and stays as it is; change the one or the other",
      {{"topic", topic.name}, {"differences", differences}});
  return {.name = topic.name, .state = State::differs, .detail = std::move(differences)};
}

}  // namespace millrace::kernel
