// Topics that the broker keeps its own state in.
#include <algorithm>

#include "kernel/broker/broker.h"

namespace millrace::kernel {

void KernelBroker::own_topic(NewTopic topic) {
  auto name = topic.name;
  auto& state = cluster_.state();
  state.own_topics.insert(name);
  if (const auto* known = state.find(std::string_view(name))) state.put(TopicState(*known));
  own_topics_.insert_or_assign(std::move(name), std::move(topic));
}

Task<TopicCreated> KernelBroker::create_own_topic(std::string name) {
  const auto found = own_topics_.find(name);
  if (found == own_topics_.end()) co_return Error{Errc::not_found, name + " is not ours"};
  auto wanted = found->second;
  const auto brokers = static_cast<std::int16_t>(std::max<std::size_t>(
      std::min<std::size_t>(cluster_.state().brokers.size(), wanted.replication_factor), 1));
  wanted.replication_factor = brokers;
  MR_CO_TRY(auto created, co_await topics_.create(std::move(wanted), false));
  if (created.error == ErrorCode::topic_already_exists) created.error = ErrorCode::none;
  co_return std::move(created);
}

}  // namespace millrace::kernel
