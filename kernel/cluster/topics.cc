#include "kernel/cluster/topics.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <span>
#include <utility>

#include "kernel/cluster/balance.h"
#include "kernel/cluster/placement.h"
#include "kernel/cluster/znodes.h"
#include "kernel/partition/topic_config.h"

namespace millrace::kernel {

namespace {

constexpr std::size_t topic_name_chars_max = 249;

constexpr std::size_t reads_at_once = 256;

bool allowed_in_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
         c == '_' || c == '-';
}

// Metric names cannot tell '.' from '_', so two topics may not differ by that alone.
bool collide(std::string_view one, std::string_view other) {
  const auto folded = [](char c) { return c == '.' ? '_' : c; };
  return one.size() == other.size() && std::ranges::equal(one, other, {}, folded, folded);
}

std::int32_t default_number(const std::map<std::string, std::string>& defaults,
                            const std::string& name, std::int32_t fallback) {
  const auto found = defaults.find(name);
  if (found == defaults.end()) return fallback;
  std::int32_t number = fallback;
  std::from_chars(found->second.data(), found->second.data() + found->second.size(), number);
  return number;
}

std::optional<TopicRefusal> check_new_name(const std::string& name, const ClusterState& cluster) {
  if (auto refusal = check_topic_name(name)) return refusal;
  if (cluster.find(name)) {
    return TopicRefusal{ErrorCode::topic_already_exists, "Topic '" + name + "' already exists."};
  }
  if (cluster.unreadable.contains(name)) {
    return TopicRefusal{ErrorCode::topic_already_exists,
                        "Topic '" + name + "' exists, and what is stored of it cannot be read."};
  }
  for (const auto& [other, state] : cluster.topics) {
    if (collide(name, other)) {
      return TopicRefusal{ErrorCode::invalid_topic_exception,
                          "Topic '" + name + "' collides with existing topic '" + other +
                              "': names may not differ in '.' and '_' alone."};
    }
  }
  return std::nullopt;
}

std::vector<std::int32_t> brokers_of(const ClusterState& cluster) {
  std::vector<std::int32_t> brokers;
  for (const auto& [id, state] : cluster.brokers) brokers.push_back(id);
  return brokers;
}

PartitionState led_by_first(std::vector<std::int32_t> replicas) {
  const auto leader = replicas.front();
  return {.leader = leader, .replicas = replicas, .in_sync = replicas};
}

std::optional<TopicRefusal> check_replicas(const std::vector<std::int32_t>& replicas,
                                           const std::vector<std::int32_t>& brokers,
                                           std::size_t expected) {
  const auto refuse = [](std::string why) {
    return TopicRefusal{ErrorCode::invalid_replica_assignment,
                        "The manual partition assignment includes " + std::move(why)};
  };
  if (replicas.empty()) return refuse("an empty replica list.");
  for (auto at = replicas.begin(); at != replicas.end(); ++at) {
    const auto name = "broker " + std::to_string(*at);
    if (std::ranges::find(brokers, *at) == brokers.end()) {
      return refuse(name + ", but no such broker is registered.");
    }
    if (std::find(replicas.begin(), at, *at) != at) return refuse(name + " more than once.");
  }
  if (replicas.size() != expected) {
    return refuse("a partition with " + std::to_string(replicas.size()) +
                  " replica(s), but this is not consistent with previous partitions, which have " +
                  std::to_string(expected) + " replica(s).");
  }
  return std::nullopt;
}

std::optional<TopicRefusal> take_assignments(const NewTopic& wanted,
                                             const std::vector<std::int32_t>& brokers,
                                             TopicState& topic) {
  if (wanted.partitions != -1 || wanted.replication_factor != -1) {
    const std::string other =
        wanted.partitions != -1 ? "the number of partitions" : "the replication factor";
    return TopicRefusal{
        ErrorCode::invalid_request,
        "A manual partition assignment was specified, but " + other + " was not set to -1."};
  }
  std::int32_t expected = 0;
  for (const auto& [partition, replicas] : wanted.assignments) {
    if (partition != expected++) {
      return TopicRefusal{ErrorCode::invalid_replica_assignment,
                          "Partitions of an assignment must be 0, 1, 2, ... without gaps."};
    }
    const auto replication = wanted.assignments.begin()->second.size();
    if (auto refusal = check_replicas(replicas, brokers, replication)) return refusal;
    topic.partitions.push_back(led_by_first(replicas));
  }
  return std::nullopt;
}

// Adds partitions up to `count`.
void place(std::int32_t count, std::size_t replication, const ClusterState& cluster,
           const std::map<std::string, std::string>& defaults, TopicState& topic) {
  const auto drained = defaults.find(balance_settings::drain_brokers);
  const auto avoided =
      drained == defaults.end() ? std::set<std::int32_t>() : brokers_in(drained->second);
  const auto more = static_cast<std::size_t>(count) - topic.partitions.size();
  for (auto& replicas : place_replicas(cluster, topic.partitions, more, replication, avoided)) {
    topic.partitions.push_back(led_by_first(std::move(replicas)));
  }
}

TopicRefusal too_few_brokers(std::size_t replication, std::size_t brokers) {
  const auto wanted = std::to_string(replication);
  return {ErrorCode::invalid_replication_factor,
          "Unable to replicate the partition " + wanted +
              " time(s): The target replication factor of " + wanted +
              " cannot be reached because only " + std::to_string(brokers) +
              " broker(s) are registered or some brokers have all their log directories "
              "cordoned."};
}

std::optional<TopicRefusal> check_count(std::int32_t partitions) {
  if (partitions <= 0) {
    return TopicRefusal{
        ErrorCode::invalid_partitions,
        "Number of partitions was " + std::to_string(partitions) + "; it must be at least 1."};
  }
  if (partitions > new_topic_partitions_max) {
    return TopicRefusal{ErrorCode::invalid_partitions,
                        "Number of partitions was " + std::to_string(partitions) + "; at most " +
                            std::to_string(new_topic_partitions_max) + " are created at once."};
  }
  return std::nullopt;
}

// Replica lists from the request, or placed by us.
std::optional<TopicRefusal> take_replicas(const NewTopic& wanted, const ClusterState& cluster,
                                          const std::map<std::string, std::string>& defaults,
                                          TopicState& topic) {
  const auto brokers = brokers_of(cluster);
  if (!wanted.assignments.empty()) return take_assignments(wanted, brokers, topic);

  const auto partitions =
      wanted.partitions == -1 ? default_number(defaults, "num.partitions", 1) : wanted.partitions;
  const auto replication = wanted.replication_factor == -1
                               ? default_number(defaults, "default.replication.factor", 1)
                               : wanted.replication_factor;
  if (auto refusal = check_count(partitions)) return refusal;
  if (replication <= 0) {
    return TopicRefusal{
        ErrorCode::invalid_replication_factor,
        "Replication factor must be larger than 0, or -1 to use the default value."};
  }
  if (static_cast<std::size_t>(replication) > brokers.size()) {
    return too_few_brokers(static_cast<std::size_t>(replication), brokers.size());
  }
  place(partitions, static_cast<std::size_t>(replication), cluster, defaults, topic);
  return std::nullopt;
}

std::optional<TopicRefusal> check_growth(const TopicGrowth& wanted, const TopicState& topic) {
  const auto now = static_cast<std::int32_t>(topic.partitions.size());
  if (wanted.partitions == now) {
    return TopicRefusal{ErrorCode::invalid_partitions,
                        "Topic already has " + std::to_string(now) + " partition(s)."};
  }
  if (wanted.partitions < now) {
    return TopicRefusal{ErrorCode::invalid_partitions,
                        "The topic " + topic.name + " currently has " + std::to_string(now) +
                            " partition(s); " + std::to_string(wanted.partitions) +
                            " would not be an increase."};
  }
  const auto added = wanted.partitions - now;
  if (added > new_topic_partitions_max) return check_count(added);
  if (wanted.assignments && wanted.assignments->size() != static_cast<std::size_t>(added)) {
    return TopicRefusal{
        ErrorCode::invalid_replica_assignment,
        "Attempted to add " + std::to_string(added) + " additional partition(s), but only " +
            std::to_string(wanted.assignments->size()) + " assignment(s) were specified."};
  }
  return std::nullopt;
}

Write state_write(const TopicState& topic, std::size_t partition, std::int32_t controller_epoch) {
  const auto key = znodes::partition_state(topic.name, static_cast<std::int32_t>(partition));
  return {.key = key,
          .value = znodes::encode_partition_state(topic.partitions[partition], controller_epoch)};
}

std::size_t bytes_of(const std::vector<Write>& writes) {
  std::size_t bytes = 0;
  for (const auto& write : writes) bytes += commit_bytes_of(write);
  return bytes;
}

/// All at once where that is possible. Else the states first, in parts, and then the topic: what
/// has states and no key of its own is no topic, so it is there or grown with that last commit.
/// Answers the versions of the states.
Task<std::vector<Version>> commit_topic_last(Coordination& coordination, TopicWrites writes) {
  const auto count = writes.states.size();
  if (!fit_together(writes)) {
    MR_CO_TRY(auto versions, co_await commit_in_parts(coordination, std::move(writes.states)));
    MR_CO_CHECK(co_await coordination.commit(std::move(writes.topic)));
    co_return std::move(versions);
  }
  MR_CO_TRY(auto versions, co_await coordination.commit(together(std::move(writes))));
  versions.resize(count);
  co_return std::move(versions);
}

// What is stored under `keys`, place by place, many read together. An error that is not about one
// of the keys is that of all.
Task<std::vector<Result<Versioned>>> read_all(Coordination& coordination,
                                              std::vector<std::string> keys) {
  Shard& shard = co_await this_shard();
  CancelScope* scope = co_await this_scope();
  std::vector<Result<Versioned>> stored;
  stored.reserve(keys.size());
  Result<> first_failure;
  while (stored.size() < keys.size() && first_failure) {
    const auto end = std::min(stored.size() + reads_at_once, keys.size());
    std::vector<Pending<Versioned>> reading;
    for (auto at = stored.size(); at < end; ++at) {
      reading.push_back(start(shard, coordination.get(std::move(keys[at])), scope));
    }
    for (auto& one : reading) {
      const auto& read = stored.emplace_back(co_await one);
      if (read || read.error().code == Errc::not_found || read.error().code == Errc::corrupt) {
        continue;
      }
      if (first_failure) first_failure = read.error();  // all have to come to their end
    }
  }
  if (!first_failure) co_return first_failure.error();
  co_return std::move(stored);
}

// Without the states of its partitions.
Result<TopicState> decode_stored(const std::string& name, const Result<Versioned>& node,
                                 const Result<Versioned>& config) {
  if (!node) return node.error();
  MR_TRY(auto topic, znodes::decode_topic(name, node->value));
  if (config) {
    MR_TRY(topic.configs, znodes::decode_configs(znodes::topic_config(name), config->value));
  } else if (config.error().code != Errc::not_found) {
    return config.error();
  }
  return topic;
}

Result<> take_states(std::span<const Result<Versioned>> states, TopicState& topic) {
  for (std::size_t at = 0; at < states.size(); ++at) {
    const auto& state = states[at];
    if (!state && state.error().code == Errc::not_found) {
      return Error{Errc::corrupt, "a partition's state is missing: " + state.error().detail};
    }
    if (!state) return state.error();
    auto& partition = topic.partitions[at];
    if (auto decoded = znodes::decode_partition_state(state->value, partition); !decoded) {
      const auto key = znodes::partition_state(topic.name, static_cast<std::int32_t>(at));
      return Error{decoded.error().code, key + ": " + decoded.error().detail};
    }
    partition.partition_epoch = static_cast<std::int32_t>(state->version);
  }
  return {};
}

std::optional<TopicRefusal> take_configs(const NewTopic& wanted,
                                         const std::map<std::string, std::string>& defaults,
                                         TopicState& topic) {
  for (const auto& [name, value] : wanted.configs) {
    if (!value) {
      return TopicRefusal{ErrorCode::invalid_config, "Null value for config '" + name + "'."};
    }
    topic.configs[name] = *value;
  }
  if (auto parsed = TopicConfig::parse(defaults, topic.configs); !parsed) {
    return TopicRefusal{ErrorCode::invalid_config, parsed.error().detail};
  }
  return std::nullopt;
}

}  // namespace

