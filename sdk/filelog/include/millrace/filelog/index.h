// The two indexes of a segment, in memory: sorted rows, written beside the log as a cache and
// rebuilt from it when they are missing or wrong. Offsets in rows are relative to the segment's
// base.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include <millrace/buffer.h>
#include <millrace/types.h>

namespace millrace::filelog {

/// Where an offset is: at or behind the position of the last row that is not beyond it.
class OffsetIndex {
 public:
  struct Row {
    std::int32_t offset = 0;    ///< the last of the batch that starts at `position`
    std::int32_t position = 0;  ///< in the log file
  };
  static constexpr std::size_t row_bytes = 8;

  /// From a file. Zero rows at its end (a preallocated index of Kafka's) are dropped. None when the
  /// rows do not rise, or point behind `log_bytes`.
  static std::optional<OffsetIndex> parse(Bytes file, std::uint64_t log_bytes);
  /// The rows from `from` on, as they stand in the file.
  std::vector<std::byte> encode(std::size_t from) const;

  /// Rows rise: one whose offset is not beyond the last is left out. (Older brokers name the last
  /// offset of an append at the position of its first batch.)
  void add(Row row) {
    if (rows_.empty() || row.offset > rows_.back().offset) rows_.push_back(row);
  }
  /// The last row whose offset is not beyond `offset`; none: the start of the file.
  std::optional<Row> find(std::int64_t offset) const;
  /// The last row that stands at or before `position` and whose offset is below `limit`.
  std::optional<Row> find_by_position(std::uint64_t position, std::int64_t limit) const;
  /// Keeps the rows up to and including the one that find(offset) gives.
  void keep_through(std::int64_t offset);
  const std::vector<Row>& rows() const noexcept { return rows_; }

 private:
  std::vector<Row> rows_;
};

/// How old things are: each row has the largest timestamp so far and the last
/// offset of its batch.
class TimeIndex {
 public:
  struct Row {
    std::int64_t timestamp = 0;
    std::int32_t offset = 0;
  };
  static constexpr std::size_t row_bytes = 12;

  static std::optional<TimeIndex> parse(Bytes file);
  std::vector<std::byte> encode(std::size_t from) const;

  /// Rows rise in both: one that brings nothing newer, or no time at all, is left out.
  void add(Row row);
  /// The timestamp of the last row; none: -1.
  std::int64_t newest() const { return rows_.empty() ? -1 : rows_.back().timestamp; }
  /// The last row older than `timestamp`: everything up to its offset is older too.
  std::optional<Row> find_older(std::int64_t timestamp) const;
  /// Keeps the rows whose offset is not beyond `offset`.
  void keep_through(std::int64_t offset);
  const std::vector<Row>& rows() const noexcept { return rows_; }

 private:
  std::vector<Row> rows_;
};

}  // namespace millrace::filelog
