#include "kernel/partition/batch_validator.h"

#include <algorithm>
#include <array>
#include <limits>

#include <millrace/bytes.h>

#include "kernel/host/levelled_codec.h"
#include "kernel/partition/conversion.h"

namespace millrace::kernel {

namespace {

constexpr std::int16_t codec_bits = 0x07;
constexpr std::int16_t log_append_time_bit = 0x08;

// So many records are named in an answer; more would only make it large.
constexpr std::size_t record_errors_max = 100;

std::unexpected<Refusal> refuse(ErrorCode error, std::string message) {
  return std::unexpected(Refusal{error, std::move(message), {}});
}

bool is_known(CompressionId id) noexcept { return id <= CompressionId::zstd; }

std::unexpected<Refusal> no_codec(CompressionId id) {
  return refuse(ErrorCode::unsupported_compression_type,
                "no codec is loaded for compression type " + std::to_string(static_cast<int>(id)) +
                    " (" + std::string(name_of(id)) + ")");
}

bool has_codec(const Codecs& codecs, CompressionId id) noexcept {
  return id == CompressionId::none || codecs.find(id) != nullptr;
}

CompressionId stored_codec(const TopicConfig& config, CompressionId produced) noexcept {
  return config.compression_type.value_or(produced);
}

// Earliest and latest timestamp that a producer may set.
struct TimeWindow {
  std::int64_t first_ms;
  std::int64_t last_ms;

  TimeWindow(const TopicConfig& config, Timestamp now) noexcept
      : first_ms(config.message_timestamp_before_max_ms > now.ms - lowest
                     ? lowest
                     : now.ms - config.message_timestamp_before_max_ms),
        last_ms(config.message_timestamp_after_max_ms > highest - now.ms
                    ? highest
                    : now.ms + config.message_timestamp_after_max_ms) {}

  bool holds(Timestamp time) const noexcept {
    return time.ms == -1 || (time.ms >= first_ms && time.ms <= last_ms);
  }

