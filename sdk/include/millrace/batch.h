// Record batches: views, checks and builders of format V2, and of the message sets V0 and V1 that
// old clients send. The layouts are Kafka's (KIP-98 for V2, KIP-31/32 for V1).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include <millrace/codec.h>
#include <millrace/record.h>

namespace millrace {

/// Bytes of a V2 header: base offset up to and including the record count.
inline constexpr std::size_t batch_header_bytes = 61;
/// Base offset and length: what stands in front of the `length` bytes, in every format.
inline constexpr std::size_t batch_prefix_bytes = 12;
/// Offset of the magic byte, in every format.
inline constexpr std::size_t batch_magic_at = 16;

/// The header of a V2 batch, by Kafka's names.
struct BatchHeader {
  Offset base_offset{0};
  std::int32_t batch_length = 0;  ///< bytes behind this field
  Epoch partition_leader_epoch;
  std::int8_t magic = 2;
  std::uint32_t crc = 0;  ///< CRC-32C of everything from `attributes` to the end
  std::int16_t attributes = 0;
  std::int32_t last_offset_delta = 0;
  Timestamp base_timestamp;
  Timestamp max_timestamp;
  std::int64_t producer_id = -1;
  std::int16_t producer_epoch = -1;
  std::int32_t base_sequence = -1;
  std::int32_t record_count = 0;

  CompressionId compression() const noexcept {
    return static_cast<CompressionId>(attributes & 0x07);
  }
  bool log_append_time() const noexcept { return (attributes & 0x08) != 0; }
  bool transactional() const noexcept { return (attributes & 0x10) != 0; }
  bool control() const noexcept { return (attributes & 0x20) != 0; }
  bool has_delete_horizon() const noexcept { return (attributes & 0x40) != 0; }
  Offset last_offset() const noexcept { return base_offset + last_offset_delta; }
  std::size_t total_bytes() const noexcept {
    return batch_prefix_bytes + static_cast<std::size_t>(batch_length);
  }
};

/// Parses and bounds-checks a V2 header: magic, length against `batch.size()` (which may be
/// longer), counts that are not negative. The crc is checked by `verify_crc`.
Result<BatchHeader> read_batch_header(Bytes batch);
/// The same from the header alone: `bytes` has batch_header_bytes, the batch need not be all there.
Result<BatchHeader> parse_batch_header(Bytes bytes);
/// `into` has batch_header_bytes.
void write_batch_header(const BatchHeader& header, MutableBytes into) noexcept;
/// `batch` is exactly one V2 batch.
bool verify_crc(Bytes batch) noexcept;
/// The crc of a batch whose header and record section lie apart. `header` has batch_header_bytes.
std::uint32_t batch_crc(Bytes header, Bytes body) noexcept;

/// What every entry of a log starts with, whatever its format: enough to walk a file or a request.
struct EntryHead {
  Offset offset;  ///< base offset of a V2 batch; offset of the (last inner) message before
  std::size_t total_bytes = 0;
  std::int8_t magic = 0;
};
/// Errc::out_of_range: `bytes` ends within the entry (a torn tail, or a cut answer).
Result<EntryHead> read_entry_head(Bytes bytes);

/// Calls `each` for every record of the uncompressed record section of a V2 batch. Checks every
/// length against what is left, and that nothing is left behind the last record. Stops early when
/// `each` returns false. The view is valid during the call.
Result<> for_each_record(const BatchHeader& header, Bytes records,
                         const std::function<bool(const RecordView&)>& each);

/// Record section of a V2 batch, opened: shares `batch` when it is not compressed.
/// Errc::unsupported when its codec is not among `codecs`.
Result<Buffer> open_records(const BatchHeader& header, const Buffer& batch, const Codecs& codecs,
                            std::size_t output_bytes_max);

/// Builds one V2 batch. Offsets are 0..n-1 from `base_offset`.
class BatchBuilder {
 public:
  struct Settings {
    CompressionId compression = CompressionId::none;
    std::int64_t producer_id = -1;
    std::int16_t producer_epoch = -1;
    std::int32_t base_sequence = -1;
    bool transactional = false;
    bool control = false;
    Offset base_offset{0};
  };
  explicit BatchBuilder(Settings settings) : settings_(settings) {}

  void add(Timestamp timestamp, std::optional<Bytes> key, std::optional<Bytes> value,
           std::span<const HeaderView> headers = {});
  /// With explicit distance from the base offset, for conversions that keep gaps.
  void add_at(std::int32_t offset_delta, Timestamp timestamp, std::optional<Bytes> key,
              std::optional<Bytes> value, std::span<const HeaderView> headers = {});
  std::int32_t records() const noexcept { return records_; }
  std::size_t bytes() const noexcept { return section_.size(); }
  /// `codecs` may be empty when nothing is compressed. The builder is spent.
  Result<Buffer> finish(const Codecs& codecs = {}) &&;

 private:
  Settings settings_;
  std::vector<std::byte> section_;
  std::int32_t records_ = 0;
  std::int32_t last_delta_ = -1;
  Timestamp base_timestamp_;
  Timestamp max_timestamp_;
};

// ---- formats V0 and V1 ----

/// One message of a V0/V1 set, wrappers opened.
struct LegacyMessage {
  std::int8_t magic = 0;
  Offset offset;
  Timestamp timestamp;  ///< none in V0
  bool log_append_time = false;
  std::optional<Buffer> key;
  std::optional<Buffer> value;
};

/// All messages of the entry at the front of `set`, which may be a compressed wrapper. Checks
/// sizes, CRC-32 and nesting.
Result<std::vector<LegacyMessage>> open_legacy_entry(const Buffer& set, const Codecs& codecs,
                                                     std::size_t output_bytes_max);

/// Codec of the entry at the front of `set`, which has at least a whole message.
CompressionId legacy_compression(Bytes set) noexcept;

/// Builds one message set of format V0 or V1: plain messages, or one compressed wrapper.
class MessageSetBuilder {
 public:
  struct Settings {
    std::int8_t magic = 1;
    CompressionId compression = CompressionId::none;
    bool log_append_time = false;  ///< of V1: timestamps are the broker's
  };
  explicit MessageSetBuilder(Settings settings) : settings_(settings) {}

  void add(Offset offset, Timestamp timestamp, std::optional<Bytes> key,
           std::optional<Bytes> value);
  std::int32_t messages() const noexcept { return messages_; }
  std::size_t bytes() const noexcept { return set_.size(); }
  /// Moves every offset up, before it ends.
  void move_offsets(std::int64_t distance);
  /// Nothing when nothing was added. The builder is spent.
  Result<Buffer> finish(const Codecs& codecs) &&;

 private:
  Settings settings_;
  std::vector<std::byte> set_;
  std::int32_t messages_ = 0;
  Offset first_;
  Offset last_;
  Timestamp max_timestamp_;
};

/// A V0/V1 message set as V2 batches: one per compressed entry, compressed with the codec that it
/// used; uncompressed entries in a row share one. Offsets are renumbered from 0.
Result<std::vector<Buffer>> up_convert(const Buffer& message_set, const Codecs& codecs,
                                       std::size_t output_bytes_max);

}  // namespace millrace
