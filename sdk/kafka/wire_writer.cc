#include <millrace/kafka/wire_writer.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <string>

namespace millrace::kafka {
namespace {

constexpr std::size_t size_max = std::numeric_limits<std::int32_t>::max();
/// What write_size turns into a null, in each of the forms.
constexpr auto null_size = static_cast<std::size_t>(-1);

}  // namespace

WireWriter::WireWriter(std::size_t capacity)
    : block_(capacity), open_(block_.data()), at_(open_), end_(open_ + capacity) {}

void WireWriter::settle() {
  block_.filled(gathered());
  open_ = at_;
}

void WireWriter::grow(std::size_t bytes) {
  settle();
  MutableBuffer larger(std::max(2 * block_.capacity(), block_.size() + bytes));
  larger.append(block_.bytes());
  block_ = std::move(larger);
  open_ = at_ = block_.space().data();
  end_ = at_ + block_.space().size();
}

void WireWriter::append(Bytes bytes) {
  if (bytes.empty()) return;
  std::memcpy(room(bytes.size()), bytes.data(), bytes.size());
  at_ += bytes.size();
}

void WireWriter::fail(Errc code, const char* field) noexcept {
  if (bad_field_) return;
  bad_code_ = code;
  bad_field_ = field;
}

void WireWriter::write(const Uuid& value) { append(std::as_bytes(std::span(value.bytes))); }

void WireWriter::write_size(std::size_t size, bool small) {
  if (flexible_) {
    write_uvarint(static_cast<std::uint32_t>(size) + 1);
  } else if (small) {
    write(static_cast<std::int16_t>(size));
  } else {
    write(static_cast<std::int32_t>(size));
  }
}

void WireWriter::write(std::string_view value, const char* field) {
  if (value.size() > string_bytes_max) return fail(Errc::invalid_argument, field);
  write_size(value.size(), true);
  append(as_bytes(value));
}

void WireWriter::write(const std::optional<std::string_view>& value, const char* field,
                       bool nullable) {
  if (value) return write(*value, field);
  if (!nullable) fail(Errc::invalid_argument, field);
  write_size(null_size, true);
}

void WireWriter::write(const Buffer& value, const char* field) {
  if (value.size() > size_max) return fail(Errc::invalid_argument, field);
  write_size(value.size(), false);
  if (value.size() < splice_bytes_min || open_tags_ > 0) return append(value);
  settle();
  spliced_bytes_ += value.size();
  splices_.push_back({block_.size(), Payload(value)});
}

void WireWriter::write(const std::optional<Buffer>& value, const char* field, bool nullable) {
  if (value) return write(*value, field);
  if (!nullable) fail(Errc::invalid_argument, field);
  write_size(null_size, false);
}

void WireWriter::write(const Payload& value, const char* field) {
  if (value.size() > size_max) return fail(Errc::invalid_argument, field);
  write_size(value.size(), false);
  if (value.empty()) return;
  MR_ASSERT(open_tags_ == 0);
  settle();
  spliced_bytes_ += value.size();
  splices_.push_back({block_.size(), value});
}

void WireWriter::write(const std::optional<Payload>& value, const char* field, bool nullable) {
  if (value) return write(*value, field);
  if (!nullable) fail(Errc::invalid_argument, field);
  write_size(null_size, false);
}

void WireWriter::write_count(std::size_t count, const char* field) {
  if (count > size_max) return fail(Errc::invalid_argument, field);
  write_size(count, false);
}

void WireWriter::write_null_array(const char* field, bool nullable) {
  if (!nullable) fail(Errc::invalid_argument, field);
  write_size(null_size, false);
}

void WireWriter::write_tags(const UnknownTags& unknown) {
  if (unknown.empty()) return write(std::int8_t{0});
  TagWriter(*this, unknown).finish();
}

void WireWriter::patch_uvarint(std::size_t at, std::uint32_t value) {
  settle();
  const auto more = uvarint_bytes(value) - 1;
  if (more > 0) {
    room(more);
    std::byte* const behind = block_.data() + at + 1;
    std::memmove(behind + more, behind, block_.size() - at - 1);
    at_ += more;
    settle();
  }
  store_uvarint(block_.data() + at, value);
}

Result<Payload> WireWriter::finish() && {
  if (bad_code_ == Errc::unsupported) {
    return Error{bad_code_, std::string("this version has no field ") + bad_field_};
  }
  if (bad_field_) {
    return Error{bad_code_, std::string("null, or longer than the ") +
                                std::to_string(string_bytes_max) +
                                " bytes that a text may have: field " + bad_field_};
  }
  settle();
  open_ = at_ = end_ = nullptr;
  const auto block = std::move(block_).freeze();
  Payload payload;
  std::size_t from = 0;
  for (auto& splice : splices_) {
    payload.add(block.slice(from, splice.at - from));
    payload.add(std::move(splice.payload));
    from = splice.at;
  }
  payload.add(block.slice(from));
  splices_.clear();
  spliced_bytes_ = 0;
  return payload;
}

Result<Payload> WireWriter::finish_frame() && {
  settle();
  MR_ASSERT(block_.size() >= sizeof(std::int32_t));
  const auto size = this->size() - sizeof(std::int32_t);
  if (size > size_max) return Error{Errc::too_large, "frame of " + std::to_string(size) + " bytes"};
  store_be(block_.data(), static_cast<std::int32_t>(size));
  return std::move(*this).finish();
}

TagWriter::TagWriter(WireWriter& out, const UnknownTags& unknown) : out_(out), unknown_(unknown) {
  out_.settle();
  count_at_ = out_.block_.size();
  out_.write(std::int8_t{0});
}

void TagWriter::begin(std::uint32_t tag) {
  write_unknown_below(tag);
  ++count_;
  out_.write_uvarint(tag);
  out_.settle();
  size_at_ = out_.block_.size();
  out_.write(std::int8_t{0});
  ++out_.open_tags_;
}

void TagWriter::end() {
  --out_.open_tags_;
  out_.settle();
  out_.patch_uvarint(size_at_, static_cast<std::uint32_t>(out_.block_.size() - size_at_ - 1));
}

void TagWriter::finish() {
  write_unknown_below(std::uint64_t{1} << 32);
  out_.patch_uvarint(count_at_, count_);
}

void TagWriter::write_unknown_below(std::uint64_t tag) {
  for (; next_unknown_ < unknown_.size() && unknown_[next_unknown_].tag < tag; ++next_unknown_) {
    const auto& field = unknown_[next_unknown_];
    ++count_;
    out_.write_uvarint(field.tag);
    out_.write_uvarint(static_cast<std::uint32_t>(field.value.size()));
    out_.append(field.value);
  }
}

}  // namespace millrace::kafka
