// What a producer sends for one partition, under topics of every kind. What was accepted is a batch
// that readers accept.
#include "codecs.h"
#include "kernel/partition/batch_validator.h"

using namespace millrace;

namespace {

Codecs all_codecs() {
  Codecs codecs;
  for (const auto& codec : fuzz::loaded_codecs()) codecs.add(*codec);
  return codecs;
}

kernel::TopicConfig config_of(std::uint8_t choice) {
  kernel::TopicConfig config;
  if (choice & 1) config.cleanup_compact = true;
  if (choice & 2) config.message_timestamp_type = kernel::TimestampType::log_append_time;
  config.message_format = static_cast<std::int8_t>((choice >> 2) % 3);
  if (choice & 16) config.compression_type = static_cast<CompressionId>((choice >> 5) % 5);
  return config;
}

void check_stored(const kernel::ReadyBatch& batch, const Codecs& codecs) {
  if (batch.set) return;  // its bytes are made when it gets its offsets
  const auto opened = [&]() -> Result<Buffer> {
    const auto* codec = codecs.find(batch.header.compression());
    if (batch.header.compression() == CompressionId::none) return batch.body;
    return codec->decompress(batch.body, kernel::opened_bytes_max);
  }();
  // A batch that nothing had to be opened of is checked by its checksum alone.
  if (!opened) return;
  std::int32_t records = 0;
  const auto walked = for_each_record(batch.header, *opened, [&](const RecordView&) {
    ++records;
    return true;
  });
  if (walked) fuzz::require(records == batch.header.record_count, "all records are there");
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const auto codecs = all_codecs();
  fuzz::Input input(data, size);
  const auto config = config_of(input.byte());
  const ProduceFeatures features{.legacy_formats = (input.byte() & 1) != 0, .zstd = true};
  const auto intake = kernel::check_intake(input.buffer(), config, features, codecs);
  if (!intake) return 0;
  const auto ready = kernel::prepare(*intake, config, codecs, Timestamp{1'700'000'000'000});
  if (!ready) return 0;
  for (const auto& batch : *ready) check_stored(batch, codecs);
  return 0;
}
