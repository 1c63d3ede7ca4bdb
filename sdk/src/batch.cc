// Reading V2 batches. Nothing is allocated by a length that the bytes have not backed up.
#include <millrace/batch.h>

#include <limits>
#include <string>

#include <millrace/bytes.h>

namespace millrace {

namespace {

// Positions in a V2 header.
constexpr std::size_t length_at = 8;
constexpr std::size_t leader_epoch_at = 12;
constexpr std::size_t crc_at = 17;
constexpr std::size_t attributes_at = 21;
constexpr std::size_t last_offset_delta_at = 23;
constexpr std::size_t base_timestamp_at = 27;
constexpr std::size_t max_timestamp_at = 35;
constexpr std::size_t producer_id_at = 43;
constexpr std::size_t producer_epoch_at = 51;
constexpr std::size_t base_sequence_at = 53;
constexpr std::size_t record_count_at = 57;

// The least that can stand behind the length, by format: V0, V1, V2.
constexpr std::int32_t length_min[] = {14, 22, batch_header_bytes - batch_prefix_bytes};

// Seven varints of one byte: length, attributes, timestamp, offset, key, value, headers.
constexpr std::size_t record_bytes_min = 7;

constexpr std::int64_t offset_max =
    std::numeric_limits<std::int64_t>::max() - std::numeric_limits<std::int32_t>::max() - 1;

Error corrupt(std::string what) { return {Errc::corrupt, std::move(what)}; }

// Timestamps may lie anywhere; their distance wraps, and adding it wraps back.
std::int64_t wrapping_add(std::int64_t a, std::int64_t b) noexcept {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}

// load_uvarint(), without a call for those of one byte or two, which nearly all of a record's are.
template <class T>
std::size_t load_short_uvarint(Bytes bytes, T& value) noexcept {
  if (bytes.empty()) return 0;
  const auto first = std::to_integer<T>(bytes[0]);
  if (first < 0x80) {
    value = first;
    return 1;
  }
  if (bytes.size() == 1) return 0;
  const auto second = std::to_integer<T>(bytes[1]);
  if (second >= 0x80) return load_uvarint(bytes, value);
  value = (first & 0x7f) | second << 7;
  return 2;
}

// Takes fields from the front of one record. The first that does not fit makes everything behind it
// fail.
class RecordReader {
 public:
  explicit RecordReader(Bytes bytes) noexcept : left_(bytes) {}

  bool ok() const noexcept { return ok_; }
  std::size_t left() const noexcept { return left_.size(); }

  std::int32_t varint() noexcept {
    std::uint32_t value = 0;
    advance(load_short_uvarint(left_, value));
    return unzigzag(value);
  }
  std::int64_t varlong() noexcept {
    std::uint64_t value = 0;
    advance(load_short_uvarint(left_, value));
    return unzigzag(value);
  }
  void skip_byte() noexcept { advance(left_.empty() ? 0 : 1); }
  Bytes bytes(std::int32_t size) noexcept {
    if (size < 0 || static_cast<std::size_t>(size) > left_.size()) {
      fail();
      return {};
    }
    const auto taken = left_.first(static_cast<std::size_t>(size));
    left_ = left_.subspan(taken.size());
    return taken;
  }
  std::optional<Bytes> nullable_bytes() noexcept {
    const auto size = varint();
    if (size == -1) return std::nullopt;
    return bytes(size);
  }

 private:
  void advance(std::size_t taken) noexcept {
    if (taken == 0) return fail();
    left_ = left_.subspan(taken);
  }
  void fail() noexcept {
    ok_ = false;
    left_ = {};
  }

