// What everybody in the cluster agrees on: brokers, topics, who leads what. A snapshot: made on the
// control thread, handed to every shard, never changed afterwards.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <millrace/broker.h>
#include <millrace/types.h>

namespace millrace::kernel {

/// Topics in which coordinators keep their state.
bool is_internal_topic(std::string_view name) noexcept;

struct PartitionState {
  std::int32_t leader = -1;
  Epoch leader_epoch{0};
  /// One more at each change of any of this (KIP-497): the version of its key in coordination.
  std::int32_t partition_epoch = 0;
  std::vector<std::int32_t> replicas{};
  std::vector<std::int32_t> in_sync{};
  std::vector<std::int32_t> adding{};    ///< of `replicas`, while a reassignment runs (KIP-455)
  std::vector<std::int32_t> removing{};  ///< of `replicas`, likewise

  friend bool operator==(const PartitionState&, const PartitionState&) = default;
};

struct TopicState {
  std::string name;
  Uuid id;
  std::map<std::string, std::string> configs;  ///< overrides, by Kafka's names
  std::vector<PartitionState> partitions;
  bool own = false;  ///< among ClusterState::own_topics

  /// Clients do not write to it.
  bool internal() const noexcept { return own || is_internal_topic(name); }
};

struct BrokerState {
  std::int32_t id = -1;
  std::int64_t epoch = -1;  ///< of its lease
  std::string rack{};
  std::map<std::string, Address, std::less<>> endpoints{};  ///< by listener
};
/// Where it is reached through that listener, or another one where it has none of that name; an
/// empty host where it tells no address.
Address address_of(const BrokerState& broker, std::string_view listener);

/// A broker that is not there any more.
struct GoneBroker {
  BrokerState last;
  MonoTime since;
};

/// Stands for all brokers where settings are kept by broker id; Kafka's name for it.
inline constexpr std::string_view all_brokers_key = "<default>";

/// Where settings of groups are kept beside those of brokers, whose ids are numbers.
std::string config_key_of_group(std::string_view group);
/// The other way; nothing where the key is a broker's.
std::optional<std::string_view> group_of_config_key(std::string_view key) noexcept;

/// [any thread; immutable]
class ClusterState {
 public:
  std::string cluster_id;
  std::int32_t controller_id = -1;
  std::map<std::int32_t, BrokerState> brokers;
  /// Those that were there before, for clients that still know them.
  std::map<std::int32_t, GoneBroker> gone;
  std::map<std::string, std::shared_ptr<const TopicState>, std::less<>> topics;
  std::unordered_map<Uuid, std::string> names;
  /// Names of topics that this broker keeps its own state in, beside those that Kafka has; what
  /// ends in a dot stands for all names that are this and one word more.
  std::set<std::string, std::less<>> own_topics;
  /// Topics of which a key is damaged: they are left out of all, and left alone.
  std::set<std::string, std::less<>> unreadable;
  /// `[defaults]` of this broker's configuration, once it has been read again; before: none.
  std::shared_ptr<const std::map<std::string, std::string>> defaults;
  /// Settings of brokers and groups changed while brokers run: by broker id or all_brokers_key, or
  /// by config_key_of_group().
  std::map<std::string, std::map<std::string, std::string>, std::less<>> broker_configs;

  /// By name if there is one, else by id; nullptr when unknown.
  const TopicState* find(const TopicName& topic) const;
  const TopicState* find(std::string_view name) const;

  bool is_own(std::string_view name) const noexcept;
  void put(TopicState topic);
  void remove(const std::string& name);
};

}  // namespace millrace::kernel
