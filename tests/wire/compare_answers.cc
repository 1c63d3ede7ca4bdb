#include "compare_answers.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string_view>

#include <millrace/error_code.h>
#include <millrace/kafka/api_key.h>

#include "golden_file.h"
#include "log_entries.h"
#include "shipped_codecs.h"

namespace millrace::wire {

namespace {

namespace json = boost::json;
using kafka::ApiKey;

/// Of one run alone.
const std::set<std::string_view> ignored_fields{
    "host",
    "port",
    "throttleTimeMs",
    "logAppendTimeMs",
    // What a release of Kafka can do as a whole, and how far its metadata has come.
    "supportedFeatures",
    "finalizedFeatures",
    "finalizedFeaturesEpoch",
    "zkMigrationReady",
};

/// There in both or in neither, whatever they say.
const std::set<std::string_view> presence_fields{"leaderEpoch", "currentLeaderEpoch",
                                                 "errorMessage", "batchIndexErrorMessage"};

/// Count how often a group was assigned anew.
const std::set<std::string_view> epoch_fields{"generationId", "memberEpoch", "groupEpoch",
                                              "assignmentEpoch"};

/// Resources that only features have which are not served yet, or that are of Kafka's process.
constexpr std::int64_t broker_logger = 8;
constexpr std::int64_t client_metrics = 16;
constexpr std::int64_t consumer_group = 32;

/// What pairs the elements of an array: the first that all of them have.
constexpr std::array<std::string_view, 11> key_fields{
    "name",  "topic",  "resourceName", "partitionIndex", "partition",
    "index", "apiKey", "nodeId",       "brokerId",       "groupId"};

bool is_there(const json::value& value) {
  if (value.is_null()) return false;
  if (value.is_string()) return !value.as_string().empty();
  return !value.is_int64() || value.as_int64() >= 0;
}

std::string text_of(const json::value& value) {
  return value.is_string() ? std::string(value.as_string()) : json::serialize(value);
}

std::int64_t error_code(const json::object& in) {
  const auto* value = in.if_contains("errorCode");
  return value ? value->as_int64() : 0;
}

bool was_starting(const json::object& answer) {
  return error_code(answer) == static_cast<int>(ErrorCode::coordinator_load_in_progress) ||
         error_code(answer) == static_cast<int>(ErrorCode::coordinator_not_available);
}

/// Where a setting comes from; one of all brokers counts as one of this broker.
std::int64_t source_of(const json::value& source) {
  constexpr std::int64_t all_brokers = 3;
  constexpr std::int64_t file = 4;
  const auto* number = source.if_int64();
  if (!number) return -1;
  return *number == all_brokers ? file : *number;
}

/// What matters of the records in a field of an answer.
json::value opened(const json::value& field) {
  if (!field.is_string()) return field;
  const auto lines = describe_entries(from_base64(field.as_string()), shipped_codecs(), true);
  if (!lines) return json::value("not a log: " + lines.error().detail);
  json::array records;
  json::object batch;
  for (const auto& line : *lines) {
    auto object = line.as_object();
    if (object.at("t").as_string() == "batch") {
      batch = std::move(object);
      continue;
    }
    object.erase("t");
    for (const auto* name : {"magic", "timestampType", "producerId", "transactional"}) {
      if (const auto* value = batch.if_contains(name)) object[name] = *value;
    }
    records.push_back(std::move(object));
  }
  return records;
}

class Comparison {
 public:
  Comparison(const Event& request, Bindings& bindings) : request_(request), bindings_(bindings) {
    const auto body = request.body();
    const auto* group = body ? body->if_contains("groupId") : nullptr;
    if (group && group->is_string()) group_ = group->as_string();
  }

  void compare_answer(const json::object& recorded, const json::object& live) {
    if (was_starting(recorded) && error_code(live) == 0) return;
    compare(recorded, live, "");
  }

  std::vector<Difference> take() && { return std::move(differences_); }

