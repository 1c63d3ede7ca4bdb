#include "first_state.h"

#include <algorithm>
#include <optional>
#include <set>

#include <boost/json.hpp>

#include <millrace/batch.h>
#include <millrace/bytes.h>
#include <millrace/error_code.h>
#include <millrace/kafka/api_key.h>

#include "golden_file.h"
#include "log_entries.h"
#include "shipped_codecs.h"

namespace millrace::wire {

namespace {

namespace json = boost::json;
using kafka::ApiKey;

constexpr std::int64_t latest = -1;

std::int64_t integer(const json::object& object, std::string_view name, std::int64_t otherwise) {
  const auto* value = object.if_contains(name);
  return value && value->is_number() ? value->to_number<std::int64_t>() : otherwise;
}

std::string text(const json::object& object, std::string_view name) {
  const auto* value = object.if_contains(name);
  return value && value->is_string() ? std::string(value->as_string()) : "";
}

/// The objects in an array of that name; none where there is no such array.
std::vector<const json::object*> objects(const json::object& in, std::string_view name) {
  std::vector<const json::object*> found;
  const auto* array = in.if_contains(name);
  if (!array || !array->is_array()) return found;
  for (const auto& element : array->as_array()) {
    if (element.is_object()) found.push_back(&element.as_object());
  }
  return found;
}

bool is(const json::object& object, ErrorCode code) {
  return integer(object, "errorCode", 0) == static_cast<std::int64_t>(code);
}

class FirstStateReader {
 public:
  FirstState read(const Session& session) {
    for (const auto& event : session.events) {
      if (event.kind != Event::Kind::answer || !event.partner || !event.readable) continue;
      const auto request = session.events[*event.partner].body();
      const auto answer = event.body();
      if (!request || !answer) continue;
      if (auto group = text(*request, "groupId"); !group.empty()) {
        state_.named_groups.insert(std::move(group));
      }
      use(static_cast<ApiKey>(event.key), *request, *answer);
    }
    for (const auto& [topics_name, value] : broker_settings_) {
      const auto found = brokers_names_.find(topics_name);
      state_.settings[found == brokers_names_.end() ? topics_name : found->second] = value;
    }
    for (const auto& [id, name] : names_) {
      const auto topic = state_.topics.find(name);
      if (topic != state_.topics.end()) topic->second.id = id;
    }
    for (auto& [name, topic] : state_.topics) {
      for (auto& [index, partition] : topic.partitions) finish(name, index, partition);
    }
    return std::move(state_);
  }

 private:
  using Answer = const json::object&;

  void use(ApiKey api, const json::object& request, Answer answer) {
    switch (api) {
      case ApiKey::metadata: return use_metadata(answer);
      case ApiKey::create_topics: return use_created(answer);
      case ApiKey::produce: return use_produced(request, answer);
      case ApiKey::fetch: return use_fetched(answer);
      case ApiKey::list_offsets: return use_offsets(request, answer);
      case ApiKey::delete_records: return use_deleted(answer);
      case ApiKey::describe_configs: return use_described(answer);
      case ApiKey::list_groups: return use_groups(answer);
      case ApiKey::offset_fetch: return use_group_offsets(request, answer);
      case ApiKey::offset_commit: return use_commit(request, answer);
      case ApiKey::join_group:
      case ApiKey::consumer_group_heartbeat: own_groups_.insert(text(request, "groupId")); return;
      default: return;
    }
  }

  void use_metadata(Answer answer) {
    if (const auto brokers = objects(answer, "brokers"); !brokers.empty()) {
      state_.broker_id = static_cast<std::int32_t>(integer(*brokers.front(), "nodeId", 1));
    }
    for (const auto* topic : objects(answer, "topics")) {
      const auto name = text(*topic, "name");
      const auto* internal = topic->if_contains("isInternal");
      if (internal && *internal == json::value(true)) {
        use_internal(name, objects(*topic, "partitions").size());
        continue;
      }
      if (!is(*topic, ErrorCode::none)) {
        made_here_.insert(name);
        continue;
      }
      if (const auto id = text(*topic, "topicId"); !id.empty()) names_[id] = name;
      for (const auto* partition : objects(*topic, "partitions")) {
        at(name, integer(*partition, "partitionIndex", 0));
      }
    }
  }

  void use_internal(const std::string& name, std::size_t partitions) {
    if (name != "__consumer_offsets" || partitions == 0) return;
    state_.settings["offsets.topic.num.partitions"] = std::to_string(partitions);
  }

