// Topics that the broker keeps its own state in.
#include <algorithm>

#include "kernel/broker/broker.h"

namespace millrace::kernel {

void KernelBroker::own_topic(NewTopic topic) {
  auto name = topic.name;
  auto& state = cluster_.state();
  state.own_topics.insert(name);
  std::vector<TopicState> known;
  for (const auto& [known_name, one] : state.topics) {
    if (state.is_own(known_name)) known.push_back(*one);
  }
  for (auto& one : known) state.put(std::move(one));
  own_topics_.insert_or_assign(std::move(name), std::move(topic));
}

Task<TopicCreated> KernelBroker::create_own_topic(std::string name) {
  const auto found = own_topics_.find(name);
  if (found == own_topics_.end()) co_return Error{Errc::not_found, name + " is not ours"};
  auto wanted = found->second;
  co_return co_await create_own(std::move(wanted));
}

Task<TopicCreated> KernelBroker::create_own(NewTopic wanted) {
  // A broker that is alone has to do with one; in a cluster the others may only be late.
  if (wanted.assignments.empty() && cluster_.alone()) {
    const auto brokers = static_cast<std::int16_t>(cluster_.state().brokers.size());
    wanted.replication_factor =
        std::max<std::int16_t>(std::min(brokers, wanted.replication_factor), 1);
  }
  MR_CO_TRY(auto created, co_await topics_.create_anywhere(std::move(wanted)));
  if (created.error == ErrorCode::topic_already_exists) created.error = ErrorCode::none;
  co_return std::move(created);
}

// What is declared counts before what the topic's owner would choose.
Task<TopicCreated> KernelBroker::create_declared(NewTopic declared) {
  const auto own = own_topics_.find(declared.name);
  if (own == own_topics_.end()) co_return co_await topics_.create_anywhere(std::move(declared));
  auto wanted = own->second;
  if (declared.partitions > 0) wanted.partitions = declared.partitions;
  if (declared.replication_factor > 0) wanted.replication_factor = declared.replication_factor;
  for (auto& [name, value] : declared.configs) {
    std::erase_if(wanted.configs, [&](const auto& config) { return config.first == name; });
    wanted.configs.emplace_back(name, std::move(value));
  }
  co_return co_await create_own(std::move(wanted));
}

namespace {

std::vector<std::int32_t> replicas_of(const TopicState& topic, std::size_t partition) {
  return topic.partitions[partition].replicas;
}

}  // namespace

Task<TopicCreated> KernelBroker::create_beside(std::string family, std::string topic) {
  const auto* beside = cluster_.state().find(std::string_view(topic));
  const auto found = own_topics_.find(family);
  if (!beside || found == own_topics_.end()) co_return Error{Errc::not_found, topic + " is gone"};
  auto wanted = found->second;
  wanted.name = family + to_string(beside->id);
  const auto count = beside->partitions.size();
  const auto* own = cluster_.state().find(std::string_view(wanted.name));
  if (!own) {
    for (std::size_t at = 0; at < count; ++at) {
      wanted.assignments[static_cast<std::int32_t>(at)] = replicas_of(*beside, at);
    }
    wanted.partitions = -1;
    wanted.replication_factor = -1;
    co_return co_await create_own(std::move(wanted));
  }
  TopicCreated created{.name = wanted.name, .message = {}, .configs = {}};
  TopicGrowth growth{.name = wanted.name, .partitions = static_cast<std::int32_t>(count)};
  auto& added = growth.assignments.emplace();
  for (auto at = own->partitions.size(); at < count; ++at) {
    added.push_back(replicas_of(*beside, at));
  }
  if (added.empty()) co_return std::move(created);
  MR_CO_TRY(auto grown, co_await topics_.grow(std::move(growth), false));
  created.error = grown.error;
  created.message = std::move(grown.message);
  // Somebody else was quicker.
  if (created.error == ErrorCode::invalid_partitions) created.error = ErrorCode::none;
  co_return std::move(created);
}

Task<> KernelBroker::erase_orphans(std::string family) {
  if (!cluster_.controller().active()) co_return {};
  std::vector<std::string> orphans;
  const auto& state = cluster_.state();
  for (auto at = state.topics.lower_bound(family);
       at != state.topics.end() && at->first.starts_with(family); ++at) {
    const auto id = parse_uuid(std::string_view(at->first).substr(family.size()));
    if (id && !state.names.contains(*id)) orphans.push_back(at->first);
  }
  for (const auto& name : orphans) MR_CO_CHECK(co_await topics_.erase({name, {}}));
  co_return {};
}

}  // namespace millrace::kernel
