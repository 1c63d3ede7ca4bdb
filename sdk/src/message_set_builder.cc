// Writing message sets V0 and V1.
#include <millrace/batch.h>

#include <algorithm>
#include <limits>
#include <string>

#include <millrace/bytes.h>

namespace millrace {

namespace {

constexpr std::uint8_t log_append_time_bit = 0x08;
constexpr std::size_t size_at = 8;
constexpr std::size_t crc_at = 12;
// What stands around key and value: offset, size, crc, magic, attributes, timestamp, two lengths.
constexpr std::size_t overhead_bytes[] = {26, 34};

std::size_t size_of(std::optional<Bytes> bytes) { return bytes ? bytes->size() : 0; }

std::byte* store_nullable(std::byte* at, std::optional<Bytes> bytes) {
  store_be(at, bytes ? static_cast<std::int32_t>(bytes->size()) : std::int32_t{-1});
  at += sizeof(std::int32_t);
  return bytes ? std::ranges::copy(*bytes, at).out : at;
}

struct Message {
  std::int8_t magic = 1;
  std::uint8_t attributes = 0;
  Offset offset;
  Timestamp timestamp;
  std::optional<Bytes> key;
  std::optional<Bytes> value;
};

void append(std::vector<std::byte>& set, const Message& message) {
  const auto start = set.size();
  const auto bytes = overhead_bytes[message.magic] + size_of(message.key) + size_of(message.value);
  set.resize(start + bytes);
  auto* const front = set.data() + start;
  store_be(front, message.offset.value);
  store_be(front + size_at, static_cast<std::int32_t>(bytes - batch_prefix_bytes));
  auto* at = front + batch_magic_at;
  store_be(at++, message.magic);
  store_be(at++, message.attributes);
  if (message.magic == 1) {
    store_be(at, message.timestamp.ms);
    at += sizeof message.timestamp.ms;
  }
  at = store_nullable(at, message.key);
  store_nullable(at, message.value);
  store_be(front + crc_at, crc32({front + batch_magic_at, bytes - batch_magic_at}));
}

// Clients of format V0 count the frame's magic number into the checksum of its header, and refuse
// frames in which it is right (KAFKA-3160).
Buffer with_v0_checksum(const Buffer& frame) {
  constexpr std::size_t flags_at = 4;
  constexpr std::size_t header_bytes_min = 7;
  constexpr std::size_t content_size_bytes = 8;
  MR_ASSERT(frame.size() >= header_bytes_min);
  const bool has_content_size = (frame.data()[flags_at] & std::byte{0x08}) != std::byte{0};
  const auto checksum_at = header_bytes_min - 1 + (has_content_size ? content_size_bytes : 0);
  MR_ASSERT(frame.size() > checksum_at);
  MutableBuffer copy(frame.size());
  copy.append(frame);
  const auto hash = xxh32_of_few(frame.bytes().first(checksum_at));
  copy.data()[checksum_at] = static_cast<std::byte>(hash >> 8 & 0xff);
  return std::move(copy).freeze();
}

// V0 has no times, and the bit no meaning there.
std::uint8_t kind_of_time(const MessageSetBuilder::Settings& settings) {
  return settings.log_append_time && settings.magic == 1 ? log_append_time_bit : 0;
}

}  // namespace

// Within a V1 wrapper offsets count from its first message.
void MessageSetBuilder::add(Offset offset, Timestamp timestamp, std::optional<Bytes> key,
                            std::optional<Bytes> value) {
  if (messages_++ == 0) first_ = offset;
  last_ = std::max(last_, offset);
  max_timestamp_ = std::max(max_timestamp_, timestamp);
  const bool relative = settings_.magic == 1 && settings_.compression != CompressionId::none;
  append(set_, {.magic = settings_.magic,
                .attributes = kind_of_time(settings_),
                .offset = relative ? Offset{offset - first_} : offset,
                .timestamp = timestamp,
                .key = key,
                .value = value});
}

void MessageSetBuilder::move_offsets(std::int64_t distance) {
  first_ = first_ + distance;
  last_ = last_ + distance;
  if (settings_.magic == 1 && settings_.compression != CompressionId::none) return;
  for (std::size_t at = 0; at < set_.size();) {
    auto* const message = set_.data() + at;
    store_be(message, load_be<std::int64_t>(message) + distance);
    at += batch_prefix_bytes + static_cast<std::size_t>(load_be<std::int32_t>(message + size_at));
  }
}

Result<Buffer> MessageSetBuilder::finish(const Codecs& codecs) && {
  if (messages_ == 0 || settings_.compression == CompressionId::none) return Buffer::copy_of(set_);
  const auto* codec = codecs.find(settings_.compression);
  if (!codec || settings_.compression == CompressionId::zstd) {
    return Error{Errc::unsupported, "no codec for " + std::string(name_of(settings_.compression)) +
                                        " in format V" + std::to_string(settings_.magic)};
  }
  MR_TRY(auto compressed, codec->compress(set_));
  if (compressed.size() > std::numeric_limits<std::int32_t>::max() / 2) {
    return Error{Errc::too_large,
                 "a message set of " + std::to_string(compressed.size()) + " bytes"};
  }
  if (settings_.magic == 0 && settings_.compression == CompressionId::lz4) {
    compressed = with_v0_checksum(compressed);
  }
  const auto codec_bits = static_cast<std::uint8_t>(settings_.compression);
  std::vector<std::byte> wrapper;
  append(wrapper, {.magic = settings_.magic,
                   .attributes = static_cast<std::uint8_t>(codec_bits | kind_of_time(settings_)),
                   .offset = last_,
                   .timestamp = max_timestamp_,
                   .value = compressed.bytes()});
  return Buffer::copy_of(wrapper);
}

}  // namespace millrace