  void use_created(Answer answer) {
    for (const auto* topic : objects(answer, "topics")) {
      if (!is(*topic, ErrorCode::none)) continue;
      made_here_.insert(text(*topic, "name"));
      for (const auto* setting : objects(*topic, "configs")) use_setting(*setting);
    }
  }

  void use_produced(const json::object& request, Answer answer) {
    const auto asked = objects(request, "topicData");
    const auto answered = objects(answer, "responses");
    for (std::size_t t = 0; t < std::min(asked.size(), answered.size()); ++t) {
      const auto sent = objects(*asked[t], "partitionData");
      const auto done = objects(*answered[t], "partitionResponses");
      for (std::size_t p = 0; p < std::min(sent.size(), done.size()); ++p) {
        use_produced(name_of_topic(*asked[t]), *sent[p], *done[p]);
      }
    }
  }

  void use_produced(const std::string& name, const json::object& sent, const json::object& done) {
    if (is(done, ErrorCode::unknown_topic_or_partition)) return;
    auto* partition = at(name, integer(done, "index", 0));
    if (!partition) return;
    const auto bytes = from_base64(text(sent, "records"));
    auto& settings = state_.topics[name].settings;
    if (is(done, ErrorCode::message_too_large)) {
      settings["max.message.bytes"] = std::to_string(bytes.size() - 1);
    }
    if (is(done, ErrorCode::invalid_record) && !objects(done, "recordErrors").empty()) {
      settings["cleanup.policy"] = "compact";
    }
    const TopicPartition place{name, static_cast<std::int32_t>(integer(done, "index", 0))};
    if (is(done, ErrorCode::none)) ends_.try_emplace(place, integer(done, "baseOffset", 0));
  }

  void use_fetched(Answer answer) {
    for (const auto* topic : objects(answer, "responses")) {
      for (const auto* fetched : objects(*topic, "partitions")) {
        if (!is(*fetched, ErrorCode::none)) continue;
        auto* partition = at(name_of_topic(*topic), integer(*fetched, "partitionIndex", 0));
        if (!partition) continue;
        partition->end = std::max(partition->end, integer(*fetched, "highWatermark", 0));
        keep_records(from_base64(text(*fetched, "records")), *partition);
      }
    }
  }

  static void keep_records(const Buffer& records, PartitionState& partition) {
    for (std::size_t at = 0; at < records.size();) {
      const auto head = read_entry_head(records.bytes().subspan(at));
      if (!head) return;
      const auto entry = records.slice(at, head->total_bytes);
      at += head->total_bytes;
      const auto lines = describe_entries(entry, shipped_codecs());
      // What a client cannot write (a marker of a transaction) is left to the records between.
      if (!lines || lines->front().as_object().if_contains("controlType")) continue;
      const auto& batch = lines->front().as_object();
      const auto* control = batch.if_contains("control");
      if (control && *control == json::value(true)) continue;
      partition.records[batch.at("baseOffset").as_int64()] = entry;
    }
  }

  void use_offsets(const json::object& request, Answer answer) {
    const auto asked = objects(request, "topics");
    const auto answered = objects(answer, "topics");
    for (std::size_t t = 0; t < std::min(asked.size(), answered.size()); ++t) {
      const auto sought = objects(*asked[t], "partitions");
      const auto found = objects(*answered[t], "partitions");
      for (std::size_t p = 0; p < std::min(sought.size(), found.size()); ++p) {
        use_offset(text(*asked[t], "name"), integer(*sought[p], "timestamp", latest), *found[p]);
      }
    }
  }

  void use_offset(const std::string& name, std::int64_t sought, const json::object& found) {
    if (!is(found, ErrorCode::none)) return;
    auto* partition = at(name, integer(found, "partitionIndex", 0));
    const auto offset = integer(found, "offset", -1);
    if (!partition || offset < 0) return;
    const auto timestamp = integer(found, "timestamp", -1);
    if (timestamp >= 0) partition->timestamps[offset] = timestamp;
    partition->end =
        std::max(partition->end, sought == latest || timestamp < 0 ? offset : offset + 1);
  }

  void use_deleted(Answer answer) {
    for (const auto* topic : objects(answer, "topics")) {
      for (const auto* deleted : objects(*topic, "partitions")) {
        if (!is(*deleted, ErrorCode::none)) continue;
        auto* partition = at(text(*topic, "name"), integer(*deleted, "partitionIndex", 0));
        if (partition)
          partition->end = std::max(partition->end, integer(*deleted, "lowWatermark", 0));
      }
    }
  }

