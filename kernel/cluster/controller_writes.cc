// What a controller writes, and writes again: trouble with coordination passes, and trouble with
// one topic's keys holds up no other topic.
#include <algorithm>
#include <chrono>
#include <span>
#include <utility>

#include "kernel/cluster/controller_term.h"
#include "kernel/cluster/reassignment.h"
#include "kernel/cluster/topics.h"
#include "kernel/cluster/znodes.h"

namespace millrace::kernel {

namespace {

constexpr Duration pause_min = std::chrono::milliseconds(500);
constexpr Duration pause_max = std::chrono::seconds(30);

}  // namespace

bool ControllerTerm::is_end(const Error& error) {
  if (ends_term(error)) {
    resign(error);
    return true;
  }
  if (!std::exchange(unwritten_.told, true)) {
    parts_.log.error("the cluster's metadata cannot be written; it is tried again",
                     {{"error", to_string(error)}});
  }
  unwritten_.due = true;
  unwritten_.wake.notify_all();
  return false;
}

void ControllerTerm::take_written(std::span<PartitionChange> changes,
                                  const std::vector<Version>& versions) {
  const auto known = state_.topics.find(changes.front().topic);
  if (known == state_.topics.end()) return;
  auto topic = *known->second;
  for (std::size_t at = 0; at < changes.size(); ++at) {
    TopicPartition id{topic.name, changes[at].partition};
    auto& state = topic.partitions[static_cast<std::size_t>(id.partition)];
    state = std::move(changes[at].state);
    state.partition_epoch = static_cast<std::int32_t>(versions[at]);
    unwritten_.decided.erase(id);
    if (is_reassigning(state)) {
      moving_.insert(std::move(id));
    } else {
      no_longer_moving(id);
    }
  }
  state_.put(std::move(topic));
  for (const auto& change : changes) sender_.partition_changed(change.topic, change.partition);
}

// Who shall lead no more may have lost what it had, and must not be told that it leads: until that
// is written nobody does.
void ControllerTerm::keep_unwritten(std::span<PartitionChange> changes, IfItFails then) {
  auto topic = *state_.find(std::string_view(changes.front().topic));
  for (auto& change : changes) {
    auto& stored = topic.partitions[static_cast<std::size_t>(change.partition)];
    const bool leads_on = stored.leader == change.state.leader || leaving_.contains(stored.leader);
    if (then == IfItFails::hold && stored.leader >= 0 && !leads_on) {
      stored.leader = -1;
      sender_.partition_changed(change.topic, change.partition);
    }
    unwritten_.decided.insert_or_assign({change.topic, change.partition}, std::move(change.state));
  }
  state_.put(std::move(topic));
}

Task<ControllerTerm::Ids> ControllerTerm::write(std::vector<PartitionChange> changes,
                                                IfItFails then) {
  Ids unwritten;
  if (then == IfItFails::forget) {
    std::erase_if(changes, [&](const PartitionChange& change) {
      TopicPartition id{change.topic, change.partition};
      return unwritten_.decided.contains(id) && unwritten.insert(std::move(id)).second;
    });
  }
  FencedWrites::Groups groups;
  std::vector<std::size_t> firsts;  // the change that each group begins with
  std::size_t bytes = 0;
  for (std::size_t at = 0; at < changes.size(); ++at) {
    const auto& change = changes[at];
    Write write{.key = znodes::partition_state(change.topic, change.partition),
                .value = znodes::encode_partition_state(change.state, epoch_),
                .expected = change.state.partition_epoch};
    const auto more = commit_bytes_of(write);
    const bool same = at > 0 && changes[at - 1].topic == change.topic;
    if (!same || bytes + more > part_bytes_max) {
      groups.emplace_back();
      firsts.push_back(at);
      bytes = 0;
    }
    bytes += more;
    groups.back().push_back(std::move(write));
  }
  auto committing = writes_.commit_groups(std::move(groups));
  const auto done = co_await std::move(committing);
  if (!done) {
    // What of it is written is read again by whoever is elected next.
    resign(done.error());
    co_return done.error();
  }
  for (std::size_t group = 0; group < done->size(); ++group) {
    const auto& versions = (*done)[group];
    const auto end = group + 1 < firsts.size() ? firsts[group + 1] : changes.size();
    const auto some = std::span(changes).subspan(firsts[group], end - firsts[group]);
    if (versions) {
      take_written(some, *versions);
      continue;
    }
    is_end(versions.error());
    for (const auto& change : some) unwritten.insert({change.topic, change.partition});
    if (then != IfItFails::forget) keep_unwritten(some, then);
  }
  co_return std::move(unwritten);
}

// The topics' own keys have the lists of replicas; they come first: of a broker that is on its way
// it does no harm to know.
Task<ControllerTerm::Ids> ControllerTerm::write_replicas(std::vector<PartitionChange> changes) {
  Ids unwritten;
  std::map<std::string, TopicState> topics;
  for (const auto& change : changes) {
    TopicPartition id{change.topic, change.partition};
    if (unwritten_.decided.contains(id)) {
      unwritten.insert(std::move(id));
      continue;
    }
    const auto& known = *state_.find(std::string_view(change.topic));
    auto& topic = topics.try_emplace(change.topic, known).first->second;
    topic.partitions[static_cast<std::size_t>(change.partition)] = change.state;
  }
  FencedWrites::Groups groups;
  for (const auto& [name, topic] : topics) {
    groups.emplace_back().push_back(
        {.key = znodes::topic(name), .value = znodes::encode_topic(topic)});
  }
  auto committing = writes_.commit_groups(std::move(groups));
  const auto done = co_await std::move(committing);
  if (!done) {
    resign(done.error());
    co_return done.error();
  }
  std::set<std::string> failed;
  auto name = topics.begin();
  for (const auto& versions : *done) {
    if (!versions) {
      is_end(versions.error());
      failed.insert(name->first);
    }
    ++name;
  }
  std::erase_if(changes, [&](const PartitionChange& change) {
    TopicPartition id{change.topic, change.partition};
    if (failed.contains(change.topic)) unwritten.insert(id);
    return unwritten.contains(id);
  });
  MR_CO_TRY(auto more, co_await write(std::move(changes), IfItFails::again));
  unwritten.merge(more);
  co_return std::move(unwritten);
}

// Not before all that follows from the leases is written: whoever is elected next has to find it.
Task<> ControllerTerm::write_leases() {
  if (!unwritten_.decided.empty()) co_return {};
  auto stored = co_await known_leases_.store(state_.brokers);
  if (!stored && is_end(stored.error())) co_return stored.error();
  co_return {};
}

Task<> ControllerTerm::write_again() {
  auto pause = pause_min;
  while (true) {
    while (!unwritten_.due) MR_CO_CHECK(co_await unwritten_.wake.wait());
    MR_CO_CHECK(co_await sleep(pause));
    MR_CO_TRY(const auto held, co_await turn());
    unwritten_.due = false;
    MR_CO_CHECK(co_await write(decide_all({live()}), IfItFails::hold));
    MR_CO_CHECK(co_await write_leases());
    MR_CO_CHECK(co_await finish_moves());
    MR_CO_CHECK(co_await erase_keys());
    wake_balance(true);
    if (unwritten_.due) {
      pause = std::min(2 * pause, pause_max);
    } else {
      pause = pause_min;
      unwritten_.told = false;
      parts_.log.info("the cluster's metadata is written again");
    }
  }
}

}  // namespace millrace::kernel
