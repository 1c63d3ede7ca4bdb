// The keys and values that brokers share through coordination: Kafka's own ZooKeeper layout, so
// that tools of that time read it. Values are JSON; unknown members are ignored when reading, and
// formats that are not known are refused: Errc::incompatible.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <millrace/result.h>

#include "kernel/cluster/cluster_state.h"

namespace millrace::kernel::znodes {

inline constexpr std::string_view cluster_id = "/cluster/id";
inline constexpr std::string_view controller = "/controller";
inline constexpr std::string_view controller_epoch = "/controller_epoch";
inline constexpr std::string_view broker_ids = "/brokers/ids";
inline constexpr std::string_view topics = "/brokers/topics";
inline constexpr std::string_view topic_configs = "/config/topics";
inline constexpr std::string_view broker_configs = "/config/brokers";
inline constexpr std::string_view group_configs = "/config/groups";
inline constexpr std::string_view config_changes = "/config/changes";
inline constexpr std::string_view delete_topics = "/admin/delete_topics";
inline constexpr std::string_view producer_id_block = "/latest_producer_id_block";
inline constexpr std::string_view broker_leases = "/millrace/leases";  // not Kafka's
inline constexpr std::string_view gone_brokers = "/millrace/gone";     // likewise

std::string broker(std::int32_t id);
std::string topic(std::string_view name);
std::string topic_config(std::string_view name);
/// `broker` is an id, or all_brokers_key.
std::string broker_config(std::string_view broker);
std::string delete_topic(std::string_view name);
std::string partitions(std::string_view name);
std::string partition_state(std::string_view name, std::int32_t partition);

std::string encode_cluster_id(std::string_view id);
Result<std::string> decode_cluster_id(std::string_view text);

std::string encode_controller(std::int32_t id, Timestamp now);
Result<std::int32_t> decode_controller(std::string_view text);

std::string encode_broker(const BrokerState& state, Timestamp now);
Result<BrokerState> decode_broker(std::int32_t id, std::string_view text);

/// The topic's id, its partitions' replicas and their reassignments; the rest of TopicState is in
/// other keys.
std::string encode_topic(const TopicState& state);
Result<TopicState> decode_topic(std::string_view name, std::string_view text);

/// Settings of a topic, a broker or a group.
std::string encode_configs(const std::map<std::string, std::string>& configs);
/// `key` is where they stand, for the error.
Result<std::map<std::string, std::string>> decode_configs(std::string_view key,
                                                          std::string_view text);

/// Whose settings have changed: what a mark below config_changes says.
struct ConfigEntity {
  enum class Kind { topic, broker, group };
  Kind kind = Kind::topic;
  std::string name;  ///< a topic, a group, or as for broker_config()
};
/// Where they stand.
std::string configs_of(const ConfigEntity& entity);
/// The group whose settings stand under this name below group_configs; nothing for a name that is
/// none of ours. What no key may have is written as %XX.
std::optional<std::string> group_of(std::string_view name);
/// Of ClusterState::broker_configs; not of a topic.
std::string config_key_of(const ConfigEntity& entity);
/// Marks stand in the order of their numbers.
std::string config_change(std::int64_t number);
std::string encode_config_change(const ConfigEntity& entity);
Result<ConfigEntity> decode_config_change(std::string_view text);

std::string encode_partition_state(const PartitionState& state, std::int32_t controller_epoch);
/// Fills leader, leader epoch and in-sync replicas of `into`. Its epoch is the key's version.
Result<> decode_partition_state(std::string_view text, PartitionState& into);

/// A block of producer ids, first and last inclusive.
struct ProducerIdBlock {
  std::int32_t broker = -1;
  std::int64_t first = 0;
  std::int64_t last = -1;
};
std::string encode_producer_ids(const ProducerIdBlock& block);
Result<ProducerIdBlock> decode_producer_ids(std::string_view text);

}  // namespace millrace::kernel::znodes
