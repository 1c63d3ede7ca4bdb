#include "kernel/cluster/topics.h"

#include <algorithm>
#include <charconv>

#include "kernel/cluster/znodes.h"
#include "kernel/partition/topic_config.h"

namespace millrace::kernel {

namespace {

constexpr std::size_t topic_name_chars_max = 249;

bool allowed_in_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
         c == '_' || c == '-';
}

// Metric names cannot tell '.' from '_', so two topics may not differ by that alone.
std::string collision_name(std::string_view name) {
  std::string folded(name);
  std::ranges::replace(folded, '.', '_');
  return folded;
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
  const auto folded = collision_name(name);
  for (const auto& [other, state] : cluster.topics) {
    if (collision_name(other) == folded) {
      return TopicRefusal{ErrorCode::invalid_topic_exception,
                          "Topic '" + name + "' collides with existing topic '" + other +
                              "': names may not differ in '.' and '_' alone."};
    }
  }
  return std::nullopt;
}

// Replica lists from the request, or one after the other over the brokers.
std::optional<TopicRefusal> place_replicas(const NewTopic& wanted, const ClusterState& cluster,
                                           const std::map<std::string, std::string>& defaults,
                                           TopicState& topic) {
  std::vector<std::int32_t> brokers;
  for (const auto& [id, state] : cluster.brokers) brokers.push_back(id);

  if (!wanted.assignments.empty()) {
    if (wanted.partitions != -1 || wanted.replication_factor != -1) {
      return TopicRefusal{ErrorCode::invalid_request,
                          "Both a replica assignment and a number of partitions or replicas were "
                          "given; give one of them."};
    }
    std::int32_t expected = 0;
    for (const auto& [partition, replicas] : wanted.assignments) {
      if (partition != expected++) {
        return TopicRefusal{ErrorCode::invalid_replica_assignment,
                            "Partitions of an assignment must be 0, 1, 2, ... without gaps."};
      }
      auto sorted = replicas;
      std::ranges::sort(sorted);
      const bool repeated = std::ranges::adjacent_find(sorted) != sorted.end();
      const bool known = std::ranges::all_of(
          sorted, [&](auto id) { return std::ranges::find(brokers, id) != brokers.end(); });
      if (replicas.empty() || repeated || !known) {
        return TopicRefusal{ErrorCode::invalid_replica_assignment,
                            "Partition " + std::to_string(partition) +
                                ": replicas must be different, known brokers."};
      }
      topic.partitions.push_back({replicas.front(), Epoch{0}, replicas, replicas});
    }
    return std::nullopt;
  }

  const auto partitions =
      wanted.partitions == -1 ? default_number(defaults, "num.partitions", 1) : wanted.partitions;
  const auto replication = wanted.replication_factor == -1
                               ? default_number(defaults, "default.replication.factor", 1)
                               : wanted.replication_factor;
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
  if (replication <= 0 || static_cast<std::size_t>(replication) > brokers.size()) {
    return TopicRefusal{ErrorCode::invalid_replication_factor,
                        "Replication factor was " + std::to_string(replication) +
                            "; it must be from 1 to " + std::to_string(brokers.size()) +
                            ", the number of brokers."};
  }
  for (std::int32_t partition = 0; partition < partitions; ++partition) {
    std::vector<std::int32_t> replicas;
    for (std::int32_t n = 0; n < replication; ++n) {
      replicas.push_back(brokers[static_cast<std::size_t>(partition + n) % brokers.size()]);
    }
    topic.partitions.push_back({replicas.front(), Epoch{0}, replicas, replicas});
  }
  return std::nullopt;
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
  const auto refuse = [&](std::string why) {
    return TopicRefusal{
        ErrorCode::invalid_topic_exception,
        "Topic name '" + std::string(name.substr(0, topic_name_chars_max)) + "' " + std::move(why)};
  };
  if (name.empty()) return refuse("is empty.");
  if (name == "." || name == "..") return refuse("may not be '.' or '..'.");
  if (name.size() > topic_name_chars_max) {
    return refuse("has " + std::to_string(name.size()) + " characters; at most " +
                  std::to_string(topic_name_chars_max) + " are allowed.");
  }
  if (!std::ranges::all_of(name, allowed_in_name)) {
    return refuse("has a character other than letters, digits, '.', '_' and '-'.");
  }
  return std::nullopt;
}

Task<std::vector<TopicState>> read_topics(Coordination& coordination) {
  std::vector<TopicState> topics;
  MR_CO_TRY(const auto names, co_await coordination.list(std::string(znodes::topics)));
  for (const auto& name : names) {
    MR_CO_TRY(const auto node, co_await coordination.get(znodes::topic(name)));
    MR_CO_TRY(auto topic, znodes::decode_topic(name, node.value));
    for (std::size_t at = 0; at < topic.partitions.size(); ++at) {
      const auto key = znodes::partition_state(name, static_cast<std::int32_t>(at));
      MR_CO_TRY(const auto state, co_await coordination.get(key));
      MR_CO_CHECK(znodes::decode_partition_state(state.value, topic.partitions[at]));
    }
    auto config = co_await coordination.get(znodes::topic_config(name));
    if (config) {
      MR_CO_TRY(topic.configs, znodes::decode_topic_config(config->value));
    } else if (config.error().code != Errc::not_found) {
      co_return config.error();
    }
    topics.push_back(std::move(topic));
  }
  co_return topics;
}

Planned plan_topic(const NewTopic& wanted, const ClusterState& cluster,
                   const std::map<std::string, std::string>& defaults, Random& random) {
  Planned planned;
  planned.topic.name = wanted.name;
  planned.refusal = check_new_name(wanted.name, cluster);
  if (!planned.refusal) planned.refusal = place_replicas(wanted, cluster, defaults, planned.topic);
  if (!planned.refusal) planned.refusal = take_configs(wanted, defaults, planned.topic);
  if (!planned.refusal) planned.topic.id = random.uuid();
  return planned;
}

Task<> write_topic(Coordination& coordination, TopicState topic, std::int32_t controller_epoch) {
  std::vector<Write> writes;
  writes.push_back({.key = znodes::topic_config(topic.name),
                    .value = znodes::encode_topic_config(topic.configs)});
  writes.push_back({.key = znodes::topic(topic.name),
                    .value = znodes::encode_topic(topic),
                    .expected = must_not_exist});
  for (std::size_t at = 0; at < topic.partitions.size(); ++at) {
    const auto key = znodes::partition_state(topic.name, static_cast<std::int32_t>(at));
    writes.push_back(
        {.key = key,
         .value = znodes::encode_partition_state(topic.partitions[at], controller_epoch)});
  }
  MR_CO_CHECK(co_await coordination.commit(std::move(writes)));
  co_return {};
}

Task<> erase_topic(Coordination& coordination, TopicState topic) {
  std::vector<Write> writes;
  for (std::size_t at = 0; at < topic.partitions.size(); ++at) {
    writes.push_back(
        {.key = znodes::partition_state(topic.name, static_cast<std::int32_t>(at)), .value = {}});
  }
  writes.push_back({.key = znodes::topic(topic.name), .value = {}});
  writes.push_back({.key = znodes::topic_config(topic.name), .value = {}});
  auto mark = co_await coordination.get(znodes::delete_topic(topic.name));
  if (mark) writes.push_back({.key = znodes::delete_topic(topic.name), .value = {}});
  MR_CO_CHECK(co_await coordination.commit(std::move(writes)));
  co_return {};
}

}  // namespace millrace::kernel
