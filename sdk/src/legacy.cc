// Message sets V0 and V1: read, and turned into V2 batches.
#include <millrace/batch.h>

#include <algorithm>
#include <span>
#include <string>

#include <millrace/bytes.h>

namespace millrace {

namespace {

constexpr std::size_t crc_at = 12;
constexpr std::size_t attributes_at = 17;
constexpr std::size_t timestamp_at = 18;  // V1
constexpr std::size_t fields_at[] = {18, 26};

constexpr std::uint8_t codec_bits = 0x07;
constexpr std::uint8_t log_append_time_bit = 0x08;

// Uncompressed messages in a row share a batch of about this size when converted.
constexpr std::size_t joined_bytes_max = 256UL << 10;

Error corrupt(std::string what) { return {Errc::corrupt, std::move(what)}; }

// One message as it stands: a wrapper is not opened.
struct Message {
  LegacyMessage fields;
  CompressionId codec = CompressionId::none;
  std::size_t total_bytes = 0;
};

// A length and as many bytes at `at`, which moves behind them.
Result<std::optional<Buffer>> read_bytes(const Buffer& message, std::size_t& at) {
  if (message.size() - at < sizeof(std::int32_t)) return corrupt("message ends within a length");
  const auto size = load_be<std::int32_t>(message.data() + at);
  at += sizeof size;
  if (size == -1) return std::optional<Buffer>();
  if (size < -1 || static_cast<std::size_t>(size) > message.size() - at) {
    return corrupt("message has a field of " + std::to_string(size) + " bytes, but " +
                   std::to_string(message.size() - at) + " left");
  }
  auto bytes = message.slice(at, static_cast<std::size_t>(size));
  at += bytes.size();
  return std::optional<Buffer>(std::move(bytes));
}

// The message at the front of `set`.
Result<Message> read_message(const Buffer& set) {
  MR_TRY(const auto head, read_entry_head(set));
  if (head.magic > 1) {
    return corrupt("magic " + std::to_string(head.magic) + " within a V0 or V1 message set");
  }
  const auto bytes = set.slice(0, head.total_bytes);
  const auto expected = load_be<std::uint32_t>(bytes.data() + crc_at);
  const auto found = crc32(bytes.bytes().subspan(batch_magic_at));
  if (expected != found) {
    return corrupt("message at offset " + std::to_string(head.offset.value) + ": crc " +
                   std::to_string(found) + ", expected " + std::to_string(expected));
  }
  const auto attributes = load_be<std::uint8_t>(bytes.data() + attributes_at);

  Message message{.codec = static_cast<CompressionId>(attributes & codec_bits),
                  .total_bytes = head.total_bytes};
  auto& fields = message.fields;
  fields.magic = head.magic;
  fields.offset = head.offset;
  if (head.magic == 1) {
    fields.timestamp = {load_be<std::int64_t>(bytes.data() + timestamp_at)};
    fields.log_append_time = (attributes & log_append_time_bit) != 0;
  }
  auto at = fields_at[head.magic];
  MR_TRY(fields.key, read_bytes(bytes, at));
  MR_TRY(fields.value, read_bytes(bytes, at));
  if (at != bytes.size()) {
    return corrupt(std::to_string(bytes.size() - at) + " bytes behind the value of a message");
  }
  return message;
}

// The messages in a wrapper, with the offsets that they have on their own.
Result<std::vector<LegacyMessage>> read_inner(const Message& wrapper, const Codecs& codecs,
                                              std::size_t output_bytes_max) {
  if (!wrapper.fields.value) return corrupt("compressed message without a value");
  const auto* codec = codecs.find(wrapper.codec);
  if (!codec || wrapper.codec == CompressionId::zstd) {
    return Error{Errc::unsupported, "no codec for compression type " +
                                        std::to_string(static_cast<int>(wrapper.codec)) +
                                        " in format V" + std::to_string(wrapper.fields.magic)};
  }
  MR_TRY(const auto set, codec->decompress(*wrapper.fields.value, output_bytes_max));
  std::vector<LegacyMessage> messages;
  for (std::size_t at = 0; at < set.size();) {
    auto inner = read_message(set.slice(at));
    if (!inner) return corrupt("in a compressed message: " + inner.error().detail);
    if (inner->codec != CompressionId::none) return corrupt("a compressed message in another");
    if (inner->fields.magic != wrapper.fields.magic) {
      return corrupt("a message of format V" + std::to_string(inner->fields.magic) +
                     " in a compressed one of V" + std::to_string(wrapper.fields.magic));
    }
    messages.push_back(std::move(inner->fields));
    at += inner->total_bytes;
  }
  if (messages.empty()) return corrupt("compressed message with nothing in it");
  return messages;
}

// What is added to the offsets within a V1 wrapper: they are relative, and the wrapper has that of
// the last. Some producers leave the wrapper's at 0.
Result<std::int64_t> base_offset(const LegacyMessage& wrapper,
                                 std::span<const LegacyMessage> messages) {
  std::int64_t base = 0;
  std::int64_t sum = 0;
  bool fits = !__builtin_sub_overflow(wrapper.offset.value, messages.back().offset.value, &base);
  base = std::max<std::int64_t>(base, 0);
  for (const auto& inner : messages) {
    fits = fits && !__builtin_add_overflow(inner.offset.value, base, &sum);
  }
  if (!fits) return corrupt("offsets in a compressed message do not fit 64 bits");
  return base;
}

Result<std::vector<LegacyMessage>> open_message(Message message, const Codecs& codecs,
                                                std::size_t output_bytes_max) {
  std::vector<LegacyMessage> messages;
  if (message.codec == CompressionId::none) {
    messages.push_back(std::move(message.fields));
    return messages;
  }
  MR_TRY(messages, read_inner(message, codecs, output_bytes_max));
  if (message.fields.magic == 0) return messages;
  MR_TRY(const auto base, base_offset(message.fields, messages));
  for (auto& inner : messages) {
    inner.offset.value += base;
    if (message.fields.log_append_time) {
      inner.timestamp = message.fields.timestamp;
      inner.log_append_time = true;
    }
  }
  return messages;
}

std::optional<Bytes> view_of(const std::optional<Buffer>& buffer) {
  return buffer ? std::optional<Bytes>(buffer->bytes()) : std::nullopt;
}

}  // namespace

CompressionId legacy_compression(Bytes set) noexcept {
  MR_ASSERT(set.size() > attributes_at);
  return static_cast<CompressionId>(load_be<std::uint8_t>(set.data() + attributes_at) & codec_bits);
}

Result<std::vector<LegacyMessage>> open_legacy_entry(const Buffer& set, const Codecs& codecs,
                                                     std::size_t output_bytes_max) {
  MR_TRY(auto message, read_message(set));
  return open_message(std::move(message), codecs, output_bytes_max);
}

Result<std::vector<Buffer>> up_convert(const Buffer& message_set, const Codecs& codecs,
                                       std::size_t output_bytes_max) {
  std::vector<Buffer> batches;
  std::int64_t next_offset = 0;
  BatchBuilder builder({});
  const auto finish = [&]() -> Result<> {
    if (builder.records() == 0) return {};
    next_offset += builder.records();
    MR_TRY(auto batch, std::move(builder).finish(codecs));
    batches.push_back(std::move(batch));
    return {};
  };

  auto codec = CompressionId::none;
  for (std::size_t at = 0; at < message_set.size();) {
    MR_TRY(auto message, read_message(message_set.slice(at)));
    const bool joins = message.codec == CompressionId::none && codec == CompressionId::none &&
                       builder.bytes() + message.total_bytes <= joined_bytes_max;
    if (!joins) {
      MR_CHECK(finish());
      builder = BatchBuilder({.compression = message.codec, .base_offset = {next_offset}});
    }
    codec = message.codec;
    at += message.total_bytes;
    MR_TRY(const auto opened, open_message(std::move(message), codecs, output_bytes_max));
    for (const auto& one : opened) {
      builder.add(one.timestamp, view_of(one.key), view_of(one.value));
    }
  }
  MR_CHECK(finish());
  return batches;
}

}  // namespace millrace