  Bytes left_;
  bool ok_ = true;
};

// Fills `record` from the bytes behind its length, which are all its own.
bool read_record(const BatchHeader& header, Bytes bytes, RecordView& record) {
  RecordReader reader(bytes);
  reader.skip_byte();  // attributes: none are defined
  const auto timestamp_delta = reader.varlong();
  const auto offset_delta = reader.varint();
  record.offset = header.base_offset + offset_delta;
  record.timestamp = header.log_append_time()
                         ? header.max_timestamp
                         : Timestamp{wrapping_add(header.base_timestamp.ms, timestamp_delta)};
  record.key = reader.nullable_bytes();
  record.value = reader.nullable_bytes();
  const auto headers = reader.varint();
  record.headers.clear();
  // Each header takes two bytes at least.
  if (headers < 0 || static_cast<std::size_t>(headers) > reader.left() / 2) return false;
  for (std::int32_t at = 0; at < headers; ++at) {
    const auto key = reader.bytes(reader.varint());
    const auto value = reader.nullable_bytes();
    record.headers.push_back({as_text(key), value});
  }
  return reader.ok() && reader.left() == 0 && offset_delta >= 0;
}

}  // namespace

Result<EntryHead> read_entry_head(Bytes bytes) {
  if (bytes.size() <= batch_magic_at) {
    return Error{Errc::out_of_range,
                 "entry ends within its head, after " + std::to_string(bytes.size()) + " bytes"};
  }
  const auto length = load_be<std::int32_t>(bytes.data() + length_at);
  const auto magic = load_be<std::int8_t>(bytes.data() + batch_magic_at);
  if (magic < 0 || magic > 2)
    return corrupt("magic " + std::to_string(magic) + ", expected 0 to 2");
  if (length < length_min[magic]) {
    return corrupt("length " + std::to_string(length) + " of a format V" + std::to_string(magic) +
                   " entry, expected at least " + std::to_string(length_min[magic]));
  }
  const EntryHead head{.offset = {load_be<std::int64_t>(bytes.data())},
                       .total_bytes = batch_prefix_bytes + static_cast<std::size_t>(length),
                       .magic = magic};
  if (head.total_bytes > bytes.size()) {
    return Error{Errc::out_of_range, "entry of " + std::to_string(head.total_bytes) +
                                         " bytes ends after " + std::to_string(bytes.size())};
  }
  return head;
}

Result<BatchHeader> read_batch_header(Bytes batch) {
  MR_CHECK(read_entry_head(batch));
  return parse_batch_header(batch);
}

Result<BatchHeader> parse_batch_header(Bytes bytes) {
  if (bytes.size() < batch_header_bytes) {
    return Error{Errc::out_of_range,
                 "batch ends within its header, after " + std::to_string(bytes.size()) + " bytes"};
  }
  const auto* at = bytes.data();
  const BatchHeader header{.base_offset = {load_be<std::int64_t>(at)},
                           .batch_length = load_be<std::int32_t>(at + length_at),
                           .partition_leader_epoch = {load_be<std::int32_t>(at + leader_epoch_at)},
                           .magic = load_be<std::int8_t>(at + batch_magic_at),
                           .crc = load_be<std::uint32_t>(at + crc_at),
                           .attributes = load_be<std::int16_t>(at + attributes_at),
                           .last_offset_delta = load_be<std::int32_t>(at + last_offset_delta_at),
                           .base_timestamp = {load_be<std::int64_t>(at + base_timestamp_at)},
                           .max_timestamp = {load_be<std::int64_t>(at + max_timestamp_at)},
                           .producer_id = load_be<std::int64_t>(at + producer_id_at),
                           .producer_epoch = load_be<std::int16_t>(at + producer_epoch_at),
                           .base_sequence = load_be<std::int32_t>(at + base_sequence_at),
                           .record_count = load_be<std::int32_t>(at + record_count_at)};
  if (header.magic != 2) {
    return corrupt("magic " + std::to_string(header.magic) + ", expected a V2 batch");
  }
  if (header.batch_length < length_min[2]) {
    return corrupt("batch length " + std::to_string(header.batch_length));
  }
  if (header.base_offset < Offset{0} || header.base_offset > Offset{offset_max}) {
    return corrupt("base offset " + std::to_string(header.base_offset.value));
  }
  if (header.last_offset_delta < 0) {
    return corrupt("last offset delta " + std::to_string(header.last_offset_delta));
  }
  if (header.record_count < 0)
    return corrupt("record count " + std::to_string(header.record_count));
  return header;
}

void write_batch_header(const BatchHeader& header, MutableBytes into) noexcept {
  MR_ASSERT(into.size() >= batch_header_bytes);
  auto* at = into.data();
  store_be(at, header.base_offset.value);
  store_be(at + length_at, header.batch_length);
  store_be(at + leader_epoch_at, header.partition_leader_epoch.value);
  store_be(at + batch_magic_at, header.magic);
  store_be(at + crc_at, header.crc);
  store_be(at + attributes_at, header.attributes);
  store_be(at + last_offset_delta_at, header.last_offset_delta);
  store_be(at + base_timestamp_at, header.base_timestamp.ms);
  store_be(at + max_timestamp_at, header.max_timestamp.ms);
  store_be(at + producer_id_at, header.producer_id);
  store_be(at + producer_epoch_at, header.producer_epoch);
  store_be(at + base_sequence_at, header.base_sequence);
  store_be(at + record_count_at, header.record_count);
}

std::uint32_t batch_crc(Bytes header, Bytes body) noexcept {
  return crc32c(body, crc32c(header.subspan(attributes_at)));
}

bool verify_crc(Bytes batch) noexcept {
  return batch.size() >= batch_header_bytes &&
         load_be<std::uint32_t>(batch.data() + crc_at) == crc32c(batch.subspan(attributes_at));
}

Result<> for_each_record(const BatchHeader& header, Bytes records,
                         const std::function<bool(const RecordView&)>& each) {
  if (static_cast<std::size_t>(header.record_count) > records.size() / record_bytes_min) {
    return corrupt("batch says " + std::to_string(header.record_count) + " records, but has " +
                   std::to_string(records.size()) + " bytes of them");
  }
  const auto all_bytes = records.size();
  RecordView record;
  for (std::int32_t index = 0; index < header.record_count; ++index) {
    std::uint32_t encoded = 0;
    const auto prefix = load_short_uvarint(records, encoded);
    const auto length = unzigzag(encoded);
    const auto left = records.size() - prefix;
    if (prefix == 0 || length < 0 || static_cast<std::size_t>(length) > left ||
        !read_record(header, records.subspan(prefix, static_cast<std::size_t>(length)), record)) {
      return corrupt("record " + std::to_string(index) + " of " +
                     std::to_string(header.record_count) + " is malformed, at byte " +
                     std::to_string(all_bytes - records.size()) + " of the record section");
    }
    records = records.subspan(prefix + static_cast<std::size_t>(length));
    if (!each(record)) return {};
  }
  if (!records.empty()) {
    return corrupt(std::to_string(records.size()) + " bytes behind the last of " +
                   std::to_string(header.record_count) + " records");
  }
  return {};
}

Result<Buffer> open_records(const BatchHeader& header, const Buffer& batch, const Codecs& codecs,
                            std::size_t output_bytes_max) {
  MR_ASSERT(header.total_bytes() <= batch.size());
  auto section = batch.slice(batch_header_bytes, header.total_bytes() - batch_header_bytes);
  if (header.compression() == CompressionId::none) return section;
  const auto* codec = codecs.find(header.compression());
  if (!codec) {
    return Error{Errc::unsupported, "no codec is loaded for compression type " +
                                        std::to_string(static_cast<int>(header.compression())) +
                                        " (" + std::string(name_of(header.compression())) + ")"};
  }
  return codec->decompress(section, output_bytes_max);
}

}  // namespace millrace
