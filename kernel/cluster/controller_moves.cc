// Elections that are asked for, and replicas that move to other brokers.
#include <algorithm>
#include <set>
#include <utility>

#include "kernel/cluster/controller_term.h"
#include "kernel/cluster/reassignment.h"
#include "kernel/cluster/topics.h"
#include "kernel/cluster/znodes.h"

namespace millrace::kernel {

namespace {

constexpr std::string_view unknown_partition = "This server does not host this topic-partition.";

PartitionOutcome outcome_of(std::int32_t partition, ErrorCode error, std::string_view message) {
  return {.partition = partition, .error = error, .message = std::string(message)};
}

// Of two changes of one partition at once the second would be refused, as somebody else's: the term
// would end.
PartitionOutcome named_twice(std::int32_t partition) {
  return outcome_of(partition, ErrorCode::invalid_request,
                    "The request names the partition twice.");
}

void refuse_unwritten(ClusterOutcome& outcome, const std::set<TopicPartition>& unwritten) {
  for (auto& topic : outcome.topics) {
    for (auto& one : topic.partitions) {
      if (!unwritten.contains({topic.topic, one.partition})) continue;
      one = outcome_of(one.partition, ErrorCode::kafka_storage_error,
                       "The cluster's metadata cannot be written now; see the controller's log.");
    }
  }
}

}  // namespace

Usable ControllerTerm::usable_for(const TopicPartition& id) const {
  return [this, id](std::int32_t broker) {
    return state_.brokers.contains(broker) && !leaving_.contains(broker) && !offline(broker, id);
  };
}

const PartitionState* ControllerTerm::find(const TopicPartition& id) const {
  const auto* topic = state_.find(std::string_view(id.topic));
  const auto at = static_cast<std::size_t>(id.partition);
  if (!topic || id.partition < 0 || at >= topic->partitions.size()) return nullptr;
  return &topic->partitions[at];
}

std::vector<TopicPartitions> ControllerTerm::all_partitions() const {
  std::vector<TopicPartitions> all;
  for (const auto& [name, topic] : state_.topics) {
    auto& to = all.emplace_back(name);
    for (std::size_t at = 0; at < topic->partitions.size(); ++at) {
      to.partitions.push_back(static_cast<std::int32_t>(at));
    }
  }
  return all;
}

// ---- elections ----

PartitionOutcome ControllerTerm::elect_one(const TopicPartition& id, ElectionType type,
                                           std::vector<PartitionChange>& changes) const {
  const auto* state = find(id);
  if (!state) {
    return outcome_of(id.partition, ErrorCode::unknown_topic_or_partition, unknown_partition);
  }
  const bool needed = type == ElectionType::preferred ? state->leader != state->replicas.front()
                                                      : state->leader < 0;
  if (!needed) {
    return outcome_of(id.partition, ErrorCode::election_not_needed,
                      "Leader election not needed for topic partition.");
  }
  const auto usable = usable_for(id);
  if (type == ElectionType::preferred) {
    auto elected = elect_preferred(*state, usable);
    if (!elected) {
      return outcome_of(id.partition, ErrorCode::preferred_leader_not_available,
                        "The first replica does not live, or is not in sync.");
    }
    changes.push_back({id.topic, id.partition, *std::move(elected)});
  } else {
    auto elected = elect(*state, usable, true);
    if (!elected || elected->state.leader < 0) {
      return outcome_of(id.partition, ErrorCode::eligible_leaders_not_available,
                        "No replica of it lives.");
    }
    parts_.log.warning("an unclean election was asked for: records that only others have are lost",
                       {{"partition", to_string(id)}, {"leader", elected->state.leader}});
    changes.push_back({id.topic, id.partition, std::move(elected->state)});
  }
  return outcome_of(id.partition, ErrorCode::none, {});
}

Task<ClusterOutcome> ControllerTerm::elect_leaders(ElectionRequest request) {
  ClusterOutcome outcome;
  UpdateSender::Moment moment = 0;
  {
    MR_CO_TRY(const auto held, co_await turn());
    const bool all = !request.partitions;
    const auto asked = all ? all_partitions() : *std::move(request.partitions);
    std::vector<PartitionChange> changes;
    Ids named;
    for (const auto& topic : asked) {
      TopicOutcome told{.topic = topic.topic, .partitions = {}};
      for (const auto partition : topic.partitions) {
        const TopicPartition id{topic.topic, partition};
        auto one =
            named.insert(id).second ? elect_one(id, request.type, changes) : named_twice(partition);
        if (all && one.error == ErrorCode::election_not_needed) continue;
        told.partitions.push_back(std::move(one));
      }
      if (!told.partitions.empty()) outcome.topics.push_back(std::move(told));
    }
    MR_CO_TRY(const auto unwritten, co_await write(std::move(changes)));
    refuse_unwritten(outcome, unwritten);
    moment = sender_.now();
  }
  MR_CO_CHECK(co_await sender_.told(moment, live()));
  co_return std::move(outcome);
}

// ---- reassignments ----

// Or its end, where there is nothing to wait for.
PartitionState ControllerTerm::begin_move(const TopicPartition& id, const PartitionState& state,
                                          std::vector<std::int32_t> wanted) const {
  auto begun = begin_reassignment(state, std::move(wanted));
  if (std::ranges::find(begun.replicas, begun.leader) == begun.replicas.end()) {
    auto elected = elect(begun, usable_for(id), false);
    if (elected) begun = std::move(elected->state);
  }
  auto finished = finish_reassignment(begun, usable_for(id));
  return finished ? *std::move(finished) : begun;
}

PartitionOutcome ControllerTerm::reassign_one(const TopicPartition& id,
                                              std::optional<std::vector<std::int32_t>> wanted,
                                              bool factor_may_change,
                                              std::vector<PartitionChange>& changes) const {
  const auto refuse = [&id](ErrorCode error, std::string_view message) {
    return outcome_of(id.partition, error, message);
  };
  const auto* state = find(id);
  if (!state) return refuse(ErrorCode::unknown_topic_or_partition, unknown_partition);
  if (!wanted) {
    if (!is_reassigning(*state)) return refuse(ErrorCode::no_reassignment_in_progress, {});
    auto cancelled = cancel_reassignment(*state, usable_for(id));
    if (!cancelled) {
      return refuse(ErrorCode::eligible_leaders_not_available,
                    "None of the replicas that it had before lives and is in sync.");
    }
    changes.push_back({id.topic, id.partition, *std::move(cancelled)});
    return refuse(ErrorCode::none, {});
  }
  if (wanted->empty()) {
    return refuse(ErrorCode::invalid_replica_assignment, "The list of replicas is empty.");
  }
  if (std::set(wanted->begin(), wanted->end()).size() != wanted->size()) {
    return refuse(ErrorCode::invalid_replica_assignment, "A broker is listed twice.");
  }
  for (const auto broker : *wanted) {
    if (state_.brokers.contains(broker)) continue;
    return refuse(ErrorCode::invalid_replica_assignment,
                  "Broker " + std::to_string(broker) + " does not live.");
  }
  if (!factor_may_change && wanted->size() != replicas_before(*state).size()) {
    return refuse(ErrorCode::invalid_replication_factor,
                  "The number of replicas would change, which the request does not allow.");
  }
  auto begun = begin_move(id, *state, *std::move(wanted));
  if (begun != *state) changes.push_back({id.topic, id.partition, std::move(begun)});
  return refuse(ErrorCode::none, {});
}

Task<ClusterOutcome> ControllerTerm::reassign(ReassignmentRequest request) {
  ClusterOutcome outcome;
  MR_CO_TRY(const auto held, co_await turn());
  std::vector<PartitionChange> changes;
  Ids named;
  for (auto& topic : request.topics) {
    auto& told = outcome.topics.emplace_back(topic.topic);
    for (auto& one : topic.partitions) {
      const TopicPartition id{topic.topic, one.partition};
      told.partitions.push_back(named.insert(id).second
                                    ? reassign_one(id, std::move(one.replicas),
                                                   request.replication_factor_may_change, changes)
                                    : named_twice(one.partition));
    }
  }
  if (!changes.empty()) {
    parts_.log.info("replicas are reassigned", {{"partitions", changes.size()}});
  }
  // What somebody moves by hand does not move by itself.
  for (const auto& change : changes) {
    const TopicPartition id{change.topic, change.partition};
    std::erase_if(balancing_.plan, [&](const BalanceMove& move) { return move.id == id; });
    if (is_reassigning(change.state)) balancing_.by_users.insert(id);
  }
  MR_CO_TRY(const auto unwritten, co_await write_replicas(std::move(changes)));
  refuse_unwritten(outcome, unwritten);
  for (const auto& id : unwritten) {
    if (!moving_.contains(id)) balancing_.by_users.erase(id);
  }
  co_return std::move(outcome);
}

// In a turn: the moves of which every replica to come is in sync.
Task<> ControllerTerm::finish_moves() {
  std::vector<PartitionChange> changes;
  for (const auto& id : std::set(moving_)) {
    const auto* state = find(id);
    if (!state || !is_reassigning(*state)) {
      no_longer_moving(id);
      continue;
    }
    if (unwritten_.decided.contains(id)) continue;
    auto finished = finish_reassignment(*state, usable_for(id));
    if (!finished) continue;
    if (!balancing_.by_users.contains(id)) {
      if (auto led = elect_preferred(*finished, usable_for(id))) finished = std::move(led);
    }
    changes.push_back({id.topic, id.partition, *std::move(finished)});
  }
  Ids done;
  Ids by_itself;
  for (const auto& change : changes) {
    const TopicPartition id{change.topic, change.partition};
    done.insert(id);
    if (!balancing_.by_users.contains(id)) by_itself.insert(id);
  }
  MR_CO_TRY(const auto unwritten, co_await write_replicas(std::move(changes)));
  for (const auto& id : done) {
    if (unwritten.contains(id)) continue;
    parts_.log.info("a partition has moved", {{"partition", to_string(id)}});
    if (by_itself.contains(id)) balancing_.metrics.done.add();
  }
  co_return {};
}

void ControllerTerm::no_longer_moving(const TopicPartition& id) {
  if (moving_.erase(id) == 0) return;
  balancing_.by_users.erase(id);
  balancing_.begun.erase(id);
  wake_balance(!balancing_.drained.empty());
}

ReassignmentsListed ControllerTerm::list_reassignments(
    const std::optional<std::vector<TopicPartitions>>& asked) const {
  ReassignmentsListed listed;
  for (const auto& topic : asked ? *asked : all_partitions()) {
    OngoingReassignments told{.topic = topic.topic, .partitions = {}};
    for (const auto partition : topic.partitions) {
      const auto* state = find({topic.topic, partition});
      if (!state || !is_reassigning(*state)) continue;
      told.partitions.push_back({.partition = partition,
                                 .replicas = state->replicas,
                                 .adding = state->adding,
                                 .removing = state->removing});
    }
    if (!told.partitions.empty()) listed.topics.push_back(std::move(told));
  }
  return listed;
}

}  // namespace millrace::kernel
