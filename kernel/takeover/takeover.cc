#include "kernel/takeover/takeover.h"

#include <map>
#include <set>
#include <utility>

#include <boost/json.hpp>

#include "kernel/cluster/format_version.h"
#include "kernel/cluster/topics.h"
#include "kernel/cluster/znodes.h"
#include "kernel/takeover/kafka_directory.h"

namespace millrace::kernel {

namespace json = boost::json;

namespace {

/// What earlier starts have taken from Kafka's metadata log.
constexpr std::string_view progress_key = "/millrace/takeover";
constexpr int progress_version = 1;
constexpr std::int64_t producer_ids_from = std::int64_t{1} << 40;

struct Progress {
  Offset end{0};              // of the metadata log
  std::set<std::string> ids;  // of the topics that came from it
};

struct Found {
  std::optional<KafkaMetadata> metadata;
  std::vector<TopicState> folders;
  bool of_a_cluster = false;  // that knows the topics of these folders
};

std::string encode(const Progress& progress) {
  json::object object{{"version", progress_version}, {"metadata_end", progress.end.value}};
  object["topics"] = json::value_from(progress.ids);
  return json::serialize(object);
}

Result<Progress> decode_progress(std::string_view text) {
  boost::system::error_code error;
  const auto value = json::parse(text, error);
  const auto* object = error ? nullptr : value.if_object();
  if (object) MR_CHECK(check_format(progress_key, *object, progress_version));
  const auto* end = object ? object->if_contains("metadata_end") : nullptr;
  const auto* ids = object ? object->if_contains("topics") : nullptr;
  if (!end || !end->is_int64() || !ids || !ids->is_array()) {
    return Error{Errc::corrupt, std::string(progress_key) + ": not the JSON expected there"};
  }
  Progress progress{.end = Offset{end->get_int64()}, .ids = {}};
  for (const auto& id : ids->get_array()) {
    if (id.is_string()) progress.ids.emplace(id.get_string());
  }
  return progress;
}

Task<std::optional<std::string>> get_if_there(Coordination& coordination, std::string key) {
  auto node = co_await coordination.get(std::move(key));
  if (node) co_return std::optional(std::move(node->value));
  if (node.error().code == Errc::not_found) co_return std::optional<std::string>();
  co_return node.error();
}

Task<> put(Coordination& coordination, std::string key, std::string value) {
  std::vector<Write> writes;
  writes.push_back({.key = std::move(key), .value = std::move(value)});
  MR_CO_CHECK(co_await coordination.commit(std::move(writes)));
  co_return {};
}

Result<Found> look(FileSystem& files, const std::string& data, std::int32_t broker_id,
                   bool folders_count) {
  Found found;
  MR_TRY(found.metadata, read_kraft_directory(files, data));
  if (found.metadata || !folders_count) return found;
  MR_TRY(const auto of_zookeeper, is_of_zookeeper(files, data));
  if (of_zookeeper) {
    MR_TRY(found.folders, topics_of_folders(files, data, broker_id));
  } else {
    MR_TRY(found.of_a_cluster, has_partition_folders(files, data));
  }
  return found;
}

Result<> check_owner(const Takeover& takeover, const DirectoryOwner& owner) {
  if (owner.broker_id == takeover.broker_id) return {};
  const auto id = std::to_string(owner.broker_id);
  return Error{Errc::conflict,
               takeover.data + "/meta.properties: this is the directory of broker " + id +
                   ", this is broker " + std::to_string(takeover.broker_id) +
                   "; set broker.id to " + id + " or give this broker a directory of its own"};
}

Result<> check_unused(FileSystem& files, const std::string& data) {
  if (!has_metadata_log(files, data)) return {};
  return Error{Errc::corrupt, data +
                                  " holds a metadata log of Kafka but no meta.properties, which "
                                  "says whose it is; bring that file back from a copy"};
}

/// Kafka moves the leader away when it stops; whoever holds the directory leads.
void lead(TopicState& topic, std::int32_t broker_id) {
  for (auto& partition : topic.partitions) {
    const auto& replicas = partition.replicas;
    if (std::ranges::find(replicas, broker_id) == replicas.end()) continue;
    partition.leader = broker_id;
    partition.in_sync = {broker_id};
  }
}

/// Settings that keep everything, for topics whose own are not known.
Settings cautious_settings(const TopicState& topic) {
  if (topic.internal()) return {{"cleanup.policy", "compact"}};
  return {{"retention.ms", "-1"}, {"retention.bytes", "-1"}};
}

Task<> replace_topics(Takeover takeover, std::vector<TopicState> topics,
                      std::set<std::string> taken_before) {
  auto& coordination = takeover.coordination;
  MR_CO_TRY(auto listed, co_await read_topics(coordination));
  std::map<std::string, TopicState> known;
  for (auto& topic : listed) known.emplace(topic.name, std::move(topic));

  for (auto& topic : topics) {
    if (auto before = known.extract(topic.name)) {
      MR_CO_CHECK(co_await erase_topic(coordination, std::move(before.mapped())));
    }
    const auto name = topic.name;
    const auto partitions = topic.partitions.size();
    MR_CO_CHECK(co_await write_topic(coordination, std::move(topic), 0));
    takeover.log.info("topic taken over from Kafka", {{"topic", name}, {"partitions", partitions}});
  }
  for (auto& [name, topic] : known) {
    if (!taken_before.contains(to_string(topic.id))) continue;
    MR_CO_CHECK(co_await erase_topic(coordination, std::move(topic)));
    takeover.log.info("topic was deleted by Kafka meanwhile", {{"topic", name}});
  }
  co_return {};
}

Task<> keep_producer_ids_apart(Takeover takeover) {
  const std::string key(znodes::producer_id_block);
  MR_CO_TRY(const auto given, co_await get_if_there(takeover.coordination, key));
  if (given) co_return {};
  const znodes::ProducerIdBlock below{
      .broker = takeover.broker_id, .first = producer_ids_from - 1, .last = producer_ids_from - 1};
  co_return co_await put(takeover.coordination, key, znodes::encode_producer_ids(below));
}

Task<> take_metadata(Takeover takeover, KafkaMetadata metadata) {
  Progress before;
  MR_CO_TRY(const auto stored,
            co_await get_if_there(takeover.coordination, std::string(progress_key)));
  if (stored) {
    MR_CO_TRY(before, decode_progress(*stored));
  }
  if (metadata.end <= before.end) co_return {};

  Progress now{.end = metadata.end, .ids = {}};
  for (auto& topic : metadata.topics) {
    lead(topic, takeover.broker_id);
    now.ids.insert(to_string(topic.id));
  }
  MR_CO_CHECK(co_await replace_topics(takeover, std::move(metadata.topics), std::move(before.ids)));
  for (const auto& [broker, settings] : metadata.brokers) {
    MR_CO_CHECK(co_await put(
        takeover.coordination,
        znodes::broker_config(broker.empty() ? all_brokers_key : std::string_view(broker)),
        znodes::encode_configs(settings)));
  }
  MR_CO_CHECK(co_await keep_producer_ids_apart(takeover));
  co_return co_await put(takeover.coordination, std::string(progress_key), encode(now));
}

Task<> take_folders(Takeover takeover, std::vector<TopicState> topics) {
  if (topics.empty()) co_return {};
  for (auto& topic : topics) {
    if (topic.id.is_none()) topic.id = takeover.environment.random().uuid();
    topic.configs = cautious_settings(topic);
  }
  takeover.log.warning(
      "topics were found in the data directory and are unknown to coordination: they are taken "
      "over without their settings, and retention is off for them; set it with millrace config",
      {{"topics", topics.size()}, {"data", takeover.data}});
  MR_CO_CHECK(co_await replace_topics(takeover, std::move(topics), {}));
  co_return co_await keep_producer_ids_apart(takeover);
}

}  // namespace

Task<> take_over(Takeover takeover) {
  MR_CO_TRY(const auto owner, co_await takeover.storage.owner());
  auto& files = takeover.environment.files();
  if (owner.broker_id < 0) {  // nobody has used it before
    auto check = [&files, data = takeover.data] { return check_unused(files, data); };
    co_return co_await on_worker(takeover.environment.workers(), std::move(check));
  }
  MR_CO_CHECK(check_owner(takeover, owner));

  MR_CO_TRY(const auto cluster,
            co_await get_if_there(takeover.coordination, std::string(znodes::cluster_id)));
  auto work = [&files, data = takeover.data, id = takeover.broker_id,
               joined = cluster.has_value()] { return look(files, data, id, !joined); };
  MR_CO_TRY(auto found, co_await on_worker(takeover.environment.workers(), std::move(work)));
  if (found.metadata) co_return co_await take_metadata(takeover, *std::move(found.metadata));
  if (found.of_a_cluster) {
    co_return Error{Errc::conflict,
                    takeover.data + " is a directory of cluster " + owner.cluster_id +
                        ", which knows its topics; set coordination.plugin as it was, or give this "
                        "broker a directory of its own"};
  }
  co_return co_await take_folders(takeover, std::move(found.folders));
}

}  // namespace millrace::kernel
