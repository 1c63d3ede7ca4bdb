#include <millrace/filelog/index.h>

#include <millrace/bytes.h>

namespace millrace::filelog {

namespace {

// Rows of a file without the zeros behind the last real one. A file that ends within a row is
// wrong.
std::optional<std::size_t> rows_in(Bytes file, std::size_t row_bytes) {
  if (file.size() % row_bytes != 0) return std::nullopt;
  auto used = file.size();
  while (used > 0 && file[used - 1] == std::byte{0}) --used;
  return (used + row_bytes - 1) / row_bytes;
}

}  // namespace

std::optional<OffsetIndex> OffsetIndex::parse(Bytes file, std::uint64_t log_bytes) {
  const auto count = rows_in(file, row_bytes);
  if (!count) return std::nullopt;
  OffsetIndex index;
  index.rows_.reserve(*count);
  Row previous{-1, -1};
  for (std::size_t at = 0; at < *count; ++at) {
    const auto* from = file.data() + at * row_bytes;
    const Row row{load_be<std::int32_t>(from), load_be<std::int32_t>(from + 4)};
    if (row.offset <= previous.offset || row.position <= previous.position) return std::nullopt;
    if (static_cast<std::uint64_t>(row.position) >= log_bytes) return std::nullopt;
    index.rows_.push_back(row);
    previous = row;
  }
  return index;
}

std::vector<std::byte> OffsetIndex::encode(std::size_t from) const {
  std::vector<std::byte> bytes((rows_.size() - from) * row_bytes);
  auto* to = bytes.data();
  for (auto at = from; at < rows_.size(); ++at, to += row_bytes) {
    store_be(to, rows_[at].offset);
    store_be(to + 4, rows_[at].position);
  }
  return bytes;
}

std::optional<OffsetIndex::Row> OffsetIndex::find(std::int64_t offset) const {
  const auto next = std::ranges::upper_bound(rows_, offset, {}, &Row::offset);
  if (next == rows_.begin()) return std::nullopt;
  return *std::prev(next);
}

std::optional<OffsetIndex::Row> OffsetIndex::find_by_position(std::uint64_t position,
                                                              std::int64_t limit) const {
  const auto by_position = std::ranges::upper_bound(
      rows_, position, {}, [](Row row) { return static_cast<std::uint64_t>(row.position); });
  const auto by_offset = std::ranges::lower_bound(rows_, limit, {}, &Row::offset);
  const auto next = std::min(by_position, by_offset);
  if (next == rows_.begin()) return std::nullopt;
  return *std::prev(next);
}

void OffsetIndex::keep_through(std::int64_t offset) {
  rows_.erase(std::ranges::upper_bound(rows_, offset, {}, &Row::offset), rows_.end());
}

std::optional<TimeIndex> TimeIndex::parse(Bytes file) {
  const auto count = rows_in(file, row_bytes);
  if (!count) return std::nullopt;
  TimeIndex index;
  index.rows_.reserve(*count);
  Row previous{std::numeric_limits<std::int64_t>::min(), -1};
  for (std::size_t at = 0; at < *count; ++at) {
    const auto* from = file.data() + at * row_bytes;
    const Row row{load_be<std::int64_t>(from), load_be<std::int32_t>(from + 8)};
    if (row.timestamp < previous.timestamp || row.offset < previous.offset) return std::nullopt;
    index.rows_.push_back(row);
    previous = row;
  }
  return index;
}

std::vector<std::byte> TimeIndex::encode(std::size_t from) const {
  std::vector<std::byte> bytes((rows_.size() - from) * row_bytes);
  auto* to = bytes.data();
  for (auto at = from; at < rows_.size(); ++at, to += row_bytes) {
    store_be(to, rows_[at].timestamp);
    store_be(to + 8, rows_[at].offset);
  }
  return bytes;
}

void TimeIndex::add(Row row) {
  if (row.timestamp < 0 || (!rows_.empty() && row.timestamp <= rows_.back().timestamp)) return;
  rows_.push_back(row);
}

std::optional<TimeIndex::Row> TimeIndex::find_older(std::int64_t timestamp) const {
  const auto next = std::ranges::lower_bound(rows_, timestamp, {}, &Row::timestamp);
  if (next == rows_.begin()) return std::nullopt;
  return *std::prev(next);
}

void TimeIndex::keep_through(std::int64_t offset) {
  rows_.erase(std::ranges::upper_bound(rows_, offset, {}, &Row::offset), rows_.end());
}

}  // namespace millrace::filelog
