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

Task<> wait_for(Pending<> pending) { co_return co_await pending; }

}  // namespace

Task<> DeclaredTopics::open(std::vector<NewTopic> topics) {
  if (topics.empty()) co_return {};
  missing_ = std::move(topics);
  auto [tried, when_tried] = make_pending<>();
  spawn(parts_.environment.control(), loop(std::move(tried)), "declared topics");
  auto waiting = with_deadline(wait_for(std::move(when_tried)), first_tries_max);
  const auto waited = co_await std::move(waiting);
  if (!waited && waited.error().code == Errc::timed_out) {
    parts_.log.warning("declared topics are not made yet; the broker serves without them",
                       {{"topics", missing_.size()}});
  }
  co_return {};
}

Task<> DeclaredTopics::close() {
  closing_ = true;
  background_.cancel();
  co_return co_await running_.close();
}

Task<> DeclaredTopics::loop(Resolver<> tried) {
  MR_CO_TRY(const auto pass, running_.enter());
  MR_CO_CHECK(co_await try_all());
  tried.resolve();
  while (!missing_.empty() && !closing_) {
    auto waiting = wait_for_brokers().within(background_);
    MR_CO_CHECK(co_await std::move(waiting));
    MR_CO_CHECK(co_await try_all());
  }
  co_return {};
}

Task<> DeclaredTopics::try_all() {
  std::vector<NewTopic> left;
  for (const auto& topic : missing_) {
    auto trying = try_one(topic);
    MR_CO_TRY(const bool settled, co_await std::move(trying));
    if (!settled) left.push_back(topic);
    if (closing_) co_return {};
  }
  missing_ = std::move(left);
  co_return {};
}

Task<bool> DeclaredTopics::try_one(NewTopic topic) {
  const auto& cluster = cluster_.state();
  if (const auto* known = cluster.find(std::string_view(topic.name))) {
    tell_differences(*known, topic);
    co_return true;
  }
  if (!can_be_made(topic, cluster)) {
    if (is_news(topic.name)) {
      parts_.log.warning("a declared topic is made once there are brokers for its replicas",
                         {{"topic", topic.name},
                          {"replicas", replicas_of(topic)},
                          {"brokers", cluster.brokers.size()}});
    }
    co_return false;
  }
  const auto name = topic.name;
  auto creating = create_(std::move(topic));
  const auto created = co_await std::move(creating);
  if (created) co_return is_settled(*created);
  if (is_news(name)) {
    parts_.log.warning("a declared topic could not be made; it is tried again",
                       {{"topic", name}, {"error", to_string(created.error())}});
  }
  co_return false;
}

bool DeclaredTopics::is_settled(const TopicCreated& created) {
  if (created.error == ErrorCode::none) return true;
  // Somebody else was quicker, and is compared with next time; or it is being deleted.
  const bool unreadable = cluster_.state().unreadable.contains(created.name);
  if (created.error == ErrorCode::topic_already_exists && !unreadable) return false;
  const bool again = passes(created.error);
  if (again && !is_news(created.name)) return false;
  parts_.log.write(again ? LogLevel::warning : LogLevel::error,
                   again ? "a declared topic could not be made; it is tried again"
                         : "a declared topic cannot be made",
                   {{"topic", created.name}, {"reason", created.message}});
  return !again;
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
  return static_cast<std::size_t>(config_.number_of("default.replication.factor", 1));
}

bool DeclaredTopics::can_be_made(const NewTopic& topic, const ClusterState& cluster) const {
  // What the broker keeps its own state in has fewer replicas where there are fewer brokers.
  return cluster.is_own(topic.name) || replicas_of(topic) <= cluster.brokers.size();
}

void DeclaredTopics::tell_differences(const TopicState& topic, const NewTopic& declared) {
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
  if (differences.empty()) return;
  parts_.log.warning(
      "a topic differs from its declaration and stays as it is; change the one or the other",
      {{"topic", topic.name}, {"differences", differences}});
}

}  // namespace millrace::kernel
