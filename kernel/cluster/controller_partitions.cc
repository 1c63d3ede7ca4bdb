// Leaders and in-sync sets.
#include <algorithm>
#include <chrono>
#include <ranges>
#include <utility>

#include "kernel/cluster/controller_term.h"
#include "kernel/cluster/topics.h"
#include "kernel/cluster/updates.h"
#include "kernel/cluster/znodes.h"

namespace millrace::kernel {

namespace {

constexpr Duration open_again_after_min = std::chrono::seconds(1);
constexpr Duration open_again_after_max = std::chrono::seconds(30);

}  // namespace

std::set<std::int32_t> ControllerTerm::live() const {
  BrokerIds ids;
  for (const auto& [id, broker] : state_.brokers) ids.insert(id);
  return ids;
}

bool ControllerTerm::offline(std::int32_t broker, const TopicPartition& id) const {
  const auto found = offline_.find(broker);
  return found != offline_.end() && found->second.replicas.contains(id);
}

// Who leaves in order leads, and is in sync, only where nobody else can lead; somebody who is not
// in sync leads only where the topic allows it, and then nobody else could.
std::optional<Elected> ControllerTerm::decide(const TopicState& topic, const TopicPartition& id,
                                              const PartitionState& state,
                                              const BrokerIds& live) const {
  const auto there = [&](std::int32_t broker) {
    return live.contains(broker) && !offline(broker, id);
  };
  const auto staying = [&](std::int32_t broker) {
    return there(broker) && !leaving_.contains(broker);
  };
  const auto leader_of = [&state](const std::optional<Elected>& elected) {
    return elected ? elected->state.leader : state.leader;
  };
  auto elected = elect(state, staying, false);
  if (leader_of(elected) < 0) elected = elect(state, there, false);
  if (leader_of(elected) < 0 &&
      setting(topic, "unclean.leader.election.enable", "false") == "true") {
    elected = elect(state, there, true);
  }
  return elected;
}

// As if one set of live brokers followed the other; only the last outcome is written.
std::vector<ControllerTerm::PartitionChange> ControllerTerm::decide_all(
    const std::vector<BrokerIds>& live_in_turn) const {
  std::vector<PartitionChange> changes;
  for (const auto& [name, topic] : state_.topics) {
    for (std::size_t at = 0; at < topic->partitions.size(); ++at) {
      const TopicPartition id{name, static_cast<std::int32_t>(at)};
      const auto decided = unwritten_.decided.find(id);
      auto state = decided == unwritten_.decided.end() ? topic->partitions[at] : decided->second;
      for (const auto& there : live_in_turn) {
        // Of the only replica nobody else knows anything: it goes on, whoever was gone in between.
        if (state.replicas.size() == 1 && &there != &live_in_turn.back()) continue;
        auto elected = decide(*topic, id, state, there);
        if (!elected) continue;
        if (elected->unclean) {
          parts_.log.warning(
              "a leader that was not in sync was elected: records that only others have are lost",
              {{"partition", to_string(id)}, {"leader", elected->state.leader}});
        }
        state = std::move(elected->state);
      }
      if (state != topic->partitions[at]) changes.push_back({name, id.partition, std::move(state)});
    }
  }
  return changes;
}

// ---- what brokers say ----

void ControllerTerm::answered(std::int32_t broker, const ClusterUpdate& told,
                              std::vector<TopicName> erased, std::vector<ReplicaFailure> failures) {
  auto& control = parts_.environment.control();
  bool logs_gone = false;
  for (const auto& topic : erased) {
    const auto found = erasing_.find(topic.name);
    if (found == erasing_.end() || found->second.topic->id != topic.id) continue;
    found->second.waiting.erase(broker);
    logs_gone |= found->second.waiting.empty();
  }
  if (logs_gone) spawn(control, finish_erasing(), "end of topics", &background_);
  auto opened = take_opened(broker, told, failures);
  std::erase_if(failures, [&](ReplicaFailure& failure) {
    const auto found = erasing_.find(failure.partition.topic);
    if (found == erasing_.end()) return offline(broker, failure.partition);
    found->second.failure = std::move(failure.message);
    return true;
  });
  erased_.notify_all();
  if (failures.empty() && opened.empty()) return;
  // Known at once: whoever waits for the answer asks for it.
  auto& offline = offline_[broker];
  for (const auto& failure : failures) {
    offline.replicas.insert_or_assign(failure.partition, failure);
  }
  offline.pause = open_again_after_min;
  offline.again_at = control.now() + offline.pause;
  offline_changed_.notify_all();
  auto taking = take_offline(broker, std::move(failures), std::move(opened));
  spawn(control, std::move(taking), "offline replicas", &background_);
}

// Of what the broker was told: it has opened what it does not complain of any more.
std::vector<TopicPartition> ControllerTerm::take_opened(
    std::int32_t broker, const ClusterUpdate& told, const std::vector<ReplicaFailure>& failures) {
  std::vector<TopicPartition> opened;
  const auto found = offline_.find(broker);
  if (found == offline_.end() || found->second.replicas.empty()) return opened;
  std::set<TopicPartition> failed;
  for (const auto& failure : failures) failed.insert(failure.partition);
  for (const auto& topic : told.topics) {
    for (const auto& partition : topic.partitions) {
      TopicPartition id{topic.name, partition.partition};
      if (failed.contains(id) || found->second.replicas.erase(id) == 0) continue;
      opened.push_back(std::move(id));
    }
  }
  return opened;
}

Task<> ControllerTerm::take_offline(std::int32_t broker, std::vector<ReplicaFailure> failures,
                                    std::vector<TopicPartition> opened) {
  MR_CO_TRY(const auto held, co_await turn());
  for (const auto& id : opened) {
    parts_.log.info("a replica that was offline is there",
                    {{"broker", broker}, {"partition", to_string(id)}});
  }
  for (const auto& failure : failures) {
    parts_.log.error("a replica is offline", {{"broker", broker},
                                              {"partition", to_string(failure.partition)},
                                              {"error", failure.message}});
  }
  MR_CO_CHECK(co_await write(decide_all({live()}), IfItFails::hold));
  co_return {};
}

// A disk that was full may have room again.
Task<> ControllerTerm::open_again() {
  auto& control = parts_.environment.control();
  while (true) {
    auto next = MonoTime::max();
    for (auto& [broker, offline] : offline_) {
      if (offline.replicas.empty()) continue;
      if (offline.again_at <= control.now()) {
        std::vector<TopicPartition> ids;
        for (const auto& [id, failure] : offline.replicas) ids.push_back(id);
        sender_.tell_again(broker, ids);
        offline.pause = std::min(2 * offline.pause, open_again_after_max);
        offline.again_at = control.now() + offline.pause;
      }
      next = std::min(next, offline.again_at);
    }
    if (next == MonoTime::max()) {
      MR_CO_CHECK(co_await offline_changed_.wait());
      continue;
    }
    auto waiting = with_deadline(offline_changed_.wait(), next - control.now());
    const auto waited = co_await std::move(waiting);
    if (!waited && waited.error().code != Errc::timed_out) co_return waited.error();
  }
}

// ---- in-sync sets (KIP-497) ----

InSyncChanged ControllerTerm::check_in_sync(std::int32_t broker, const InSyncChange& change) const {
  InSyncChanged answer{.partition = change.partition, .state = {}};
  const auto refuse = [&answer](ErrorCode error) {
    answer.error = error;
    return answer;
  };
  const auto name = state_.names.find(change.topic_id);
  if (name == state_.names.end()) return refuse(ErrorCode::unknown_topic_id);
  answer.partition.topic = name->second;
  const auto& topic = *state_.topics.find(name->second)->second;
  const auto at = static_cast<std::size_t>(change.partition.partition);
  if (change.partition.partition < 0 || at >= topic.partitions.size()) {
    return refuse(ErrorCode::unknown_topic_or_partition);
  }
  const auto& state = topic.partitions[at];
  answer.state = to_update(state, change.partition.partition);
  if (unwritten_.decided.contains(answer.partition)) return refuse(ErrorCode::not_controller);
  if (change.leader_epoch.value < state.leader_epoch.value) {
    return refuse(ErrorCode::fenced_leader_epoch);
  }
  if (change.leader_epoch.value > state.leader_epoch.value ||
      change.partition_epoch > state.partition_epoch) {
    return refuse(ErrorCode::not_controller);
  }
  if (change.in_sync == state.in_sync) return answer;  // it was written, and the answer lost
  if (change.partition_epoch < state.partition_epoch) {
    return refuse(ErrorCode::invalid_update_version);
  }
  const auto contains = [](const std::vector<std::int32_t>& brokers, std::int32_t one) {
    return std::ranges::find(brokers, one) != brokers.end();
  };
  if (state.leader != broker) {
    // A follower that cannot store says so of itself alone. As where it dies: all that was
    // acknowledged, the others have too.
    auto others = state.in_sync;
    std::erase(others, broker);
    const bool may = contains(others, state.leader) && change.in_sync == others;
    return may ? answer : refuse(ErrorCode::invalid_request);
  }
  // A leader that is not in it hands the partition over.
  if (change.in_sync.empty()) return refuse(ErrorCode::invalid_request);
  for (std::size_t n = 0; n < change.in_sync.size(); ++n) {
    const auto one = change.in_sync[n];
    if (!contains(state.replicas, one)) return refuse(ErrorCode::invalid_request);
    const auto there = state_.brokers.find(one);
    const auto epoch = n < change.in_sync_epochs.size() ? change.in_sync_epochs[n] : -1;
    const bool other_life =
        epoch >= 0 && there != state_.brokers.end() && there->second.epoch != epoch;
    if (there == state_.brokers.end() || other_life || leaving_.contains(one) ||
        offline(one, answer.partition)) {
      // The leader itself may be leaving: it leads until somebody else does.
      if (one != broker || there == state_.brokers.end()) {
        return refuse(ErrorCode::ineligible_replica);
      }
    }
  }
  return answer;
}

// Who asks while there is no turn is written for together with all who do: each write waits for the
// disks of a majority.
Task<std::vector<InSyncChanged>> ControllerTerm::change_in_sync(std::int32_t broker,
                                                                std::int64_t broker_epoch,
                                                                std::vector<InSyncChange> changes) {
  auto [done, answers] = make_pending<std::vector<InSyncChanged>>();
  in_sync_asked_.push_back({broker, broker_epoch, std::move(changes), {}, std::move(done)});
  if (in_sync_asked_.size() == 1) {
    spawn(parts_.environment.control(), answer_in_sync(), "in-sync sets");
  }
  co_return co_await answers;
}

Task<> ControllerTerm::answer_in_sync() {
  const auto held = co_await turn();
  auto asked = std::exchange(in_sync_asked_, {});
  Result<> done;
  if (held) {
    done = co_await change_in_sync(asked);
  } else {
    done = held.error();
  }
  for (auto& one : asked) {
    if (done) {
      one.done.resolve(std::move(one.answers));
    } else {
      one.done.resolve(done.error());
    }
  }
  co_return {};
}

// In a turn. Of what is asked for twice the second is out of date.
Task<> ControllerTerm::change_in_sync(std::vector<InSyncAsked>& asked) {
  std::vector<PartitionChange> writing;
  std::map<TopicPartition, InSyncChanged*> written;
  for (auto& one : asked) {
    const auto sender = state_.brokers.find(one.broker);
    one.answers.reserve(one.changes.size());
    for (auto& change : one.changes) {
      auto& answer = one.answers.emplace_back();
      if (sender == state_.brokers.end() || sender->second.epoch != one.broker_epoch) {
        answer.partition = change.partition;
        answer.error = ErrorCode::stale_broker_epoch;
        continue;
      }
      answer = check_in_sync(one.broker, change);
      if (answer.error != ErrorCode::none || answer.state.in_sync == change.in_sync) continue;
      if (written.contains(answer.partition)) {
        answer.error = ErrorCode::invalid_update_version;
        continue;
      }
      auto state = from_update(answer.state);
      state.in_sync = std::move(change.in_sync);
      const auto& in_sync = state.in_sync;
      if (state.leader == one.broker && std::ranges::find(in_sync, one.broker) == in_sync.end()) {
        auto elected = elect(state, usable_for(answer.partition), false);
        if (!elected || elected->state.leader < 0) {
          answer.error = ErrorCode::ineligible_replica;
          continue;
        }
        state = std::move(elected->state);
        parts_.log.warning("a leader's storage takes no more of a partition; another one leads it",
                           {{"partition", to_string(answer.partition)},
                            {"from", one.broker},
                            {"to", state.leader}});
      }
      written.emplace(answer.partition, &answer);
      writing.push_back({answer.partition.topic, answer.partition.partition, std::move(state)});
    }
  }
  MR_CO_TRY(const auto unwritten, co_await write(std::move(writing)));
  MR_CO_CHECK(co_await finish_moves());
  // Somebody may be able to lead what a drained broker leads.
  if (!written.empty() && !balancing_.drained.empty()) wake_balance(false);
  for (const auto& [id, answer] : written) {
    // Whoever asks does so again.
    if (unwritten.contains(id)) answer->error = ErrorCode::not_controller;
    const auto& topic = *state_.topics.find(id.topic)->second;
    answer->state =
        to_update(topic.partitions[static_cast<std::size_t>(id.partition)], id.partition);
  }
  co_return {};
}

// ---- a broker that leaves in order ----

std::vector<TopicPartition> ControllerTerm::led_by(std::int32_t broker) const {
  std::vector<TopicPartition> led;
  for (const auto& [name, topic] : state_.topics) {
    for (std::size_t at = 0; at < topic->partitions.size(); ++at) {
      if (topic->partitions[at].leader != broker) continue;
      led.push_back({name, static_cast<std::int32_t>(at)});
    }
  }
  return led;
}

Task<LeadersMoved> ControllerTerm::shut_down(std::int32_t broker, std::int64_t broker_epoch) {
  LeadersMoved moved;
  UpdateSender::Moment moment = 0;
  {
    MR_CO_TRY(const auto held, co_await turn());
    const auto known = state_.brokers.find(broker);
    if (known == state_.brokers.end() || known->second.epoch != broker_epoch) {
      moved.error = ErrorCode::stale_broker_epoch;
      co_return std::move(moved);
    }
    leaving_.insert(broker);
    MR_CO_CHECK(co_await write(decide_all({live()}), IfItFails::hold));
    moved.remaining = led_by(broker);
    moment = sender_.now();
    parts_.log.info("a broker leaves", {{"broker", broker}, {"leads", moved.remaining.size()}});
  }
  MR_CO_CHECK(co_await sender_.told(moment, live()));
  co_return std::move(moved);
}

}  // namespace millrace::kernel