 private:
  static constexpr auto lowest = std::numeric_limits<std::int64_t>::min() / 2;
  static constexpr auto highest = std::numeric_limits<std::int64_t>::max();
};

// As Kafka has no code for it: that of a batch which is too large as it is.
std::unexpected<Refusal> opens_too_large(std::string message) {
  return std::unexpected(
      Refusal{ErrorCode::message_too_large, std::move(message), {}, /*opens_too_large=*/true});
}

std::optional<Refusal> check_producer(const BatchHeader& header) {
  const auto invalid = [](std::string message) {
    return Refusal{ErrorCode::invalid_record, std::move(message), {}};
  };
  if (header.control()) return invalid("clients must not write control batches");
  if (header.has_delete_horizon()) return invalid("clients must not set a delete horizon");
  if (header.producer_id >= 0 && (header.producer_epoch < 0 || header.base_sequence < 0)) {
    return invalid("producer " + std::to_string(header.producer_id) + " has epoch " +
                   std::to_string(header.producer_epoch) + " and sequence " +
                   std::to_string(header.base_sequence) + "; both must be set");
  }
  return std::nullopt;
}

std::optional<Refusal> check_shape(const BatchHeader& header, const TopicConfig& config) {
  const auto invalid = [](std::string message) {
    return Refusal{ErrorCode::invalid_record, std::move(message), {}};
  };
  if (header.base_offset != Offset{0}) {
    return invalid("base offset is " + std::to_string(header.base_offset.value) + ", expected 0");
  }
  if (header.record_count == 0) return invalid("a batch without records");
  if (header.last_offset_delta != header.record_count - 1) {
    return invalid("last offset delta is " + std::to_string(header.last_offset_delta) +
                   " in a batch of " + std::to_string(header.record_count) + " records");
  }
  if (header.log_append_time() && config.message_timestamp_type == TimestampType::create_time) {
    return Refusal{ErrorCode::invalid_timestamp, "clients must not set LogAppendTime", {}};
  }
  return std::nullopt;
}

Checked<Intake> check_legacy(const Buffer& records, const TopicConfig& config,
                             const ProduceFeatures& features) {
  if (!features.legacy_formats) {
    return refuse(ErrorCode::invalid_record,
                  "this version of the request carries batches of format V2 alone");
  }
  for (std::size_t at = 0; at < records.size();) {
    const auto head = read_entry_head(records.bytes().subspan(at));
    if (!head) return refuse(ErrorCode::corrupt_message, head.error().detail);
    if (auto refusal = check_size(head->total_bytes, config)) return std::unexpected(*refusal);
    at += head->total_bytes;
  }
  return Intake{.records = records, .needs_worker = true};
}

std::unexpected<Refusal> wrong_crc() {
  return refuse(ErrorCode::corrupt_message, "the batch's crc does not match its content");
}

Checked<Intake> check_batch(const Buffer& records, const TopicConfig& config,
                            const ProduceFeatures& features, const Codecs& codecs) {
  const auto header = read_batch_header(records);
  if (!header) return refuse(ErrorCode::corrupt_message, header.error().detail);
  if (header->total_bytes() != records.size()) {
    return refuse(ErrorCode::invalid_record,
                  std::to_string(records.size() - header->total_bytes()) +
                      " bytes behind the batch; a request has one batch for each partition");
  }
  if (header->compression() == CompressionId::zstd && !features.zstd) {
    return refuse(ErrorCode::unsupported_compression_type,
                  "zstd is not allowed in this version of the request");
  }
  if (auto refusal = check_size(records.size(), config)) return std::unexpected(*refusal);
  const bool large = records.size() > checked_on_shard_bytes_max;
  if (!large && !verify_crc(records)) return wrong_crc();
  if (header->transactional()) {
    return refuse(ErrorCode::invalid_producer_epoch, "no transaction of producer " +
                                                         std::to_string(header->producer_id) +
                                                         " is open on this partition");
  }
  const auto stored = stored_codec(config, header->compression());
  for (const auto id : {header->compression(), stored}) {
    if (is_known(id) && !has_codec(codecs, id)) return no_codec(id);
  }
  const bool plain = header->compression() == CompressionId::none && stored == CompressionId::none;
  return Intake{.records = records,
                .header = *header,
                .needs_worker = !plain || config.message_format < 2 || large,
                .crc_unchecked = large};
}

// Collects what is wrong with single records.
class RecordJudge {
 public:
  RecordJudge(const TopicConfig& config, Timestamp now)
      : key_needed_(config.cleanup_compact),
        time_checked_(config.message_timestamp_type == TimestampType::create_time),
        window_(config, now) {}

  void judge(std::int32_t index, const RecordView& record) {
    if (key_needed_ && !record.key) {
      add(index, ErrorCode::invalid_record, "Compacted topic cannot accept message without key");
    }
    if (time_checked_ && !window_.holds(record.timestamp)) {
      add(index, ErrorCode::invalid_timestamp,
          "Timestamp " + std::to_string(record.timestamp.ms) +
              " of message is out of range. The timestamp should be within [" +
              std::to_string(window_.first_ms) + ", " + std::to_string(window_.last_ms) + "]");
    }
  }
  std::optional<Refusal> verdict() && {
    if (refusal_.error == ErrorCode::none) return std::nullopt;
    return std::move(refusal_);
  }

 private:
  void add(std::int32_t index, ErrorCode error, std::string message) {
    if (refusal_.error != ErrorCode::invalid_timestamp) {
      refusal_.error = error;
      refusal_.message = error == ErrorCode::invalid_timestamp
                             ? "One or more records have been rejected due to invalid timestamp"
                             : "One or more records have been rejected";
    }
    if (refusal_.record_errors.size() < record_errors_max) {
      refusal_.record_errors.push_back({index, std::move(message)});
    }
  }

