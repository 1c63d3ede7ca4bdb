#include <millrace/kafka/frame_reader.h>

#include <algorithm>
#include <string>

#include <millrace/bytes.h>

namespace millrace::kafka {
namespace {

constexpr std::size_t size_bytes = sizeof(std::int32_t);
/// Less room than this is not worth a receive.
constexpr std::size_t space_bytes_min = 4 << 10;
/// A large frame gets so many times the room that it has used: what is not used costs no memory,
/// and what grows often is moved often.
constexpr std::size_t grow_times = 8;

}  // namespace

std::optional<std::size_t> FrameReader::frame_bytes() const {
  if (left() < size_bytes) return std::nullopt;
  return load_be<std::uint32_t>(block_.bytes().data() + taken_);
}

MutableBytes FrameReader::space() {
  const auto frame = frame_bytes();
  const auto whole = size_bytes + std::min(frame.value_or(0), frame_bytes_max_);
  const auto wanted = std::min(whole, std::max(frame_bytes_at_once, grow_times * left()));
  const auto room = block_.capacity() - block_.size();
  const auto room_min = frame ? std::size_t{1} : space_bytes_min;
  if (room >= room_min && taken_ + wanted <= block_.capacity()) return block_.space();

  if (taken_ == 0 && left() > 0) {  // nothing of it is shared: it may stay where it is
    block_.grow(std::max(wanted, left() + space_bytes_min));
    return block_.space();
  }
  MutableBuffer block(std::max({block_bytes, wanted, left() + space_bytes_min}));
  block.append(block_.bytes().subspan(taken_));
  block_ = std::move(block);
  taken_ = 0;
  return block_.space();
}

Result<std::optional<Buffer>> FrameReader::next() {
  const auto size = frame_bytes();
  if (!size) return std::nullopt;
  if (*size > frame_bytes_max_) {
    const bool negative = *size > std::size_t{0x7fffffff};
    return Error{negative ? Errc::corrupt : Errc::too_large, "frame of " + std::to_string(*size) +
                                                                 " bytes, allowed are " +
                                                                 std::to_string(frame_bytes_max_)};
  }
  if (left() < size_bytes + *size) return std::nullopt;
  auto frame = block_.share(taken_ + size_bytes, *size);
  taken_ += size_bytes + *size;
  return std::optional(std::move(frame));
}

}  // namespace millrace::kafka