std::optional<TopicRefusal> check_topic_name(std::string_view name) {
  const auto refuse = [](std::string why) {
    return TopicRefusal{ErrorCode::invalid_topic_exception,
                        "Topic name is invalid: " + std::move(why)};
  };
  const auto quoted = "'" + std::string(name.substr(0, topic_name_chars_max)) + "'";
  if (name.empty()) return refuse("the empty string is not allowed");
  if (name == "." || name == "..") return refuse(quoted + " is not allowed");
  if (name.size() > topic_name_chars_max) {
    return refuse(quoted + "... has " + std::to_string(name.size()) +
                  " characters, longer than the max allowed length " +
                  std::to_string(topic_name_chars_max));
  }
  if (!std::ranges::all_of(name, allowed_in_name)) {
    return refuse(quoted +
                  " contains one or more characters other than ASCII alphanumerics, '.', '_' and "
                  "'-'");
  }
  return std::nullopt;
}

Task<std::vector<Version>> commit_in_parts(Coordination& coordination, std::vector<Write> writes) {
  std::vector<Version> versions;
  std::vector<Write> part;
  std::size_t bytes = 0;
  for (auto& write : writes) {
    const auto more = commit_bytes_of(write);
    if (!part.empty() && bytes + more > part_bytes_max) {
      MR_CO_TRY(const auto done, co_await coordination.commit(std::exchange(part, {})));
      versions.insert(versions.end(), done.begin(), done.end());
      bytes = 0;
    }
    bytes += more;
    part.push_back(std::move(write));
  }
  if (part.empty()) co_return std::move(versions);
  MR_CO_TRY(const auto done, co_await coordination.commit(std::move(part)));
  versions.insert(versions.end(), done.begin(), done.end());
  co_return std::move(versions);
}