  bool key_needed_;
  bool time_checked_;
  TimeWindow window_;
  Refusal refusal_;
};

Checked<Timestamp> inspect(const BatchHeader& header, Bytes section, const TopicConfig& config,
                           Timestamp now) {
  RecordJudge judge(config, now);
  // Within the request: a converted message set may be several batches.
  const auto first_at = static_cast<std::int32_t>(header.base_offset.value);
  Timestamp newest;
  std::int32_t index = 0;
  bool in_sequence = true;
  const auto walked = for_each_record(header, section, [&](const RecordView& record) {
    in_sequence = record.offset == header.base_offset + index;
    if (!in_sequence) return false;
    judge.judge(first_at + index, record);
    newest = std::max(newest, record.timestamp);
    ++index;
    return true;
  });
  if (!walked) return refuse(ErrorCode::invalid_record, walked.error().detail);
  if (!in_sequence) {
    return refuse(ErrorCode::invalid_record,
                  "record " + std::to_string(index) + " does not have that offset in its batch");
  }
  if (auto refusal = std::move(judge).verdict()) return std::unexpected(*std::move(refusal));
  return newest;
}

// Compresses anew when the topic wants another codec.
Checked<bool> recompress(ReadyBatch& batch, const Buffer& section, CompressionId target,
                         const TopicConfig& config, const Codecs& codecs) {
  if (batch.header.compression() == target) return false;
  batch.body = section;
  if (target != CompressionId::none) {
    const auto* codec = codecs.find(target);
    if (!codec) return no_codec(target);
    auto compressed = compress(*codec, section, config.compression_level);
    if (!compressed) {
      return refuse(ErrorCode::unknown_server_error, compressed.error().detail);
    }
    batch.body = *std::move(compressed);
  }
  const auto bytes = batch_header_bytes + batch.body.size();
  if (auto refusal = check_size(bytes, config)) return std::unexpected(*refusal);
  batch.header.batch_length = static_cast<std::int32_t>(bytes - batch_prefix_bytes);
  batch.header.attributes = static_cast<std::int16_t>((batch.header.attributes & ~codec_bits) |
                                                      static_cast<std::int16_t>(target));
  return true;
}

void renew_crc(ReadyBatch& batch) {
  std::array<std::byte, batch_header_bytes> bytes{};
  write_batch_header(batch.header, bytes);
  batch.header.crc = batch_crc(bytes, batch.body);
}

Checked<Buffer> opened(const BatchHeader& header, const Buffer& batch, const Codecs& codecs,
                       std::size_t opened_max) {
  auto section = open_records(header, batch, codecs, opened_max);
  if (section) return *std::move(section);
  if (section.error().code == Errc::too_large) return opens_too_large(section.error().detail);
  // Kafka has no code for a body that its codec cannot read.
  return refuse(ErrorCode::unknown_server_error, section.error().detail);
}

// `bytes` is exactly one V2 batch with that header. A body is opened in any case, for its records
// to be looked at, and stored as it came.
Checked<ReadyBatch> prepare_batch(const Buffer& bytes, const BatchHeader& header,
                                  const TopicConfig& config, const Codecs& codecs, Timestamp now,
                                  std::size_t opened_max) {
  ReadyBatch batch{.header = header, .body = bytes.slice(batch_header_bytes)};
  const auto section = opened(header, bytes, codecs, opened_max);
  if (!section) return std::unexpected(section.error());
  const auto newest = inspect(header, *section, config, now);
  if (!newest) return std::unexpected(newest.error());
  batch.header.max_timestamp = *newest;
  const auto target = stored_codec(config, header.compression());
  auto recompressed = recompress(batch, *section, target, config, codecs);
  if (!recompressed) return std::unexpected(std::move(recompressed.error()));
  bool changed = *recompressed || *newest != header.max_timestamp;
  if (config.message_timestamp_type == TimestampType::log_append_time) {
    batch.header.attributes |= log_append_time_bit;
    batch.header.max_timestamp = now;
    changed = true;
  }
  if (changed) renew_crc(batch);
  return batch;
}

Checked<std::vector<Buffer>> converted(const Buffer& records, const TopicConfig& config,
                                       const Codecs& codecs, std::size_t opened_max) {
  auto batches = up_convert(records, codecs, opened_max);
  if (!batches) {
    const auto& error = batches.error();
    if (error.code == Errc::too_large) return opens_too_large(error.detail);
    return refuse(error.code == Errc::unsupported ? ErrorCode::unsupported_compression_type
                                                  : ErrorCode::corrupt_message,
                  error.detail);
  }
  for (const auto& batch : *batches) {
    if (auto refusal = check_size(batch.size(), config)) return std::unexpected(*refusal);
  }
  return *std::move(batches);
}

}  // namespace

std::optional<Refusal> check_size(std::size_t bytes, const TopicConfig& config) {
  if (bytes <= static_cast<std::size_t>(config.max_message_bytes)) return std::nullopt;
  return Refusal{ErrorCode::message_too_large,
                 "a batch of " + std::to_string(bytes) + " bytes; max.message.bytes is " +
                     std::to_string(config.max_message_bytes),
                 {}};
}

Checked<Intake> check_intake(const std::optional<Buffer>& records, const TopicConfig& config,
                             const ProduceFeatures& features, const Codecs& codecs) {
  if (!records) return refuse(ErrorCode::invalid_record, "records are null");
  if (records->empty()) return refuse(ErrorCode::invalid_record, "no records");
  const auto head = read_entry_head(*records);
  if (!head && head.error().code == Errc::out_of_range) {
    return refuse(ErrorCode::invalid_record, head.error().detail);
  }
  if (!head) return refuse(ErrorCode::corrupt_message, head.error().detail);
  return head->magic == 2 ? check_batch(*records, config, features, codecs)
                          : check_legacy(*records, config, features);
}

std::size_t opened_limit(const Intake& intake, const TopicConfig& config) noexcept {
  const bool old = !intake.header || config.message_format < 2;
  return std::min(static_cast<std::size_t>(config.max_decompressed_message_bytes),
                  old ? opened_set_bytes_max : opened_bytes_max);
}

std::size_t kept_limit(const Intake& intake, const TopicConfig& config) noexcept {
  if (!intake.header) return opened_beside_bytes_max + 2 * intake.records.size();
  const auto produced = intake.header->compression();
  if (stored_codec(config, produced) == produced && config.message_format == 2) return 0;
  return std::min(static_cast<std::size_t>(config.max_message_bytes), opened_limit(intake, config));
}

Checked<std::vector<ReadyBatch>> prepare(const Intake& intake, const TopicConfig& config,
                                         const Codecs& codecs, Timestamp now,
                                         std::size_t opened_max) {
  if (intake.crc_unchecked && !verify_crc(intake.records)) return wrong_crc();
  opened_max = std::min(opened_max, opened_limit(intake, config));
  std::vector<Buffer> batches{intake.records};
  if (intake.header) {
    if (auto refusal = check_producer(*intake.header)) return std::unexpected(*refusal);
    if (auto refusal = check_shape(*intake.header, config)) return std::unexpected(*refusal);
  } else {
    auto converted_batches = converted(intake.records, config, codecs, opened_max);
    if (!converted_batches) return std::unexpected(std::move(converted_batches.error()));
    batches = *std::move(converted_batches);
  }
  std::vector<ReadyBatch> ready;
  ready.reserve(batches.size());
  std::size_t kept = 0;
  for (const auto& batch : batches) {
    const auto header = read_batch_header(batch);
    MR_ASSERT(header.has_value());  // checked, or made by us
    auto prepared = prepare_batch(batch, *header, config, codecs, now, opened_max);
    if (prepared && config.message_format < 2) {
      prepared = as_message_set(*std::move(prepared), config.message_format, codecs, opened_max);
    }
    if (!prepared) return std::unexpected(std::move(prepared.error()));
    kept += prepared->body.size() + (prepared->set ? prepared->set->bytes() : 0);
    if (batches.size() > 1 && kept > kept_limit(intake, config)) {
      return opens_too_large("the messages of a set would take more than " +
                             std::to_string(kept_limit(intake, config)) + " bytes in the log");
    }
    ready.push_back(*std::move(prepared));
  }
  return ready;
}

}  // namespace millrace::kernel
