#include "kernel/cli/log_dump_records.h"

#include <algorithm>
#include <array>
#include <limits>

#include <boost/json.hpp>

#include <millrace/batch.h>
#include <millrace/bytes.h>
#include <millrace/kafka/message_info.h>
#include <millrace/utf8.h>

#include "kernel/cli/message_json.h"

namespace millrace::kernel::cli {

namespace {

namespace json = boost::json;

constexpr std::size_t opened_bytes_max = std::numeric_limits<std::int32_t>::max();

// Keys of Kafka's own topics begin with a number that says which they are; the numbers of one topic
// mean nothing in another.
struct OwnTopic {
  std::string_view topic;
  std::string_view first_names;  // of its keys; none: all that are not another topic's
};
constexpr std::array own_topics{
    OwnTopic{"__consumer_offsets", ""},
    OwnTopic{"__transaction_state", "Transaction"},
    OwnTopic{"__share_group_state", "ShareSnapshot ShareUpdate"},
};

bool begins_with_one_of(std::string_view name, std::string_view first_names) {
  while (!first_names.empty()) {
    const auto end = std::min(first_names.find(' '), first_names.size());
    if (name.starts_with(first_names.substr(0, end))) return true;
    first_names.remove_prefix(std::min(end + 1, first_names.size()));
  }
  return false;
}

bool is_key_of(std::string_view name, const OwnTopic& own) {
  if (!own.first_names.empty()) return begins_with_one_of(name, own.first_names);
  return std::ranges::none_of(own_topics, [name](const OwnTopic& other) {
    return begins_with_one_of(name, other.first_names);
  });
}

const kafka::MessageInfo* find_key(const OwnTopic& own, std::int16_t number) {
  for (const auto* message : kafka::message_table()) {
    const bool is_key = message->kind == kafka::MessageKind::key && message->number == number;
    if (is_key && is_key_of(message->name, own)) return message;
  }
  return nullptr;
}

json::value parsed(const Result<std::string>& text) {
  if (!text) return json::object{{"error", text.error().detail}};
  boost::system::error_code error;
  auto value = json::parse(utf8_of(*text), error);
  return error ? json::value(utf8_of(*text)) : value;
}

json::value decoded(const OwnTopic& own, const RecordView& record) {
  constexpr std::size_t number_bytes = sizeof(std::int16_t);
  if (!record.key || record.key->size() < number_bytes) return nullptr;
  const auto number = load_be<std::int16_t>(record.key->data());
  const auto* key = find_key(own, number);
  if (key == nullptr) return json::object{{"error", "no key has number " + std::to_string(number)}};
  json::object out{{"name", key->name},
                   {"key", parsed(key->to_json(Buffer::copy_of(record.key->subspan(number_bytes)),
                                               key->versions.min))}};
  if (!record.value) {
    out["value"] = nullptr;
    return out;
  }
  constexpr std::string_view key_end = "Key";
  std::string name(key->name.substr(0, key->name.size() - key_end.size()));
  const auto* value = kafka::find_message(name + "Value");
  if (value == nullptr || record.value->size() < number_bytes) return out;
  const auto version = load_be<std::int16_t>(record.value->data());
  out["version"] = version;
  out["value"] =
      parsed(value->to_json(Buffer::copy_of(record.value->subspan(number_bytes)), version));
  return out;
}

// KIP-98: a version, and which marker it is.
std::string_view control_name(const std::optional<Bytes>& key) {
  if (!key || key->size() < 2 * sizeof(std::int16_t)) return "unknown";
  switch (load_be<std::int16_t>(key->data() + sizeof(std::int16_t))) {
    case 0: return "abort";
    case 1: return "commit";
    default: return "other";
  }
}

Result<Buffer> read_entry(const File& file, const filelog::Entry& entry) {
  MutableBuffer bytes(entry.bytes);
  MR_TRY(const auto read, file.read_at(entry.position, bytes.space()));
  bytes.filled(read);
  if (read != entry.bytes) return Error{Errc::io, file.path() + ": ends within a batch"};
  return std::move(bytes).freeze();
}

Result<> describe_old(const Buffer& entry, const Codecs& codecs, const TopicPartition& partition,
                      const OwnTopic* own, const EachRecord& each) {
  MR_TRY(const auto messages, open_legacy_entry(entry, codecs, opened_bytes_max));
  for (const auto& message : messages) {
    RecordView record{.offset = message.offset, .timestamp = message.timestamp};
    if (message.key) record.key = message.key->bytes();
    if (message.value) record.value = message.value->bytes();
    auto described = object_of(partition.topic, partition.partition, record);
    if (own != nullptr) described["decoded"] = decoded(*own, record);
    each(record.offset, std::move(described));
  }
  return {};
}

}  // namespace

bool can_decode(std::string_view topic) noexcept {
  return std::ranges::find(own_topics, topic, &OwnTopic::topic) != own_topics.end();
}

Result<> describe_records(const File& file, const SoundBatch& batch, const Codecs& codecs,
                          const TopicPartition& partition, bool decode, const EachRecord& each) {
  const auto* found = std::ranges::find(own_topics, partition.topic, &OwnTopic::topic);
  const auto* own = !decode || found == own_topics.end() ? nullptr : found;
  MR_TRY(const auto entry, read_entry(file, batch.entry));
  if (!batch.header) return describe_old(entry, codecs, partition, own, each);
  const auto& header = *batch.header;
  MR_TRY(const auto records, open_records(header, entry, codecs, opened_bytes_max));
  return for_each_record(header, records, [&](const RecordView& record) {
    auto described = object_of(partition.topic, partition.partition, record);
    if (header.control()) {
      described["control"] = control_name(record.key);
    } else if (own != nullptr) {
      described["decoded"] = decoded(*own, record);
    }
    each(record.offset, std::move(described));
    return true;
  });
}

}  // namespace millrace::kernel::cli
