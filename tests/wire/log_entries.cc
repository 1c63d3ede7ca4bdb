#include "log_entries.h"

#include <algorithm>
#include <string>

#include <millrace/bytes.h>

#include "golden_file.h"

namespace millrace::wire {

namespace {

namespace json = boost::json;

constexpr std::size_t opened_bytes_max = 256UL << 20;

// What stands behind the magic byte of a V0 or V1 message.
constexpr std::size_t legacy_attributes_at = 17;
constexpr std::uint8_t codec_bits = 0x07;
constexpr std::uint8_t log_append_time_bit = 0x08;

json::value text_or_null(std::optional<Bytes> bytes) {
  return bytes ? json::value(to_base64(*bytes)) : json::value(nullptr);
}

std::string_view timestamp_type(bool log_append_time) {
  return log_append_time ? "LogAppendTime" : "CreateTime";
}

std::string control_type(std::int16_t type) {
  constexpr const char* names[] = {"ABORT",           "COMMIT",          "LEADER_CHANGE",
                                   "SNAPSHOT_HEADER", "SNAPSHOT_FOOTER", "KRAFT_VERSION",
                                   "KRAFT_VOTERS"};
  if (type >= 0 && static_cast<std::size_t>(type) < std::size(names)) return names[type];
  return "UNKNOWN";
}

json::object describe_batch(const BatchHeader& header) {
  json::object line{{"baseOffset", header.base_offset.value},
                    {"lastOffset", header.last_offset().value},
                    {"compression", name_of(header.compression())},
                    {"timestampType", timestamp_type(header.log_append_time())},
                    {"maxTimestamp", header.max_timestamp.ms},
                    {"count", header.record_count},
                    {"producerId", header.producer_id},
                    {"producerEpoch", header.producer_epoch},
                    {"baseSequence", header.base_sequence},
                    {"leaderEpoch", header.partition_leader_epoch.value},
                    {"transactional", header.transactional()},
                    {"control", header.control()},
                    {"crc", header.crc}};
  if (header.has_delete_horizon()) line["deleteHorizonMs"] = header.base_timestamp.ms;
  return line;
}

json::object describe_record(const BatchHeader& header, const RecordView& record) {
  json::array headers;
  for (const auto& one : record.headers) {
    headers.push_back(json::array{json::value(one.key), text_or_null(one.value)});
  }
  json::object line{{"t", "rec"},
                    {"offset", record.offset.value},
                    {"timestamp", record.timestamp.ms},
                    {"key", text_or_null(record.key)},
                    {"value", text_or_null(record.value)},
                    {"headers", std::move(headers)}};
  if (header.base_sequence >= 0) {
    line["sequence"] = (header.base_sequence + (record.offset - header.base_offset)) & 0x7fffffff;
  }
  if (!header.control() || !record.key || record.key->size() < 4) return line;
  const auto type = load_be<std::int16_t>(record.key->data() + 2);
  line["controlType"] = control_type(type);
  if (type <= 1 && record.value && record.value->size() >= 6) {
    line["coordinatorEpoch"] = load_be<std::int32_t>(record.value->data() + 2);
  }
  return line;
}

Result<> describe_v2(const Buffer& entry, json::object head, const Codecs& codecs,
                     json::array& lines) {
  MR_TRY(const auto header, read_batch_header(entry));
  if (!verify_crc(entry)) return Error{Errc::corrupt, "crc differs"};
  auto line = describe_batch(header);
  line.insert(head.begin(), head.end());
  lines.push_back(std::move(line));
  MR_TRY(const auto section, open_records(header, entry, codecs, opened_bytes_max));
  return for_each_record(header, section, [&](const RecordView& record) {
    lines.push_back(describe_record(header, record));
    return true;
  });
}

Result<> describe_legacy(const Buffer& entry, json::object head, const Codecs& codecs,
                         json::array& lines) {
  MR_TRY(const auto messages, open_legacy_entry(entry, codecs, opened_bytes_max));
  const auto attributes = load_be<std::uint8_t>(entry.data() + legacy_attributes_at);
  Timestamp newest;
  for (const auto& message : messages) newest = std::max(newest, message.timestamp);
  head["baseOffset"] = messages.front().offset.value;
  head["lastOffset"] = load_be<std::int64_t>(entry.data());
  head["compression"] = name_of(static_cast<CompressionId>(attributes & codec_bits));
  head["timestampType"] = messages.front().magic == 0
                              ? "NoTimestampType"
                              : timestamp_type((attributes & log_append_time_bit) != 0);
  head["maxTimestamp"] = newest.ms;
  lines.push_back(std::move(head));
  for (const auto& message : messages) {
    lines.push_back(json::object{{"t", "rec"},
                                 {"offset", message.offset.value},
                                 {"timestamp", message.timestamp.ms},
                                 {"key", text_or_null(message.key)},
                                 {"value", text_or_null(message.value)}});
  }
  return {};
}

}  // namespace

Result<json::array> describe_entries(const Buffer& log, const Codecs& codecs, bool cut_tail) {
  json::array lines;
  for (std::size_t at = 0; at < log.size();) {
    const auto head = read_entry_head(log.bytes().subspan(at));
    if (!head && cut_tail && head.error().code == Errc::out_of_range) break;
    const auto describe = [&]() -> Result<> {
      MR_CHECK(head);
      const auto entry = log.slice(at, head->total_bytes);
      json::object line{
          {"t", "batch"}, {"position", at}, {"size", head->total_bytes}, {"magic", head->magic}};
      return head->magic == 2 ? describe_v2(entry, std::move(line), codecs, lines)
                              : describe_legacy(entry, std::move(line), codecs, lines);
    };
    if (const auto described = describe(); !described) {
      return Error{described.error().code,
                   "at byte " + std::to_string(at) + ": " + described.error().detail};
    }
    at += head->total_bytes;
  }
  return lines;
}

}  // namespace millrace::wire
