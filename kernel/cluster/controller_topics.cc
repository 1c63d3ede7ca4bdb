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

void ControllerTerm::take_added(TopicState topic, const std::vector<Version>& versions) {
  for (std::size_t at = 0; at < topic.partitions.size(); ++at) {
    topic.partitions[at].partition_epoch = static_cast<std::int32_t>(versions[at]);
  }
  const auto name = topic.name;
  state_.put(std::move(topic));
  sender_.topic_changed(name);
}

// In as few commits as may be: each waits for the disks of a majority.
Task<TopicsChanged> ControllerTerm::add_topics(std::vector<TopicState> topics) {
  TopicsChanged changed{.each = std::vector<Result<>>(topics.size())};
  FencedWrites::Groups groups;
  std::vector<std::size_t> places;
  std::vector<std::size_t> large;
  for (std::size_t at = 0; at < topics.size(); ++at) {
    auto writes = writes_to_make(topics[at], epoch_);
    if (fit_together(writes)) {
      groups.push_back(together(std::move(writes)));
      places.push_back(at);
    } else {
      large.push_back(at);
    }
  }
  bool told = false;  // of trouble with one of them
  const auto take = [&](std::size_t at, const Result<std::vector<Version>>& versions) {
    if (versions) return take_added(std::move(topics[at]), *versions);
    changed.each[at] = versions.error();
    if (!std::exchange(told, true)) not_written(versions.error());
  };
  auto committing = writes_.commit_groups(std::move(groups));
  const auto done = co_await std::move(committing);
  if (!done) co_return not_written(done.error());
  for (std::size_t n = 0; n < places.size(); ++n) take(places[n], (*done)[n]);
  for (const auto at : large) {
    auto writing = write_topic(writes_, topics[at], epoch_);
    take(at, co_await std::move(writing));
  }
  if (!balancing_.drained.empty()) wake_balance(true);
  changed.moment = sender_.now();
  co_return std::move(changed);
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
  for (auto& [broker, offline] : offline_) {
    std::erase_if(offline.replicas, [&](const auto& entry) {
      return entry.first.topic == name && static_cast<std::size_t>(entry.first.partition) >= count;
    });
  }
  state_.put(std::move(topic));
  sender_.topic_changed(name);
  co_return sender_.now();
}

Task<TopicsChanged> ControllerTerm::erase_topics(std::vector<std::string> names) {
  TopicsChanged changed;
  FencedWrites::Groups marks;
  for (const auto& name : names) {
    marks.emplace_back().push_back({.key = znodes::delete_topic(name), .value = ""});
  }
  auto committing = writes_.commit_groups(std::move(marks));
  const auto marked = co_await std::move(committing);
  if (!marked) co_return not_written(marked.error());
  bool told = false;  // of trouble with one of them
  for (std::size_t at = 0; at < names.size(); ++at) {
    if (const auto& one = (*marked)[at]; !one) {
      changed.each.emplace_back(one.error());
      if (!std::exchange(told, true)) not_written(one.error());
      continue;
    }
    const auto topic = state_.topics.find(names[at])->second;
    state_.remove(names[at]);
    begin_erasing(topic);
    changed.each.emplace_back();
  }
  sender_.changed();
  changed.moment = sender_.now();
  co_return std::move(changed);
}

void ControllerTerm::begin_erasing(std::shared_ptr<const TopicState> topic) {
  BrokerIds brokers;
  for (const auto& partition : topic->partitions) {
    brokers.insert(partition.replicas.begin(), partition.replicas.end());
  }
  for (auto& [broker, offline] : offline_) {
    std::erase_if(offline.replicas,
                  [&](const auto& entry) { return entry.first.topic == topic->name; });
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

Task<> ControllerTerm::finish_erasing() {
  MR_CO_TRY(const auto held, co_await turn());
  co_return co_await erase_keys();
}

void ControllerTerm::keys_erased(const std::string& name) {
  erasing_.erase(name);
  erased_.notify_all();
  parts_.log.info("the last of a deleted topic is gone", {{"topic", name}});
}

// In a turn. Of all topics whose logs are gone; what cannot be erased for now is tried again.
Task<> ControllerTerm::erase_keys() {
  std::vector<std::shared_ptr<const TopicState>> gone;
  for (const auto& [name, erasing] : erasing_) {
    if (erasing.waiting.empty()) gone.push_back(erasing.topic);
  }
  if (gone.empty()) co_return {};
  const auto marks = co_await writes_.list(std::string(znodes::delete_topics));
  if (!marks && is_end(marks.error())) co_return marks.error();
  if (!marks) co_return {};
  FencedWrites::Groups groups;
  std::vector<std::shared_ptr<const TopicState>> small;
  std::vector<std::shared_ptr<const TopicState>> large;
  for (auto& topic : gone) {
    auto writes = writes_to_erase(*topic, std::ranges::binary_search(*marks, topic->name));
    const bool fit = fit_together(writes);
    if (fit) groups.push_back(together(std::move(writes)));
    (fit ? small : large).push_back(std::move(topic));
  }
  auto committing = writes_.commit_groups(std::move(groups));
  const auto done = co_await std::move(committing);
  if (!done) {
    resign(done.error());
    co_return done.error();
  }
  for (std::size_t at = 0; at < small.size(); ++at) {
    const auto& erased = (*done)[at];
    if (erased) keys_erased(small[at]->name);
    if (!erased) is_end(erased.error());
  }
  for (const auto& topic : large) {
    auto erased = co_await kernel::erase_topic(writes_, *topic);
    if (!erased && is_end(erased.error())) co_return erased.error();
    if (erased) keys_erased(topic->name);
  }
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
  for (const auto& [broker, offline] : offline_) {
    for (const auto& [id, failure] : offline.replicas) {
      if (id.topic == topic.name && id.partition >= first) found.push_back(failure);
    }
  }
  return found;
}

}  // namespace millrace::kernel
