#include "kernel/partition/conversion.h"

#include <optional>
#include <utility>

#include "kernel/partition/payload_reader.h"

namespace millrace::kernel {

namespace {

std::optional<Bytes> view_of(const std::optional<Buffer>& buffer) {
  return buffer ? std::optional<Bytes>(buffer->bytes()) : std::nullopt;
}

Error zstd_is_too_new() {
  return {Errc::unsupported, "a batch is compressed with zstd, which old formats do not have"};
}

// What one batch has become, and the first offset that is not in it.
struct Part {
  Buffer set;
  Offset next;
};

// Adds the records from `from` on; once there are enough, the next one is where to go on.
Result<Offset> add_records(const BatchHeader& header, Bytes section, Offset from,
                           MessageSetBuilder& set) {
  auto next = header.last_offset() + 1;
  MR_CHECK(for_each_record(header, section, [&](const RecordView& record) {
    if (record.offset < from) return true;
    if (set.bytes() >= converted_bytes_max) {
      next = record.offset;
      return false;
    }
    set.add(record.offset, record.timestamp, record.key, record.value);
    return true;
  }));
  return next;
}

Result<Part> convert_batch(const Buffer& bytes, const BatchHeader& header, std::int8_t magic,
                           Offset from, const Codecs& codecs, std::size_t opened_max) {
  if (header.control()) return Part{.set = {}, .next = header.last_offset() + 1};
  if (header.compression() == CompressionId::zstd) return zstd_is_too_new();
  MR_TRY(auto section, open_records(header, bytes, codecs, opened_max));
  MessageSetBuilder set({.magic = magic,
                         .compression = header.compression(),
                         .log_append_time = header.log_append_time()});
  MR_TRY(const auto next, add_records(header, section, from, set));
  section = {};  // before there is more
  MR_TRY(auto made, std::move(set).finish(codecs));
  return Part{.set = std::move(made), .next = next};
}

// Whole: that its messages have been taken apart costs more than what they become.
Result<Buffer> convert_set(const Buffer& bytes, std::int8_t magic, Offset from,
                           const Codecs& codecs, std::size_t opened_max) {
  MR_TRY(const auto messages, open_legacy_entry(bytes, codecs, opened_max));
  MessageSetBuilder set({.magic = magic, .compression = legacy_compression(bytes)});
  for (const auto& message : messages) {
    if (message.offset < from) continue;
    set.add(message.offset, message.timestamp, view_of(message.key), view_of(message.value));
  }
  return std::move(set).finish(codecs);
}

Result<Part> convert(const Payload& batches, const FoundBatch& at, std::int8_t newest_magic,
                     Offset from, const Codecs& codecs, std::size_t opened_max) {
  MR_TRY(auto bytes, copy_range(batches, at.position, at.header.total_bytes()));
  if (at.header.magic == 2) {
    return convert_batch(bytes, at.header, newest_magic, from, codecs, opened_max);
  }
  Part part{.set = std::move(bytes), .next = at.header.last_offset() + 1};
  if (at.header.magic > newest_magic) {
    MR_TRY(part.set, convert_set(part.set, newest_magic, from, codecs, opened_max));
  }
  return part;
}

std::unexpected<Refusal> refuse(ErrorCode error, std::string message) {
  return std::unexpected(Refusal{error, std::move(message), {}});
}

}  // namespace

Result<Converted> down_convert(const Payload& batches, std::int8_t newest_magic, Offset from,
                               const Codecs& codecs, std::size_t opened_max) {
  Converted converted{.records = {}, .next = from};
  Result<> failed;
  MR_CHECK(for_each_batch(batches, [&](const FoundBatch& batch) {
    auto part = convert(batches, batch, newest_magic, from, codecs, opened_max);
    if (!part) {
      failed = part.error();
      return false;
    }
    converted.records.add(std::move(part->set));
    converted.next = part->next;
    return part->next > batch.header.last_offset() &&
           converted.records.size() < converted_bytes_max;
  }));
  if (!failed && converted.next == from) return failed.error();
  return converted;
}

Checked<ReadyBatch> as_message_set(ReadyBatch batch, std::int8_t magic, const Codecs& codecs,
                                   std::size_t opened_max) {
  auto& header = batch.header;
  if (header.producer_id >= 0) {
    return refuse(ErrorCode::unsupported_for_message_format,
                  "records of idempotent producers need format V2; the topic's "
                  "message.format.version keeps it at V" +
                      std::to_string(magic));
  }
  if (header.compression() == CompressionId::zstd) {
    return refuse(ErrorCode::unsupported_compression_type, zstd_is_too_new().detail);
  }
  auto section = batch.body;
  if (header.compression() != CompressionId::none) {
    const auto* codec = codecs.find(header.compression());
    MR_ASSERT(codec);  // checked, or chosen by us
    auto opened = codec->decompress(batch.body, opened_max);
    if (!opened) return refuse(ErrorCode::unknown_server_error, opened.error().detail);
    section = *std::move(opened);
  }
  MessageSetBuilder set({.magic = magic,
                         .compression = header.compression(),
                         .log_append_time = magic == 1 && header.log_append_time()});
  std::int64_t offset = 0;
  const auto walked = for_each_record(header, section, [&](const RecordView& record) {
    set.add({offset++}, record.timestamp, record.key, record.value);
    return true;
  });
  if (!walked) return refuse(ErrorCode::invalid_record, walked.error().detail);
  header.magic = magic;
  batch.body = {};
  batch.set.emplace(std::move(set));
  return batch;
}

Checked<std::vector<ReadyBatch>> place_message_sets(std::vector<ReadyBatch> batches, Offset base,
                                                    const TopicConfig& config,
                                                    const Codecs& codecs) {
  for (auto& batch : batches) {
    batch.set->move_offsets(base.value);
    auto body = std::move(*batch.set).finish(codecs);
    if (!body) return refuse(error_code_of(body.error()), body.error().detail);
    if (auto refusal = check_size(body->size(), config)) return std::unexpected(*refusal);
    batch.body = *std::move(body);
    batch.set.reset();
    base = base + batch.header.last_offset_delta + 1;
  }
  return batches;
}

}  // namespace millrace::kernel