  void use_groups(Answer answer) {
    for (const auto* group : objects(answer, "groups")) {
      const auto name = text(*group, "groupId");
      if (own_groups_.contains(name)) continue;
      auto type = text(*group, "groupType");
      if (type != "classic" && type != "consumer") continue;
      auto& state = state_.groups[name];
      state.type = std::move(type);
      state.protocol_type = text(*group, "protocolType");
    }
  }

  void use_group_offsets(const json::object& request, Answer answer) {
    use_group_topics(text(request, "groupId"), answer);
    for (const auto* group : objects(answer, "groups")) {
      use_group_topics(text(*group, "groupId"), *group);
    }
  }

  void use_group_topics(const std::string& group, const json::object& in) {
    if (own_groups_.contains(group)) return;
    for (const auto* topic : objects(in, "topics")) {
      const auto name = name_of_topic(*topic);
      for (const auto* partition : objects(*topic, "partitions")) {
        const auto index = integer(*partition, "partitionIndex", 0);
        const auto offset = integer(*partition, "committedOffset", -1);
        auto* log = offset < 0 ? nullptr : at(name, index);
        if (!log) continue;
        log->end = std::max(log->end, offset);
        state_.groups[group].committed[{name, static_cast<std::int32_t>(index)}] = {
            offset, static_cast<std::int32_t>(integer(*partition, "committedLeaderEpoch", -1)),
            text(*partition, "metadata")};
      }
    }
  }

  /// What could be committed for was there.
  void use_commit(const json::object& request, Answer answer) {
    const auto group = text(request, "groupId");
    const bool is_first = own_groups_.insert(group).second;
    for (const auto* topic : objects(answer, "topics")) {
      for (const auto* partition : objects(*topic, "partitions")) {
        if (is(*partition, ErrorCode::none)) {
          at(name_of_topic(*topic), integer(*partition, "partitionIndex", 0));
        }
        // A group that is not there has no generation either, and that is the error then.
        if (is_first && is(*partition, ErrorCode::unknown_member_id)) {
          state_.groups.try_emplace(group, "classic", "consumer");
        }
      }
    }
  }

  void use_described(Answer answer) {
    constexpr std::int64_t of_topic = 2;
    for (const auto* resource : objects(answer, "results")) {
      if (integer(*resource, "resourceType", 0) != of_topic) continue;
      for (const auto* setting : objects(*resource, "configs")) use_setting(*setting);
    }
  }

  void use_setting(const json::object& setting) {
    const auto of_broker = [](std::int64_t source) { return source == 3 || source == 4; };
    const auto name = text(setting, "name");
    if (of_broker(integer(setting, "configSource", 0))) {
      broker_settings_[name] = text(setting, "value");
    }
    for (const auto* synonym : objects(setting, "synonyms")) {
      if (of_broker(integer(*synonym, "source", 0))) {
        brokers_names_[name] = text(*synonym, "name");
        broker_settings_[name] = text(*synonym, "value");
      }
    }
  }

  std::string name_of_topic(const json::object& topic) const {
    for (const auto* field : {"name", "topic"}) {
      if (auto name = text(topic, field); !name.empty()) return name;
    }
    const auto found = names_.find(text(topic, "topicId"));
    return found == names_.end() ? "" : found->second;
  }

  /// nullptr for a topic that the session made.
  PartitionState* at(const std::string& name, std::int64_t index) {
    if (name.empty() || made_here_.contains(name)) return nullptr;
    auto& partitions = state_.topics[name].partitions;
    for (std::int32_t i = 0; i <= index; ++i) partitions[i];
    return &partitions[static_cast<std::int32_t>(index)];
  }

  /// Where the session wrote, everything from there on is its own.
  void finish(const std::string& name, std::int32_t index, PartitionState& partition) {
    if (const auto found = ends_.find({name, index}); found != ends_.end()) {
      partition.end = found->second;
    }
    partition.records.erase(partition.records.lower_bound(partition.end), partition.records.end());
    partition.timestamps.erase(partition.timestamps.lower_bound(partition.end),
                               partition.timestamps.end());
  }

  FirstState state_;
  std::map<std::string, std::string> names_;  // by topic id
  std::set<std::string> made_here_;
  std::set<std::string> own_groups_;                    // that the session's clients were in
  std::map<std::string, std::string> broker_settings_;  // by the topic's name for them
  std::map<std::string, std::string> brokers_names_;
  std::map<TopicPartition, std::int64_t> ends_;  // where the session's first write came to stand
};

}  // namespace

FirstState read_first_state(const Session& session) { return FirstStateReader().read(session); }

}  // namespace millrace::wire