 private:
  void compare(const json::object& recorded, const json::object& live, const std::string& path) {
    if (const auto* group = recorded.if_contains("groupId")) group_ = text_of(*group);
    for (const auto& [name, value] : recorded) {
      const auto* other = live.if_contains(name);
      compare_field(name, value, other ? *other : json::value("(missing)"),
                    path.empty() ? std::string(name) : path + "." + std::string(name));
    }
    for (const auto& [name, value] : live) {
      if (recorded.contains(name) || ignored_fields.contains(name)) continue;
      differs(path + "." + std::string(name), "(no such field)", value);
    }
  }

  void differs(const std::string& path, const json::value& recorded, const json::value& live) {
    constexpr std::size_t shown_max = 300;
    differences_.push_back({path, json::serialize(recorded).substr(0, shown_max),
                            json::serialize(live).substr(0, shown_max)});
  }

  void compare_field(std::string_view name, const json::value& recorded, const json::value& live,
                     const std::string& path) {
    if (ignored_fields.contains(name)) return;
    if (presence_fields.contains(name)) {
      // An explanation where Kafka gives none does no harm.
      const bool more = name.ends_with("Message") && is_there(live);
      if (is_there(recorded) != is_there(live) && !more) differs(path, recorded, live);
      return;
    }
    const auto kind = Bindings::kind_of(name);
    if (kind && !(name == "leader" && recorded.is_number())) {
      if (!bindings_.bind(*kind, text_of(recorded), text_of(live))) differs(path, recorded, live);
      return;
    }
    if (epoch_fields.contains(name) && recorded.is_int64() && live.is_int64()) {
      if (!bindings_.bind_epoch(group_, recorded.as_int64(), live.as_int64())) {
        differs(path, recorded, live);
      }
      return;
    }
    if (name == "configSource" || name == "source") {
      if (source_of(recorded) != source_of(live)) differs(path, recorded, live);
      return;
    }
    if (name == "apiKeys") return compare_api_keys(recorded, live, path);
    if (name == "records") return compare_records(opened(recorded), opened(live), path);
    compare_value(recorded, live, path);
  }

  void compare_records(const json::value& recorded, json::value live, const std::string& path) {
    if (recorded.is_array() && live.is_array()) {
      const auto records = recorded.as_array().size();
      if (records > 0 && live.as_array().size() > records) live.as_array().resize(records);
    }
    compare_value(recorded, live, path);
  }

  void compare_value(const json::value& recorded, const json::value& live,
                     const std::string& path) {
    if (recorded.is_object() && live.is_object()) {
      if (path.starts_with("topics[") && is_being_created(recorded.as_object(), live.as_object())) {
        return;
      }
      return compare(recorded.as_object(), live.as_object(), path);
    }
    if (recorded.is_array() && live.is_array()) {
      return compare_arrays(recorded.as_array(), live.as_array(), path);
    }
    if (recorded != live) differs(path, recorded, live);
  }

  void compare_arrays(const json::array& recorded, const json::array& live,
                      const std::string& path) {
    if (const auto key = common_key(recorded, live)) {
      return compare_keyed(recorded, live, *key, path);
    }
    const auto both = std::min(recorded.size(), live.size());
    for (std::size_t at = 0; at < both; ++at) {
      compare_value(recorded[at], same_member(recorded[at], live, at),
                    path + "[" + std::to_string(at) + "]");
    }
    if (recorded.size() != live.size()) {
      differs(path + " (elements)", recorded.size(), live.size());
    }
  }

  /// The element of `live` whose member stands for that of `recorded`; else that at its place.
  const json::value& same_member(const json::value& recorded, const json::array& live,
                                 std::size_t place) const {
    const auto id_of = [](const json::value& element) {
      const auto* object = element.if_object();
      const auto* id = object ? object->if_contains("memberId") : nullptr;
      return id ? text_of(*id) : std::string();
    };
    const auto wanted = bindings_.live(IdKind::member, id_of(recorded));
    const auto found = std::ranges::find_if(
        live, [&](const json::value& element) { return id_of(element) == wanted; });
    return wanted.empty() || found == live.end() ? live[place] : *found;
  }

