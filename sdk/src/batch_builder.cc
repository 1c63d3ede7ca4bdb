#include <millrace/batch.h>

#include <algorithm>
#include <limits>
#include <string>

#include <millrace/bytes.h>

namespace millrace {

namespace {

constexpr std::int16_t transactional_bit = 0x10;
constexpr std::int16_t control_bit = 0x20;

// Appends to a byte vector.
class Appender {
 public:
  explicit Appender(std::vector<std::byte>& into) : into_(into) {}

  void uvarint(std::uint64_t value) {
    std::byte encoded[varlong_bytes_max];
    bytes({encoded, store_uvarint(encoded, value)});
  }
  void varint(std::int32_t value) { uvarint(zigzag(value)); }
  void varlong(std::int64_t value) { uvarint(zigzag(value)); }
  void bytes(Bytes value) { into_.insert(into_.end(), value.begin(), value.end()); }
  void nullable(std::optional<Bytes> value) {
    if (!value) return varint(-1);
    varint(static_cast<std::int32_t>(value->size()));
    bytes(*value);
  }

 private:
  std::vector<std::byte>& into_;
};

std::size_t nullable_bytes(std::optional<Bytes> value) {
  if (!value) return 1;
  return uvarint_bytes(zigzag(static_cast<std::int32_t>(value->size()))) + value->size();
}

}  // namespace

void BatchBuilder::add(Timestamp timestamp, std::optional<Bytes> key, std::optional<Bytes> value,
                       std::span<const HeaderView> headers) {
  add_at(last_delta_ + 1, timestamp, key, value, headers);
}

void BatchBuilder::add_at(std::int32_t offset_delta, Timestamp timestamp, std::optional<Bytes> key,
                          std::optional<Bytes> value, std::span<const HeaderView> headers) {
  MR_ASSERT(offset_delta > last_delta_);
  if (records_ == 0) base_timestamp_ = timestamp;
  // The distance may wrap; readers add it with the same arithmetic.
  const auto timestamp_delta = static_cast<std::int64_t>(
      static_cast<std::uint64_t>(timestamp.ms) - static_cast<std::uint64_t>(base_timestamp_.ms));

  std::size_t bytes = 1 + uvarint_bytes(zigzag(timestamp_delta)) +
                      uvarint_bytes(zigzag(offset_delta)) + nullable_bytes(key) +
                      nullable_bytes(value) +
                      uvarint_bytes(zigzag(static_cast<std::int32_t>(headers.size())));
  for (const auto& header : headers) {
    bytes += nullable_bytes(as_bytes(header.key)) + nullable_bytes(header.value);
  }

  Appender out(section_);
  out.varint(static_cast<std::int32_t>(bytes));
  section_.push_back(std::byte{0});
  out.varlong(timestamp_delta);
  out.varint(offset_delta);
  out.nullable(key);
  out.nullable(value);
  out.varint(static_cast<std::int32_t>(headers.size()));
  for (const auto& header : headers) {
    out.nullable(as_bytes(header.key));
    out.nullable(header.value);
  }

  max_timestamp_ = std::max(max_timestamp_, timestamp);
  last_delta_ = offset_delta;
  ++records_;
}

Result<Buffer> BatchBuilder::finish(const Codecs& codecs) && {
  Buffer compressed;
  Bytes body = section_;
  if (settings_.compression != CompressionId::none) {
    const auto* codec = codecs.find(settings_.compression);
    if (!codec) {
      return Error{Errc::unsupported,
                   "no codec is loaded for " + std::string(name_of(settings_.compression))};
    }
    MR_TRY(compressed, codec->compress(body));
    body = compressed;
  }
  constexpr std::size_t length_max = std::numeric_limits<std::int32_t>::max();
  const auto length = batch_header_bytes - batch_prefix_bytes + body.size();
  if (length > length_max) {
    return Error{Errc::too_large, "a batch of " + std::to_string(length) + " bytes"};
  }

  auto attributes = static_cast<std::int16_t>(settings_.compression);
  if (settings_.transactional) attributes |= transactional_bit;
  if (settings_.control) attributes |= control_bit;
  BatchHeader header{.base_offset = settings_.base_offset,
                     .batch_length = static_cast<std::int32_t>(length),
                     .attributes = attributes,
                     .last_offset_delta = std::max(last_delta_, 0),
                     .base_timestamp = base_timestamp_,
                     .max_timestamp = max_timestamp_,
                     .producer_id = settings_.producer_id,
                     .producer_epoch = settings_.producer_epoch,
                     .base_sequence = settings_.base_sequence,
                     .record_count = records_};

  MutableBuffer batch(batch_header_bytes + body.size());
  write_batch_header(header, batch.space());
  header.crc = batch_crc(batch.space().first(batch_header_bytes), body);
  write_batch_header(header, batch.space());
  batch.filled(batch_header_bytes);
  batch.append(body);
  return std::move(batch).freeze();
}

}  // namespace millrace
