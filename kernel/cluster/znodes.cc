#include "kernel/cluster/znodes.h"

#include <charconv>

#include <boost/json.hpp>

#include "kernel/cluster/cluster_level.h"
#include "kernel/cluster/format_version.h"

namespace millrace::kernel::znodes {

namespace json = boost::json;

namespace {

// The newest format of each that is known. Older ones are Kafka's, and are read too.
constexpr int cluster_id_version = 1;
constexpr int controller_version = 2;  // we write 1; Kafka 3.4 on adds what only KRaft needs
constexpr int broker_version = 5;
constexpr int topic_version = 3;
constexpr int configs_version = 1;
constexpr int config_change_version = 2;
constexpr int partition_state_version = 1;
constexpr int producer_ids_version = 1;

Error malformed(std::string_view what, std::string_view value) {
  return Error{Errc::corrupt, std::string(what) + ": not the JSON expected there: " +
                                  std::string(value.substr(0, 200))};
}

Result<json::object> parse_object(std::string_view what, std::string_view text, int known) {
  boost::system::error_code error;
  auto value = json::parse(text, error);
  if (error || !value.is_object()) return malformed(what, text);
  MR_CHECK(check_format(what, value.get_object(), known));
  return std::move(value.get_object());
}

template <class T>
bool read(const json::object& object, std::string_view name, T& into) {
  const auto* value = object.if_contains(name);
  if (!value || !value->is_number()) return false;
  boost::system::error_code error;
  into = value->to_number<T>(error);
  return !error;
}

bool read(const json::object& object, std::string_view name, std::string& into) {
  const auto* value = object.if_contains(name);
  if (!value || !value->is_string()) return false;
  into = std::string(value->get_string());
  return true;
}

bool read(const json::value& value, std::vector<std::int32_t>& into) {
  if (!value.is_array()) return false;
  for (const auto& element : value.get_array()) {
    if (!element.is_int64()) return false;
    into.push_back(static_cast<std::int32_t>(element.get_int64()));
  }
  return true;
}

// The list of one partition, among those of `name`; none is none.
bool read_member(const json::object& object, std::string_view name, std::size_t partition,
                 std::vector<std::int32_t>& into) {
  const auto* lists = object.if_contains(name);
  if (!lists || !lists->is_object()) return lists == nullptr;
  const auto* list = lists->get_object().if_contains(std::to_string(partition));
  return !list || read(*list, into);
}

// Numbers that Kafka writes as texts.
bool read_text_number(const json::object& object, std::string_view name, std::int64_t& into) {
  std::string text;
  if (!read(object, name, text)) return false;
  const auto* end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, into);
  return error == std::errc{} && at == end;
}

// Letters, digits, - and _ stand for themselves; all else might be a part of a path.
std::string escaped(std::string_view text) {
  constexpr std::string_view digits = "0123456789ABCDEF";
  std::string name;
  for (const auto letter : text) {
    const auto byte = static_cast<unsigned char>(letter);
    const bool plain = (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
                       (letter >= '0' && letter <= '9') || letter == '-' || letter == '_';
    if (plain) {
      name += letter;
    } else {
      name += '%';
      name += digits[byte >> 4U];
      name += digits[byte & 15U];
    }
  }
  return name;
}

json::array array_of(const std::vector<std::int32_t>& numbers) {
  json::array array;
  for (const auto number : numbers) array.emplace_back(number);
  return array;
}

// As Kafka looks a listener up, whatever the case of its endpoint is.
std::string upper_case(std::string name) {
  for (auto& c : name) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  return name;
}

}  // namespace

std::string broker(std::int32_t id) { return std::string(broker_ids) + "/" + std::to_string(id); }
std::string topic(std::string_view name) { return std::string(topics) + "/" + std::string(name); }
std::string topic_config(std::string_view name) {
  return std::string(topic_configs) + "/" + std::string(name);
}
std::string broker_config(std::string_view broker) {
  return std::string(broker_configs) + "/" + std::string(broker);
}
std::string delete_topic(std::string_view name) {
  return std::string(delete_topics) + "/" + std::string(name);
}
std::string partitions(std::string_view name) { return topic(name) + "/partitions"; }
std::string partition_state(std::string_view name, std::int32_t partition) {
  return partitions(name) + "/" + std::to_string(partition) + "/state";
}

std::string encode_cluster_id(std::string_view id) {
  return json::serialize(json::object{{"version", "1"}, {"id", id}});
}

Result<std::string> decode_cluster_id(std::string_view text) {
  MR_TRY(const auto object, parse_object(cluster_id, text, cluster_id_version));
  std::string id;
  if (!read(object, "id", id)) return malformed(cluster_id, text);
  return id;
}

std::string encode_controller(std::int32_t id, Timestamp now) {
  return json::serialize(
      json::object{{"version", 1}, {"brokerid", id}, {"timestamp", std::to_string(now.ms)}});
}

Result<std::int32_t> decode_controller(std::string_view text) {
  MR_TRY(const auto object, parse_object(controller, text, controller_version));
  std::int32_t id = -1;
  if (!read(object, "brokerid", id)) return malformed(controller, text);
  return id;
}

std::string encode_broker(const BrokerState& state, Timestamp now) {
  json::array endpoints;
  json::object protocols;
  for (const auto& [listener, address] : state.endpoints) {
    endpoints.emplace_back(listener + "://" + to_string(address));
    protocols[upper_case(listener)] = "PLAINTEXT";
  }
  json::object object{{"version", broker_version},
                      {"jmx_port", -1},
                      {"timestamp", std::to_string(now.ms)},
                      {"endpoints", std::move(endpoints)},
                      {"listener_security_protocol_map", std::move(protocols)}};
  if (!state.endpoints.empty()) {
    const auto& first = state.endpoints.begin()->second;
    object["host"] = first.host;
    object["port"] = first.port;
  }
  if (!state.rack.empty()) object["rack"] = state.rack;
  object["features"] = json::object{
      {level_feature, {{"min_version", level_known_min}, {"max_version", level_known_max}}}};
  // Kafka takes the transaction that made the key for it.
  object["epoch"] = state.epoch;
  return json::serialize(object);
}

Result<BrokerState> decode_broker(std::int32_t id, std::string_view text) {
  const auto key = broker(id);
  MR_TRY(const auto object, parse_object(key, text, broker_version));
  BrokerState state{.id = id};
  read(object, "rack", state.rack);
  read(object, "epoch", state.epoch);
  const auto* endpoints = object.if_contains("endpoints");
  if (!endpoints || !endpoints->is_array()) return malformed(key, text);
  for (const auto& element : endpoints->get_array()) {
    if (!element.is_string()) return malformed(key, text);
    const std::string_view endpoint(element.get_string());
    const auto colon = endpoint.find("://");
    if (colon == std::string_view::npos) return malformed(key, text);
    MR_TRY(auto address, parse_address(endpoint.substr(colon + 3)));
    state.endpoints.emplace(endpoint.substr(0, colon), std::move(address));
  }
  return state;
}

std::string encode_topic(const TopicState& state) {
  json::object assignment;
  json::object adding;
  json::object removing;
  for (std::size_t at = 0; at < state.partitions.size(); ++at) {
    const auto& partition = state.partitions[at];
    const auto number = std::to_string(at);
    assignment[number] = array_of(partition.replicas);
    if (!partition.adding.empty()) adding[number] = array_of(partition.adding);
    if (!partition.removing.empty()) removing[number] = array_of(partition.removing);
  }
  return json::serialize(json::object{{"version", topic_version},
                                      {"topic_id", to_string(state.id)},
                                      {"partitions", std::move(assignment)},
                                      {"adding_replicas", std::move(adding)},
                                      {"removing_replicas", std::move(removing)}});
}

Result<TopicState> decode_topic(std::string_view name, std::string_view text) {
  const auto key = topic(name);
  MR_TRY(const auto object, parse_object(key, text, topic_version));
  TopicState state;
  state.name = name;
  std::string id;
  if (read(object, "topic_id", id)) {
    const auto parsed = parse_uuid(id);
    if (!parsed) return malformed(key, text);
    state.id = *parsed;
  }
  const auto* replicas = object.if_contains("partitions");
  if (!replicas || !replicas->is_object()) return malformed(key, text);
  const auto& by_number = replicas->get_object();
  for (std::size_t at = 0; at < by_number.size(); ++at) {
    const auto* list = by_number.if_contains(std::to_string(at));
    PartitionState partition;
    if (!list || !read(*list, partition.replicas)) return malformed(key, text);
    if (!read_member(object, "adding_replicas", at, partition.adding) ||
        !read_member(object, "removing_replicas", at, partition.removing)) {
      return malformed(key, text);
    }
    state.partitions.push_back(std::move(partition));
  }
  return state;
}

std::string encode_configs(const std::map<std::string, std::string>& configs) {
  json::object values;
  for (const auto& [name, value] : configs) values[name] = value;
  return json::serialize(json::object{{"version", configs_version}, {"config", std::move(values)}});
}

Result<std::map<std::string, std::string>> decode_configs(std::string_view key,
                                                          std::string_view text) {
  MR_TRY(const auto object, parse_object(key, text, configs_version));
  const auto* values = object.if_contains("config");
  if (!values || !values->is_object()) return malformed(key, text);
  std::map<std::string, std::string> configs;
  for (const auto& member : values->get_object()) {
    // Kafka writes texts; what somebody else wrote is taken as it would read.
    const auto& value = member.value();
    configs.emplace(member.key(),
                    value.is_string() ? std::string(value.get_string()) : json::serialize(value));
  }
  return configs;
}

std::string configs_of(const ConfigEntity& entity) {
  switch (entity.kind) {
    case ConfigEntity::Kind::topic: return topic_config(entity.name);
    case ConfigEntity::Kind::broker: return broker_config(entity.name);
    case ConfigEntity::Kind::group: return std::string(group_configs) + "/" + escaped(entity.name);
  }
  return {};
}

std::optional<std::string> group_of(std::string_view name) {
  std::string group;
  while (!name.empty()) {
    if (name.front() != '%') {
      group += name.front();
      name.remove_prefix(1);
      continue;
    }
    unsigned char byte = 0;
    const auto* digits = name.data() + 1;
    if (name.size() < 3 || std::from_chars(digits, digits + 2, byte, 16).ptr != digits + 2) {
      return std::nullopt;
    }
    group += static_cast<char>(byte);
    name.remove_prefix(3);
  }
  return group;
}

std::string config_key_of(const ConfigEntity& entity) {
  return entity.kind == ConfigEntity::Kind::group ? config_key_of_group(entity.name) : entity.name;
}

std::string config_change(std::int64_t number) {
  auto digits = std::to_string(number);
  digits.insert(0, digits.size() < 10 ? 10 - digits.size() : 0, '0');
  return std::string(config_changes) + "/config_change_" + digits;
}

std::string encode_config_change(const ConfigEntity& entity) {
  constexpr std::string_view folder = "/config/";
  auto path = configs_of(entity).substr(folder.size());
  return json::serialize(
      json::object{{"version", config_change_version}, {"entity_path", std::move(path)}});
}

Result<ConfigEntity> decode_config_change(std::string_view text) {
  MR_TRY(const auto object, parse_object(config_changes, text, config_change_version));
  std::string path;
  if (!read(object, "entity_path", path)) return malformed(config_changes, text);
  constexpr std::string_view of_topic = "topics/";
  constexpr std::string_view of_broker = "brokers/";
  if (path.starts_with(of_topic)) {
    return ConfigEntity{ConfigEntity::Kind::topic, path.substr(of_topic.size())};
  }
  if (path.starts_with(of_broker)) {
    return ConfigEntity{ConfigEntity::Kind::broker, path.substr(of_broker.size())};
  }
  constexpr std::string_view of_group = "groups/";
  if (path.starts_with(of_group)) {
    auto group = group_of(std::string_view(path).substr(of_group.size()));
    if (group) return ConfigEntity{ConfigEntity::Kind::group, *std::move(group)};
  }
  return malformed(config_changes, text);
}

std::string encode_partition_state(const PartitionState& state, std::int32_t epoch) {
  return json::serialize(json::object{{"controller_epoch", epoch},
                                      {"leader", state.leader},
                                      {"version", partition_state_version},
                                      {"leader_epoch", state.leader_epoch.value},
                                      {"isr", array_of(state.in_sync)}});
}

Result<> decode_partition_state(std::string_view text, PartitionState& into) {
  MR_TRY(const auto object, parse_object("partition state", text, partition_state_version));
  const auto* in_sync = object.if_contains("isr");
  into.in_sync.clear();
  if (!read(object, "leader", into.leader) ||
      !read(object, "leader_epoch", into.leader_epoch.value) || !in_sync ||
      !read(*in_sync, into.in_sync)) {
    return malformed("partition state", text);
  }
  return {};
}

std::string encode_producer_ids(const ProducerIdBlock& block) {
  return json::serialize(json::object{{"version", producer_ids_version},
                                      {"broker", block.broker},
                                      {"block_start", std::to_string(block.first)},
                                      {"block_end", std::to_string(block.last)}});
}

Result<ProducerIdBlock> decode_producer_ids(std::string_view text) {
  MR_TRY(const auto object, parse_object(producer_id_block, text, producer_ids_version));
  ProducerIdBlock block;
  if (!read(object, "broker", block.broker) ||
      !read_text_number(object, "block_start", block.first) ||
      !read_text_number(object, "block_end", block.last)) {
    return malformed(producer_id_block, text);
  }
  return block;
}

}  // namespace millrace::kernel::znodes
