#include <millrace/filelog/entry.h>

#include <algorithm>
#include <charconv>

#include <millrace/batch.h>
#include <millrace/bytes.h>
#include <millrace/cached_file.h>
#include <millrace/filelog/text.h>

namespace millrace::filelog {

namespace {

constexpr std::size_t scan_chunk_bytes = 4096;
constexpr std::size_t read_chunk_bytes = 262'144;

// Where fields stand in an entry, and how short one of each format can be.
constexpr std::size_t length_at = 8;
constexpr std::size_t head_bytes_min = 17;
constexpr std::size_t v2_crc_at = 17;
constexpr std::size_t v2_crc_from = 21;
constexpr std::size_t v2_last_delta_at = 23;
constexpr std::size_t v2_max_timestamp_at = 35;
constexpr std::size_t v2_head_bytes = 43;
constexpr std::size_t old_crc_at = 12;
constexpr std::size_t v1_timestamp_at = 18;
constexpr std::size_t v0_bytes_min = 26;
constexpr std::size_t v1_bytes_min = 34;

std::size_t bytes_min_of(std::int8_t magic) {
  if (magic == 2) return batch_header_bytes;
  return magic == 1 ? v1_bytes_min : v0_bytes_min;
}

std::string hex(std::uint32_t value) {
  char digits[8];
  const auto [end, error] = std::to_chars(std::begin(digits), std::end(digits), value, 16);
  return {digits, end};
}

Error corrupt(const File& file, std::uint64_t position, std::string what) {
  return {Errc::corrupt, say(file.path(), ": byte ", position, ": ", what)};
}

Error torn(const File& file, std::uint64_t position, std::uint64_t expected, std::uint64_t found) {
  return {Errc::out_of_range,
          say(file.path(), ": byte ", position, ": the file ends within a batch; ", expected,
              " bytes expected, ", found, " found")};
}

// Calls `each` with the range in chunks; stops when it returns false.
template <class F>
Result<> for_each_chunk(const File& file, std::uint64_t from, std::uint64_t end, F each) {
  std::vector<std::byte> chunk(std::min<std::uint64_t>(read_chunk_bytes, end - from));
  while (from < end) {
    const auto wanted = std::min<std::uint64_t>(chunk.size(), end - from);
    MR_TRY(const auto bytes, file.read_at(from, MutableBytes(chunk).first(wanted)));
    if (bytes < wanted) return torn(file, from, wanted, bytes);
    if (!each(Bytes(chunk).first(bytes))) break;
    from += bytes;
  }
  return {};
}

}  // namespace

Result<Bytes> EntryScanner::head() {
  const auto wanted = std::min<std::uint64_t>(v2_head_bytes, end_ - position_);
  const bool have =
      position_ >= chunk_at_ && position_ + wanted <= chunk_at_ + chunk_bytes_ && chunk_bytes_ > 0;
  if (!have) {
    chunk_.resize(scan_chunk_bytes);
    const auto left = std::min<std::uint64_t>(scan_chunk_bytes, end_ - position_);
    MR_TRY(chunk_bytes_, file_.read_at(position_, MutableBytes(chunk_).first(left)));
    chunk_at_ = position_;
  }
  const auto at = static_cast<std::size_t>(position_ - chunk_at_);
  return Bytes(chunk_).subspan(at, std::min<std::size_t>(wanted, chunk_bytes_ - at));
}

Result<std::optional<Entry>> EntryScanner::next() {
  if (position_ >= end_) return std::nullopt;
  const auto left = end_ - position_;
  MR_TRY(const auto bytes, head());
  if (bytes.size() < head_bytes_min) return torn(file_, position_, head_bytes_min, bytes.size());

  const auto length = load_be<std::int32_t>(bytes.data() + length_at);
  Entry entry{.position = position_, .magic = static_cast<std::int8_t>(bytes[batch_magic_at])};
  if (entry.magic < 0 || entry.magic > 2) {
    return corrupt(file_, position_, say("format ", entry.magic, " where 0 to 2 exist"));
  }
  const auto bytes_min = bytes_min_of(entry.magic);
  if (length < static_cast<std::int32_t>(bytes_min - batch_prefix_bytes)) {
    return corrupt(file_, position_, say("a batch of length ", length));
  }
  entry.bytes = batch_prefix_bytes + static_cast<std::uint64_t>(length);
  if (entry.bytes > left) return torn(file_, position_, entry.bytes, left);
  if (bytes.size() < std::min<std::size_t>(bytes_min, v2_head_bytes)) {
    return torn(file_, position_, bytes_min, bytes.size());
  }

  entry.base = entry.last = Offset{load_be<std::int64_t>(bytes.data())};
  if (entry.base.value < 0) {
    return corrupt(file_, position_, say("offset ", entry.base.value));
  }
  if (entry.magic == 2) {
    const auto delta = load_be<std::int32_t>(bytes.data() + v2_last_delta_at);
    if (delta < 0) return corrupt(file_, position_, say("last offset delta ", delta));
    entry.last = entry.base + delta;
    entry.max_timestamp.ms = load_be<std::int64_t>(bytes.data() + v2_max_timestamp_at);
  } else if (entry.magic == 1) {
    entry.max_timestamp.ms = load_be<std::int64_t>(bytes.data() + v1_timestamp_at);
  }
  position_ = entry.end();
  return entry;
}

Result<> check_crc(const File& file, const Entry& entry) {
  const bool v2 = entry.magic == 2;
  std::byte stored[4];
  const auto stored_at = entry.position + (v2 ? v2_crc_at : old_crc_at);
  MR_TRY(const auto bytes, file.read_at(stored_at, stored));
  if (bytes < sizeof stored) return torn(file, entry.position, entry.bytes, bytes);
  const auto expected = load_be<std::uint32_t>(stored);
  std::uint32_t found = 0;
  const auto from = entry.position + (v2 ? v2_crc_from : batch_magic_at);
  MR_CHECK(for_each_chunk(file, from, entry.end(), [&](Bytes chunk) {
    found = v2 ? crc32c(chunk, found) : crc32(chunk, found);
    return true;
  }));
  if (found == expected) return {};
  return corrupt(file, entry.position,
                 say("batch of offset ", entry.base.value, ": checksum ", hex(expected),
                     " expected, ", hex(found), " found"));
}

Result<bool> all_zero(const File& file, std::uint64_t from, std::uint64_t end) {
  bool zero = true;
  MR_CHECK(for_each_chunk(file, from, end, [&](Bytes chunk) {
    zero = std::ranges::all_of(chunk, [](std::byte byte) { return byte == std::byte{0}; });
    return zero;
  }));
  return zero;
}

Result<std::uint64_t> bring_in(const File& file, std::uint64_t from, std::uint64_t end) {
  if (const auto* ahead = ReadAheadFile::of(file)) return ahead->read_on(from, end - from);
  if (const auto* cached = CachedFile::of(file)) {
    MR_CHECK(cached->bring_in(from, end - from));
  } else {
    MR_CHECK(for_each_chunk(file, from, end, [](Bytes) { return true; }));
  }
  return end;
}

}  // namespace millrace::filelog