Task<std::vector<TopicState>> read_topics(Coordination& coordination,
                                          std::vector<UnreadableTopic>* unreadable) {
  MR_CO_TRY(const auto names, co_await coordination.list(std::string(znodes::topics)));
  std::vector<std::string> keys;
  for (const auto& name : names) keys.push_back(znodes::topic(name));
  for (const auto& name : names) keys.push_back(znodes::topic_config(name));
  MR_CO_TRY(const auto stored, co_await read_all(coordination, std::exchange(keys, {})));

  struct Found {
    std::string name;
    Result<TopicState> topic;
  };
  std::vector<Found> found;
  for (std::size_t at = 0; at < names.size(); ++at) {
    const auto& node = stored[at];
    // States of a topic whose making did not come to its end, or something that is nobody's.
    if (!node && node.error().code == Errc::not_found) continue;
    auto topic = decode_stored(names[at], node, stored[names.size() + at]);
    for (std::size_t of = 0; topic && of < topic->partitions.size(); ++of) {
      keys.push_back(znodes::partition_state(names[at], static_cast<std::int32_t>(of)));
    }
    found.push_back({names[at], std::move(topic)});
  }
  MR_CO_TRY(const auto states, co_await read_all(coordination, std::move(keys)));

  std::vector<TopicState> topics;
  auto rest = std::span(states);
  for (auto& [name, topic] : found) {
    if (topic) {
      const auto own = rest.first(topic->partitions.size());
      rest = rest.subspan(own.size());
      if (auto taken = take_states(own, *topic); !taken) topic = taken.error();
    }
    if (topic) {
      topics.push_back(*std::move(topic));
    } else if (unreadable &&
               (topic.error().code == Errc::corrupt || topic.error().code == Errc::incompatible)) {
      unreadable->push_back({name, topic.error()});
    } else {
      co_return topic.error();
    }
  }
  co_return topics;
}

