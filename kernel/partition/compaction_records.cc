#include "kernel/partition/compaction_records.h"

#include <string>

#include <millrace/bytes.h>

namespace millrace::kernel {

namespace {

// Takes fields from the front of the bytes of a record; once one does not fit, nothing is right.
class Fields {
 public:
  explicit Fields(Bytes bytes) : left_(bytes) {}

  bool right() const noexcept { return right_; }
  Bytes left() const noexcept { return left_; }
  void skip(std::size_t bytes) {
    right_ = right_ && bytes <= left_.size();
    if (right_) left_ = left_.subspan(bytes);
  }
  template <class T>
  auto varint() {
    T value{};
    const auto bytes = load_uvarint(left_, value);
    right_ = right_ && bytes > 0;
    skip(bytes);
    return unzigzag(right_ ? value : T{});
  }
  std::optional<Bytes> nullable() {
    const auto size = varint<std::uint32_t>();
    if (size < 0) {
      right_ = right_ && size == -1;
      return std::nullopt;
    }
    const auto bytes = left_;
    skip(static_cast<std::size_t>(size));
    return right_ ? bytes.first(static_cast<std::size_t>(size)) : Bytes();
  }

 private:
  Bytes left_;
  bool right_ = true;
};

constexpr std::size_t attributes_bytes = 1;

}  // namespace

Result<std::vector<RawRecord>> raw_records(const BatchHeader& header, Bytes section) {
  std::vector<RawRecord> records;
  Fields rest(section);
  while (!rest.left().empty()) {
    const auto from = rest.left();
    const auto size = rest.varint<std::uint32_t>();
    const auto body = rest.left();
    rest.skip(static_cast<std::size_t>(size < 0 ? -1 : size));
    RawRecord record;
    if (rest.right()) {
      Fields fields(body.first(static_cast<std::size_t>(size)));
      fields.skip(attributes_bytes);
      record.timestamp_delta = fields.varint<std::uint64_t>();
      record.behind = fields.left();
      record.offset_delta = fields.varint<std::uint32_t>();
      record.key = fields.nullable();
      record.has_value = fields.nullable().has_value();
      record.whole = from.first(from.size() - rest.left().size());
      if (fields.right()) {
        records.push_back(record);
        continue;
      }
    }
    return Error{Errc::corrupt,
                 "record " + std::to_string(records.size()) + " has a field that ends behind it"};
  }
  if (records.size() == static_cast<std::size_t>(header.record_count)) return records;
  return Error{Errc::corrupt, std::to_string(records.size()) + " records, where the header has " +
                                  std::to_string(header.record_count)};
}

void RecordSection::append_uvarint(std::uint64_t value) {
  std::byte encoded[varlong_bytes_max];
  append({encoded, store_uvarint(encoded, value)});
}

void RecordSection::add(const RawRecord& record, Timestamp timestamp, Timestamp base) {
  const auto delta = static_cast<std::int64_t>(static_cast<std::uint64_t>(timestamp.ms) -
                                               static_cast<std::uint64_t>(base.ms));
  const auto size = attributes_bytes + uvarint_bytes(zigzag(delta)) + record.behind.size();
  append_uvarint(zigzag(static_cast<std::int32_t>(size)));
  bytes_.push_back(std::byte{0});
  append_uvarint(zigzag(delta));
  append(record.behind);
}

Buffer RecordSection::finish() && { return Buffer::copy_of(bytes_); }

}  // namespace millrace::kernel
