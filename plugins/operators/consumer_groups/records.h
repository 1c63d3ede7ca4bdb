// Records of __consumer_offsets as Kafka's own tools read them: a key is the int16 of its kind and
// its fields, a value the int16 of its version and its fields. What consumers tell each other
// inside JoinGroup and SyncGroup is read here too, and may be anything.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <millrace/buffer.h>
#include <millrace/kafka/codec.h>
#include <millrace/kafka/consumer_protocol.h>
#include <millrace/kafka/group_records.h>
#include <millrace/result.h>

namespace millrace::consumer_groups {

/// The number in front of a key. Those of share and streams groups are not ours.
enum class RecordKind : std::int16_t {
  legacy_offset_commit = 0,
  offset_commit = 1,
  group_metadata = 2,
  consumer_group_metadata = 3,
  consumer_group_partition_metadata = 4,
  consumer_group_member_metadata = 5,
  consumer_group_target_metadata = 6,
  consumer_group_target_member = 7,
  consumer_group_current_assignment = 8,
  consumer_group_regular_expression = 16,
};

namespace detail {
Result<Buffer> with_version(std::int16_t version, const Payload& body);
/// Takes the int16 off the front.
Result<std::int16_t> version_of(Bytes bytes);
}  // namespace detail

/// Errc::invalid_argument when a string is too long for the format.
template <class Key>
Result<Buffer> encode_key(const Key& key) {
  MR_TRY(const auto body, kafka::encode(key, Key::message_versions.min));
  return detail::with_version(Key::record_type, body);
}
template <class Value>
Result<Buffer> encode_value(const Value& value, std::int16_t version) {
  MR_TRY(const auto body, kafka::encode(value, version));
  return detail::with_version(version, body);
}

/// The kind of a key; Errc::corrupt when it has no room for one.
Result<RecordKind> kind_of(Bytes key);
template <class Key>
Result<Key> decode_key(Bytes key) {
  return kafka::decode<Key>(Buffer::copy_of(key.subspan(2)), Key::message_versions.min);
}
template <class Value>
Result<Value> decode_value(Bytes value) {
  MR_TRY(const auto version, detail::version_of(value));
  return kafka::decode<Value>(Buffer::copy_of(value.subspan(2)), version);
}

/// The group that a record of one of the kinds from group_metadata on is about.
Result<std::string> group_of(Bytes key);

/// The topics of a consumer's subscription; nothing when the bytes are not one.
std::optional<std::vector<std::string>> subscribed_topics(const Buffer& subscription);

}  // namespace millrace::consumer_groups