std::map<std::string, std::string> readable_configs(const std::string& key, std::string_view value,
                                                    const Log& log) {
  auto configs = znodes::decode_configs(key, value);
  if (configs) return *std::move(configs);
  log.error("stored settings cannot be read; what they would change stays as it is",
            {{"key", key}, {"error", to_string(configs.error())}});
  return {};
}

Planned plan_topic(const NewTopic& wanted, const ClusterState& cluster,
                   const std::map<std::string, std::string>& defaults, Random& random) {
  Planned planned;
  planned.topic.name = wanted.name;
  planned.refusal = check_new_name(wanted.name, cluster);
  if (!planned.refusal) planned.refusal = take_replicas(wanted, cluster, defaults, planned.topic);
  if (!planned.refusal) planned.refusal = take_configs(wanted, defaults, planned.topic);
  if (!planned.refusal) planned.topic.id = random.uuid();
  return planned;
}

Planned plan_growth(const TopicGrowth& wanted, const ClusterState& cluster,
                    const std::map<std::string, std::string>& defaults) {
  Planned planned;
  const auto* topic = cluster.find(std::string_view(wanted.name));
  if (!topic) {
    planned.refusal = {ErrorCode::unknown_topic_or_partition,
                       "This server does not host this topic-partition."};
    return planned;
  }
  planned.refusal = check_growth(wanted, *topic);
  if (planned.refusal) return planned;
  planned.topic = *topic;
  const auto brokers = brokers_of(cluster);
  const auto replication = topic->partitions.front().replicas.size();
  if (!wanted.assignments) {
    if (replication > brokers.size()) {
      planned.refusal = too_few_brokers(replication, brokers.size());
    } else {
      place(wanted.partitions, replication, cluster, defaults, planned.topic);
    }
    return planned;
  }
  for (const auto& replicas : *wanted.assignments) {
    planned.refusal = check_replicas(replicas, brokers, replication);
    if (planned.refusal) return planned;
    planned.topic.partitions.push_back(led_by_first(replicas));
  }
  return planned;
}