  static std::optional<std::string_view> common_key(const json::array& a, const json::array& b) {
    if (a.empty() && b.empty()) return std::nullopt;
    for (const auto key : key_fields) {
      const auto has_key = [key](const json::value& element) {
        const auto* object = element.if_object();
        const auto* value = object ? object->if_contains(key) : nullptr;
        return value && !value->is_null() && text_of(*value) != "";
      };
      if (std::ranges::all_of(a, has_key) && std::ranges::all_of(b, has_key)) return key;
    }
    return std::nullopt;
  }

  void compare_keyed(const json::array& recorded, const json::array& live, std::string_view key,
                     const std::string& path) {
    const auto name_of = [key](const json::value& element) {
      const auto* type = element.as_object().if_contains("resourceType");
      return (type ? text_of(*type) + ":" : "") + text_of(element.at(key));
    };
    std::multimap<std::string, const json::value*> left;
    for (const auto& element : live) left.emplace(name_of(element), &element);
    for (const auto& element : recorded) {
      const auto name = name_of(element);
      const auto place = path + "[" + name + "]";
      const auto found = left.find(name);
      if (found == left.end()) {
        if (!may_be_missing(element.as_object())) differs(place, element, "(missing)");
        continue;
      }
      compare_value(element, *found->second, place);
      left.erase(found);
    }
    if (path.ends_with(".configs")) return;
    for (const auto& [name, element] : left) {
      differs(path + "[" + name + "]", "(no such element)", *element);
    }
  }

  static bool may_be_missing(const json::object& element) {
    if (const auto* type = element.if_contains("resourceType")) {
      const auto number = type->as_int64();
      const auto name = text_of(element.at("resourceName"));
      return number == broker_logger || number == client_metrics || number == consumer_group ||
             name.starts_with("__");
    }
    if (const auto* type = element.if_contains("groupType")) {
      return text_of(*type) == "share" || text_of(*type) == "streams";
    }
    const auto* internal = element.if_contains("isInternal");
    return internal && *internal == json::value(true);
  }

  void compare_api_keys(const json::value& recorded, const json::value& live,
                        const std::string& path) {
    std::map<std::int64_t, const json::object*> theirs;
    for (const auto& api : recorded.as_array()) {
      theirs[api.at("apiKey").as_int64()] = &api.as_object();
    }
    for (const auto& api : live.as_array()) {
      const auto found = theirs.find(api.at("apiKey").as_int64());
      if (found == theirs.end()) {
        // Refused as a whole, Kafka names the one API that a client may then use.
        if (theirs.size() == 1) differs(path, "(no such element)", api);
        continue;
      }
      const auto& other = *found->second;
      if (api.at("minVersion").as_int64() > other.at("maxVersion").as_int64() ||
          api.at("maxVersion").as_int64() < other.at("minVersion").as_int64()) {
        differs(path + "[" + std::to_string(found->first) + "]", other, api);
      }
    }
  }

  bool is_being_created(const json::object& recorded, const json::object& live) const {
    if (request_.key != static_cast<std::int16_t>(ApiKey::metadata)) return false;
    const auto unknown_yet = [](const json::object& topic) {
      return error_code(topic) == static_cast<int>(ErrorCode::unknown_topic_or_partition) ||
             error_code(topic) == static_cast<int>(ErrorCode::leader_not_available);
    };
    const auto body = request_.body();
    const auto* allowed = body ? body->if_contains("allowAutoTopicCreation") : nullptr;
    if (allowed && !allowed->as_bool()) return false;
    return unknown_yet(recorded) && (error_code(live) == 0 || unknown_yet(live));
  }

  const Event& request_;
  Bindings& bindings_;
  std::string group_;  // that the answer, or the part of it, is about
  std::vector<Difference> differences_;
};

}  // namespace

std::vector<Difference> compare_answers(const Event& request, const json::object& recorded,
                                        const json::object& live, Bindings& bindings) {
  Comparison comparison(request, bindings);
  comparison.compare_answer(recorded, live);
  return std::move(comparison).take();
}

}  // namespace millrace::wire
