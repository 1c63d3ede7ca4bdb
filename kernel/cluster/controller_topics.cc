// Topics made, grown and erased.
#include <algorithm>
#include <utility>

#include "kernel/cluster/controller_term.h"
#include "kernel/cluster/topics.h"
#include "kernel/cluster/znodes.h"

namespace millrace::kernel {

// A commit is all or nothing, and what comes before a topic's own key is nothing without it: where
// the disk is full, say, all is as it was. Who has asked is told, and may try again.
Error ControllerTerm::not_written(const Error& error) {
  if (ends_term(error)) {
    resign(error);
  } else {
    parts_.log.error("the cluster's metadata could not be written; nothing has changed",
                     {{"error", to_string(error)}});
  }
  return error;
}

Task<UpdateSender::Moment> ControllerTerm::add_topic(TopicState topic) {
  auto versions = co_await write_topic(writes_, topic, epoch_);
  if (!versions) co_return not_written(versions.error());
  for (std::size_t at = 0; at < topic.partitions.size(); ++at) {
    topic.partitions[at].partition_epoch = static_cast<std::int32_t>((*versions)[at]);
  }
  const auto name = topic.name;
  state_.put(std::move(topic));
  sender_.topic_changed(name);
  if (!balancing_.drained.empty()) wake_balance(true);
  co_return sender_.now();
}

Task<UpdateSender::Moment> ControllerTerm::grow_topic(TopicState topic) {
  const auto first = state_.find(std::string_view(topic.name))->partitions.size();
  auto versions = co_await write_growth(writes_, topic, static_cast<std::int32_t>(first), epoch_);
  if (!versions) co_return not_written(versions.error());
  for (std::size_t at = first; at < topic.partitions.size(); ++at) {
    topic.partitions[at].partition_epoch = static_cast<std::int32_t>((*versions)[at - first]);
  }
  const auto name = topic.name;
  state_.put(std::move(topic));
  sender_.topic_changed(name);
  if (!balancing_.drained.empty()) wake_balance(true);
  co_return sender_.now();
}

Task<UpdateSender::Moment> ControllerTerm::shrink_topic(std::string name, std::size_t count) {
  auto topic = *state_.find(std::string_view(name));
  const auto partitions = static_cast<std::int32_t>(topic.partitions.size());
  topic.partitions.resize(count);
  auto undone = co_await undo_growth(writes_, topic, partitions);
  if (!undone) co_return not_written(undone.error());
  std::erase_if(unwritten_.decided, [&](const auto& entry) {
    return entry.first.topic == name && static_cast<std::size_t>(entry.first.partition) >= count;
  });
  for (auto& [broker, failures] : offline_) {
    std::erase_if(failures, [&](const auto& entry) {
      return entry.first.topic == name && static_cast<std::size_t>(entry.first.partition) >= count;
    });
  }
  state_.put(std::move(topic));
  sender_.topic_changed(name);
  co_return sender_.now();
}

Task<UpdateSender::Moment> ControllerTerm::erase_topic(std::string name) {
  const auto topic = state_.topics.find(name)->second;
  std::vector<Write> marks;
  marks.push_back({.key = znodes::delete_topic(name), .value = ""});
  auto marked = co_await writes_.commit(std::move(marks));
  if (!marked) co_return not_written(marked.error());
  state_.remove(name);
  begin_erasing(topic);
  sender_.changed();
  co_return sender_.now();
}

void ControllerTerm::begin_erasing(std::shared_ptr<const TopicState> topic) {
  BrokerIds brokers;
  for (const auto& partition : topic->partitions) {
    brokers.insert(partition.replicas.begin(), partition.replicas.end());
  }
  for (auto& [broker, failures] : offline_) {
    std::erase_if(failures, [&](const auto& entry) { return entry.first.topic == topic->name; });
  }
  std::erase_if(unwritten_.decided,
                [&](const auto& entry) { return entry.first.topic == topic->name; });
  // All that live, so that everybody forgets it; a full update does so by what it leaves out.
  for (const auto& [id, broker] : state_.brokers) {
    sender_.topic_deleted({topic->name, topic->id}, id);
  }
  const auto name = topic->name;
  erasing_.insert_or_assign(name, Erasing{std::move(topic), std::move(brokers), {}});
}

Task<> ControllerTerm::finish_erasing(std::string name) {
  MR_CO_TRY(const auto held, co_await turn());
  co_return co_await erase_keys(std::move(name));
}

// In a turn.
Task<> ControllerTerm::erase_keys(std::string name) {
  const auto found = erasing_.find(name);
  if (found == erasing_.end() || !found->second.waiting.empty()) co_return {};
  auto erased = co_await kernel::erase_topic(writes_, *found->second.topic);
  if (!erased && is_end(erased.error())) co_return erased.error();
  if (!erased) co_return {};
  erasing_.erase(name);
  erased_.notify_all();
  parts_.log.info("the last of a deleted topic is gone", {{"topic", name}});
  co_return {};
}

Task<> ControllerTerm::erased(std::string name) {
  const auto waiting = [&] {
    const auto found = erasing_.find(name);
    if (found == erasing_.end()) return false;
    const auto& brokers = found->second.waiting;
    // The last of those that live makes the keys go, unless one that is down is to come.
    return brokers.empty() || std::ranges::any_of(brokers, [this](std::int32_t broker) {
             return state_.brokers.contains(broker);
           });
  };
  MR_CO_TRY(const auto pass, running_.enter());
  while (waiting()) {
    if (const auto& why = erasing_.find(name)->second.failure; !why.empty()) {
      co_return Error{Errc::io, why};
    }
    if (!serving_) co_return Error{Errc::closed, "there is another controller now"};
    MR_CO_CHECK(co_await erased_.wait());
  }
  co_return {};
}

std::vector<ReplicaFailure> ControllerTerm::failures_of(const TopicState& topic,
                                                        std::int32_t first) const {
  std::vector<ReplicaFailure> found;
  for (const auto& [broker, failures] : offline_) {
    for (const auto& [id, failure] : failures) {
      if (id.topic == topic.name && id.partition >= first) found.push_back(failure);
    }
  }
  return found;
}

}  // namespace millrace::kernel