Task<std::vector<Version>> write_growth(Coordination& coordination, TopicState topic,
                                        std::int32_t first, std::int32_t controller_epoch) {
  TopicWrites writes;
  for (auto at = static_cast<std::size_t>(first); at < topic.partitions.size(); ++at) {
    writes.states.push_back(state_write(topic, at, controller_epoch));
  }
  writes.topic.push_back({.key = znodes::topic(topic.name), .value = znodes::encode_topic(topic)});
  co_return co_await commit_topic_last(coordination, std::move(writes));
}

Task<> undo_growth(Coordination& coordination, TopicState before, std::int32_t partitions) {
  std::vector<Write> writes;
  writes.push_back({.key = znodes::topic(before.name), .value = znodes::encode_topic(before)});
  for (auto at = static_cast<std::int32_t>(before.partitions.size()); at < partitions; ++at) {
    writes.push_back({.key = znodes::partition_state(before.name, at)});
  }
  MR_CO_CHECK(co_await commit_in_parts(coordination, std::move(writes)));
  co_return {};
}

bool fit_together(const TopicWrites& writes) noexcept {
  return bytes_of(writes.states) + bytes_of(writes.topic) <= part_bytes_max;
}

std::vector<Write> together(TopicWrites writes) {
  auto all = std::move(writes.states);
  std::ranges::move(writes.topic, std::back_inserter(all));
  return all;
}

TopicWrites writes_to_make(const TopicState& topic, std::int32_t controller_epoch) {
  TopicWrites writes;
  for (std::size_t at = 0; at < topic.partitions.size(); ++at) {
    writes.states.push_back(state_write(topic, at, controller_epoch));
  }
  writes.topic.push_back(
      {.key = znodes::topic_config(topic.name), .value = znodes::encode_configs(topic.configs)});
  writes.topic.push_back({.key = znodes::topic(topic.name),
                          .value = znodes::encode_topic(topic),
                          .expected = must_not_exist});
  return writes;
}

Task<std::vector<Version>> write_topic(Coordination& coordination, TopicState topic,
                                       std::int32_t controller_epoch) {
  auto writes = writes_to_make(topic, controller_epoch);
  if (!fit_together(writes)) {
    // Its states must not be written over those of a topic that is there.
    const auto found = co_await coordination.get(znodes::topic(topic.name));
    if (found) co_return Error{Errc::conflict, znodes::topic(topic.name) + " is there already"};
    if (found.error().code != Errc::not_found) co_return found.error();
  }
  co_return co_await commit_topic_last(coordination, std::move(writes));
}

TopicWrites writes_to_erase(const TopicState& topic, bool marked) {
  TopicWrites writes;
  for (std::size_t at = 0; at < topic.partitions.size(); ++at) {
    writes.states.push_back(
        {.key = znodes::partition_state(topic.name, static_cast<std::int32_t>(at)), .value = {}});
  }
  writes.topic.push_back({.key = znodes::topic(topic.name), .value = {}});
  writes.topic.push_back({.key = znodes::topic_config(topic.name), .value = {}});
  if (marked) writes.topic.push_back({.key = znodes::delete_topic(topic.name), .value = {}});
  return writes;
}

Task<> erase_topic(Coordination& coordination, TopicState topic) {
  const auto mark = co_await coordination.get(znodes::delete_topic(topic.name));
  auto writes = writes_to_erase(topic, mark.has_value());
  if (fit_together(writes)) {
    MR_CO_CHECK(co_await coordination.commit(together(std::move(writes))));
    co_return {};
  }
  MR_CO_CHECK(co_await coordination.commit(std::move(writes.topic)));
  MR_CO_CHECK(co_await commit_in_parts(coordination, std::move(writes.states)));
  co_return {};
}

}  // namespace millrace::kernel
