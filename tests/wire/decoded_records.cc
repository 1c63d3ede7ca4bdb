#include "decoded_records.h"

#include <algorithm>
#include <string>

#include <millrace/bytes.h>
#include <millrace/kafka/message_info.h>
#include <millrace/kafka/wire_reader.h>

#include "golden_file.h"

namespace millrace::wire {

namespace {

namespace json = boost::json;
using kafka::MessageInfo;
using kafka::MessageKind;

// Numbers are unique within a topic alone; a schema's name says which it belongs to.
bool is_of_topic(std::string_view topic, std::string_view name) {
  if (topic == "__transaction_state") return name.starts_with("TransactionLog");
  const bool share_state = name.starts_with("ShareSnapshot") || name.starts_with("ShareUpdate");
  if (topic == "__share_group_state") return share_state;
  return !share_state && !name.starts_with("TransactionLog") && !name.starts_with("Remote");
}

Result<const MessageInfo*> find(std::string_view topic, MessageKind kind, std::int16_t number) {
  for (const auto* message : kafka::message_table()) {
    if (message->kind == kind && message->number == number && is_of_topic(topic, message->name)) {
      return message;
    }
  }
  return Error{Errc::not_found,
               "no schema for number " + std::to_string(number) + " of " + std::string(topic)};
}

Result<json::value> to_json(const MessageInfo& message, Buffer body, std::int16_t version) {
  MR_TRY(const auto text, message.to_json(std::move(body), version));
  return json::parse(text);
}

Buffer bytes_of(const json::object& record, std::string_view field) {
  const auto& value = record.at(field);
  return value.is_null() ? Buffer() : from_base64(value.as_string());
}

/// Of a coordinator: both begin with a number, the key's type and the value's version.
Result<json::object> decode_keyed(std::string_view topic, const json::object& record) {
  const auto key = bytes_of(record, "key");
  kafka::WireReader key_in(key);
  std::int16_t type = 0;
  key_in.read(type, "key type");
  MR_CHECK(key_in.finish());
  // Offsets have two types of one form; the older schema has a name of its own.
  MR_TRY(const auto* schema, find(topic, MessageKind::key, type));
  MR_TRY(auto decoded, to_json(*schema, key_in.rest(), 0));
  json::object line{{"offset", record.at("offset")},
                    {"keyType", type},
                    {"keySchema", schema->name},
                    {"key", std::move(decoded)}};
  if (record.at("value").is_null()) {
    line["value"] = nullptr;
    return line;
  }
  kafka::WireReader value_in(bytes_of(record, "value"));
  std::int16_t version = 0;
  value_in.read(version, "value version");
  MR_CHECK(value_in.finish());
  MR_TRY(const auto* value_schema, find(topic, MessageKind::value, type));
  MR_TRY(line["value"], to_json(*value_schema, value_in.rest(), version));
  line["valueSchema"] = value_schema->name;
  line["valueVersion"] = version;
  return line;
}

Result<json::object> decode_metadata(std::string_view topic, const json::object& record) {
  kafka::WireReader in(bytes_of(record, "value"));
  std::uint32_t frame_version = 0;
  std::uint32_t number = 0;
  std::uint32_t version = 0;
  in.read_uvarint(frame_version, "frame version");
  in.read_uvarint(number, "record type");
  in.read_uvarint(version, "record version");
  MR_CHECK(in.finish());
  if (frame_version != 1) {
    return Error{Errc::unsupported, "frame version " + std::to_string(frame_version)};
  }
  MR_TRY(const auto* schema, find(topic, MessageKind::record, static_cast<std::int16_t>(number)));
  MR_TRY(auto decoded, to_json(*schema, in.rest(), static_cast<std::int16_t>(version)));
  return json::object{{"offset", record.at("offset")},
                      {"type", schema->name},
                      {"apiKey", number},
                      {"version", version},
                      {"value", std::move(decoded)}};
}

}  // namespace

Result<json::array> decode_records(std::string_view topic, const json::array& lines) {
  constexpr std::string_view topics[] = {"__consumer_offsets", "__transaction_state",
                                         "__share_group_state", "__cluster_metadata"};
  if (std::ranges::find(topics, topic) == std::end(topics)) {
    return Error{Errc::unsupported, std::string(topic) + " is no internal topic of Kafka's"};
  }
  json::array decoded;
  for (const auto& line : lines) {
    const auto& record = line.as_object();
    if (record.at("t").as_string() != "rec" || record.contains("controlType")) continue;
    auto object = topic == "__cluster_metadata" ? decode_metadata(topic, record)
                                                : decode_keyed(topic, record);
    if (!object) {
      return Error{object.error().code,
                   "record " + json::serialize(record.at("offset")) + ": " + object.error().detail};
    }
    const auto* type = object->if_contains("type");
    if (type && *type == json::value("NoOpRecord")) continue;
    decoded.push_back(*std::move(object));
  }
  return decoded;
}

}  // namespace millrace::wire
