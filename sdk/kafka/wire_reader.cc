#include <millrace/kafka/wire_reader.h>

#include <cstring>
#include <string>

namespace millrace::kafka {

void WireReader::fail(const char* field) noexcept {
  if (!ok()) return;
  bad_field_ = field;
  bad_at_ = position();
  at_ = end_;
}

Result<> WireReader::finish() const {
  if (ok()) return {};
  return Error{Errc::corrupt, std::string("truncated or malformed field ") + bad_field_ +
                                  " at byte " + std::to_string(bad_at_)};
}

void WireReader::read(Uuid& value, const char* field) {
  if (left() < sizeof value.bytes) [[unlikely]]
    return fail(field);
  std::memcpy(value.bytes.data(), at_, sizeof value.bytes);
  at_ += sizeof value.bytes;
}

void WireReader::read_long_uvarint(std::uint32_t& value, const char* field) {
  const auto bytes = load_uvarint(Bytes(at_, end_), value);
  if (bytes == 0) {
    value = 0;
    return fail(field);
  }
  at_ += bytes;
}

Bytes WireReader::read_sized(bool small, const char* field) {
  std::int64_t size = -1;
  if (flexible_) {
    std::uint32_t size_plus_one = 0;
    read_uvarint(size_plus_one, field);
    size = std::int64_t{size_plus_one} - 1;
  } else if (small) {
    std::int16_t size16 = -1;
    read(size16, field);
    size = size16;
  } else {
    std::int32_t size32 = -1;
    read(size32, field);
    size = size32;
  }
  if (size == -1) return {};
  const auto size_max = small ? std::min(left(), string_bytes_max) : left();
  if (size < 0 || static_cast<std::uint64_t>(size) > size_max) {
    fail(field);
    return {};
  }
  const Bytes bytes(at_, static_cast<std::size_t>(size));
  at_ += size;
  return bytes;
}

void WireReader::read(std::string_view& value, const char* field) {
  const auto bytes = read_sized(true, field);
  if (!bytes.data()) fail(field);
  value = as_text(bytes);
}

void WireReader::read(std::optional<std::string_view>& value, const char* field, bool nullable) {
  const auto bytes = read_sized(true, field);
  value.reset();
  if (bytes.data()) {
    value = as_text(bytes);
  } else if (!nullable) {
    fail(field);
  }
}

void WireReader::read(Buffer& value, const char* field) {
  const auto bytes = read_sized(false, field);
  if (!bytes.data()) return fail(field);
  value = frame_.slice_of(bytes);
}

void WireReader::read(std::optional<Buffer>& value, const char* field, bool nullable) {
  const auto bytes = read_sized(false, field);
  value.reset();
  if (bytes.data()) {
    value = frame_.slice_of(bytes);
  } else if (!nullable) {
    fail(field);
  }
}

void WireReader::read(Payload& value, const char* field) {
  Buffer buffer;
  read(buffer, field);
  value = Payload(std::move(buffer));
}

void WireReader::read(std::optional<Payload>& value, const char* field, bool nullable) {
  std::optional<Buffer> buffer;
  read(buffer, field, nullable);
  value.reset();
  if (buffer) value.emplace(*std::move(buffer));
}

std::size_t WireReader::read_count(std::size_t element_bytes_min, std::size_t element_size,
                                   const char* field, bool& null) {
  std::int64_t count = 0;
  if (flexible_) {
    std::uint32_t count_plus_one = 1;
    read_uvarint(count_plus_one, field);
    count = std::int64_t{count_plus_one} - 1;
  } else {
    std::int32_t count32 = 0;
    read(count32, field);
    count = count32;
  }
  if (!ok()) return 0;
  null = count == -1;
  if (null) return 0;
  const auto elements = static_cast<std::uint64_t>(count);
  if (count < 0 || elements > left() / element_bytes_min ||
      elements > (decoded_bytes_max - decoded_bytes_) / element_size) {
    fail(field);
    return 0;
  }
  decoded_bytes_ += elements * element_size;
  return elements;
}

bool WireReader::present(const char* field, bool tagged) {
  std::int8_t mark = 0;
  read(mark, field);
  if (mark == 1) return ok();
  if (mark != (tagged ? 0 : -1)) fail(field);
  return false;
}

void WireReader::keep_tags(UnknownTags& unknown) {
  for (TagReader tags(*this); tags.next();) tags.keep(unknown);
}

bool TagReader::next() {
  close();
  if (left_ == 0 || !in_.ok()) return false;
  --left_;
  std::uint32_t tag = 0;
  std::uint32_t size = 0;
  in_.read_uvarint(tag, "tag");
  in_.read_uvarint(size, "tagged field size");
  if (tag <= tag_ || size > in_.left()) in_.fail("tagged field");
  if (!in_.ok()) return false;
  tag_ = tag;
  outer_end_ = in_.end_;
  in_.end_ = in_.at_ + size;
  return true;
}

void TagReader::keep(UnknownTags& unknown) {
  in_.decoded_bytes_ += sizeof(UnknownTag);
  if (in_.decoded_bytes_ > decoded_bytes_max) return in_.fail("tagged field");
  unknown.push_back({tag(), in_.frame_.slice_of(Bytes(in_.at_, in_.end_))});
  in_.at_ = in_.end_;
}

void TagReader::close() {
  if (!outer_end_) return;
  if (in_.at_ != in_.end_) in_.fail("tagged field");
  if (in_.ok()) in_.end_ = outer_end_;
  outer_end_ = nullptr;
}

}  // namespace millrace::kafka
