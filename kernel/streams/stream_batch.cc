#include "kernel/streams/stream_batch.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include <millrace/bytes.h>

namespace millrace::kernel {

namespace {

constexpr std::size_t first_capacity = 16UL << 10;
// A header's own lengths.
constexpr std::size_t header_overhead_max = 2 * varint_bytes_max;

// Writes at rising positions of a block that has room.
class Writer {
 public:
  explicit Writer(std::byte* at) noexcept : at_(at) {}

  std::byte* at() const noexcept { return at_; }
  void uvarint(std::uint64_t value) noexcept {
    while (value >= 0x80) {
      *at_++ = static_cast<std::byte>(value | 0x80);
      value >>= 7;
    }
    *at_++ = static_cast<std::byte>(value);
  }
  void varint(std::int32_t value) noexcept { uvarint(zigzag(value)); }
  void varlong(std::int64_t value) noexcept { uvarint(zigzag(value)); }
  void byte(std::byte value) noexcept { *at_++ = value; }
  void bytes(Bytes value) noexcept {
    if (!value.empty()) std::memcpy(at_, value.data(), value.size());
    at_ += value.size();
  }
  void nullable(std::optional<Bytes> value) noexcept {
    if (!value) return varint(-1);
    varint(static_cast<std::int32_t>(value->size()));
    bytes(*value);
  }

 private:
  std::byte* at_;
};

std::size_t bytes_of_uvarint(std::uint64_t value) noexcept {
  return (static_cast<std::size_t>(std::bit_width(value | 1)) + 6) / 7;
}
std::size_t bytes_of_varint(std::int32_t value) noexcept { return bytes_of_uvarint(zigzag(value)); }

std::size_t nullable_bytes(std::optional<Bytes> value) noexcept {
  if (!value) return 1;
  return bytes_of_varint(static_cast<std::int32_t>(value->size())) + value->size();
}

}  // namespace

std::size_t content_bytes(std::optional<Bytes> key, std::optional<Bytes> value,
                          std::span<const HeaderView> headers) noexcept {
  auto bytes = (key ? key->size() : 0) + (value ? value->size() : 0);
  for (const auto& header : headers) {
    bytes += header_overhead_max + header.key.size() + (header.value ? header.value->size() : 0);
  }
  return bytes;
}

void StreamBatch::make_room(std::size_t bytes) {
  if (bytes_.capacity() - bytes_.size() >= bytes) return;
  const auto wanted = std::max({first_capacity, bytes_.size() + bytes, 2 * bytes_.capacity()});
  MutableBuffer larger(wanted);
  larger.append(bytes_.bytes());
  bytes_ = std::move(larger);
}

void StreamBatch::add(Timestamp timestamp, std::optional<Bytes> key, std::optional<Bytes> value,
                      std::span<const HeaderView> headers) {
  const auto content = content_bytes(key, value, headers);
  make_room(batch_header_bytes + record_overhead_max + content);
  if (records_ == 0) {
    if (bytes_.size() == 0) bytes_.filled(batch_header_bytes);
    base_timestamp_ = timestamp;
    max_timestamp_ = {};
  }
  // The distance may wrap; readers add it with the same arithmetic.
  const auto delta = static_cast<std::int64_t>(static_cast<std::uint64_t>(timestamp.ms) -
                                               static_cast<std::uint64_t>(base_timestamp_.ms));
  std::size_t bytes = 1 + bytes_of_uvarint(zigzag(delta)) + bytes_of_varint(records_) +
                      nullable_bytes(key) + nullable_bytes(value) +
                      bytes_of_varint(static_cast<std::int32_t>(headers.size()));
  for (const auto& header : headers) {
    bytes += nullable_bytes(as_bytes(header.key)) + nullable_bytes(header.value);
  }

  auto* begin = bytes_.space().data();
  Writer out(begin);
  out.varint(static_cast<std::int32_t>(bytes));
  out.byte(std::byte{0});  // attributes: none are defined
  out.varlong(delta);
  out.varint(records_);
  out.nullable(key);
  out.nullable(value);
  out.varint(static_cast<std::int32_t>(headers.size()));
  for (const auto& header : headers) {
    out.nullable(as_bytes(header.key));
    out.nullable(header.value);
  }
  bytes_.filled(static_cast<std::size_t>(out.at() - begin));
  max_timestamp_ = std::max(max_timestamp_, timestamp);
  ++records_;
}

void StreamBatch::rewind(const Mark& mark) noexcept {
  bytes_.cut(mark.bytes);
  records_ = mark.records;
  max_timestamp_ = mark.max_timestamp;
}

Buffer StreamBatch::finish(const Producer& producer) {
  MR_ASSERT(records_ > 0);
  BatchHeader header{.base_offset = Offset{0},
                     .batch_length = static_cast<std::int32_t>(bytes_.size() - batch_prefix_bytes),
                     .last_offset_delta = records_ - 1,
                     .base_timestamp = base_timestamp_,
                     .max_timestamp = max_timestamp_,
                     .producer_id = producer.id,
                     .producer_epoch = producer.epoch,
                     .base_sequence = producer.sequence,
                     .record_count = records_};
  const auto front = MutableBytes(bytes_.data(), batch_header_bytes);
  write_batch_header(header, front);
  header.crc = batch_crc(front, bytes_.bytes().subspan(batch_header_bytes));
  write_batch_header(header, front);
  records_ = 0;
  return std::move(bytes_).freeze();
}

}  // namespace millrace::kernel
