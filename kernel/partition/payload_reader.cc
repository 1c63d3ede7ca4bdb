#include "kernel/partition/payload_reader.h"

#include <algorithm>
#include <array>
#include <string>

#include <millrace/bytes.h>
#include <millrace/environment.h>

namespace millrace::kernel {

namespace {

std::uint64_t size_of(const Payload::Part& part) noexcept {
  if (const auto* buffer = std::get_if<Buffer>(&part)) return buffer->size();
  return std::get<FileRange>(part).size;
}

Result<> read_part(const Payload::Part& part, std::uint64_t position, MutableBytes into) {
  if (const auto* buffer = std::get_if<Buffer>(&part)) {
    std::ranges::copy(buffer->bytes().subspan(position, into.size()), into.begin());
    return {};
  }
  const auto& range = std::get<FileRange>(part);
  MR_TRY(const auto bytes, range.file->read_at(range.offset + position, into));
  if (bytes == into.size()) return {};
  return Error{Errc::corrupt, range.file->path() + ": ends within a batch, at byte " +
                                  std::to_string(range.offset + position + bytes)};
}

// Reads at rising positions of a payload. What is read may overlap: an entry may be shorter than
// the head that is looked at.
class Cursor {
 public:
  explicit Cursor(const Payload& payload) : parts_(payload.parts()) {}

  Result<> read(std::uint64_t position, MutableBytes into) {
    while (position - part_start_ >= size_of(parts_[part_at_])) {
      part_start_ += size_of(parts_[part_at_++]);
    }
    auto within = position - part_start_;
    for (auto part = part_at_; !into.empty(); ++part, within = 0) {
      const auto bytes = std::min<std::uint64_t>(into.size(), size_of(parts_[part]) - within);
      MR_CHECK(read_part(parts_[part], within, into.first(bytes)));
      into = into.subspan(bytes);
    }
    return {};
  }

 private:
  const std::vector<Payload::Part>& parts_;
  std::size_t part_at_ = 0;  // that of the last position
  std::uint64_t part_start_ = 0;
};

// Parses what stands at the front of an entry of which `left` bytes are there at most. Its own
// length may say more than `bytes` has: only the head was read.
Result<BatchHeader> parse_head(Bytes bytes, std::uint64_t left) {
  constexpr std::size_t length_at = 8;
  if (bytes.size() <= batch_magic_at) {
    return Error{Errc::corrupt, std::to_string(bytes.size()) + " bytes behind the last batch"};
  }
  const auto magic = load_be<std::int8_t>(bytes.data() + batch_magic_at);
  const auto length = load_be<std::int32_t>(bytes.data() + length_at);
  if (length < 0 || batch_prefix_bytes + static_cast<std::uint64_t>(length) > left) {
    return Error{Errc::corrupt, "a batch of length " + std::to_string(length) + " in " +
                                    std::to_string(left) + " bytes"};
  }
  if (magic == 2) return parse_batch_header(bytes);
  return BatchHeader{
      .base_offset = {load_be<std::int64_t>(bytes.data())}, .batch_length = length, .magic = magic};
}

}  // namespace

Result<> for_each_batch(const Payload& payload,
                        const std::function<bool(const FoundBatch&)>& each) {
  Cursor cursor(payload);
  std::array<std::byte, batch_header_bytes> head{};
  for (std::uint64_t position = 0; position < payload.size();) {
    const auto left = payload.size() - position;
    const auto bytes = MutableBytes(head).first(std::min<std::uint64_t>(left, head.size()));
    MR_CHECK(cursor.read(position, bytes));
    MR_TRY(const auto header, parse_head(bytes, left));
    if (!each({header, position})) return {};
    position += header.total_bytes();
  }
  return {};
}

Result<Buffer> copy_range(const Payload& payload, std::uint64_t position, std::uint64_t size) {
  MR_ASSERT(position <= payload.size() && size <= payload.size() - position);
  std::uint64_t part_start = 0;
  for (const auto& part : payload.parts()) {
    const auto* buffer = std::get_if<Buffer>(&part);
    const auto part_bytes = size_of(part);
    if (buffer && position >= part_start && position + size <= part_start + part_bytes) {
      return buffer->slice(position - part_start, size);
    }
    part_start += part_bytes;
  }
  MutableBuffer copy(size);
  MR_CHECK(Cursor(payload).read(position, copy.space()));
  copy.filled(size);
  return std::move(copy).freeze();
}

}  // namespace millrace::kernel
