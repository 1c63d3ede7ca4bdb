// Which part of a log compaction may clean, how much it needs that, and in which pieces. Pure
// functions.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <millrace/storage.h>
#include <millrace/types.h>

#include "kernel/partition/topic_config.h"

namespace millrace::kernel {

/// [clean from the start | dirty | not to be touched yet ], each a run of segments.
struct CleanableRange {
  Offset first_dirty;  ///< below it no key is there twice
  Offset limit;        ///< where a segment begins; nothing from here on is touched
  std::uint64_t clean_bytes = 0;
  std::uint64_t dirty_bytes = 0;

  double dirty_ratio() const noexcept {
    const auto all = clean_bytes + dirty_bytes;
    return all == 0 ? 0 : static_cast<double>(dirty_bytes) / static_cast<double>(all);
  }
};

/// `segments` are oldest first, the last is active. Nothing of the active one, nothing at or beyond
/// `last_stable`, and nothing younger than min.compaction.lag.ms may be cleaned. `cleaned_to` is
/// where the last pass ended; what does not fit the log counts for nothing.
CleanableRange plan_cleaning(std::span<const SegmentInfo> segments, const TopicConfig& config,
                             Timestamp now, const LogBounds& bounds, Offset last_stable,
                             Offset cleaned_to);

/// Whether `range` is to be cleaned now: it is dirty enough, or `oldest_dirty` (none: not known) is
/// older than max.compaction.lag.ms.
bool wants_cleaning(const CleanableRange& range, const TopicConfig& config, Timestamp now,
                    Timestamp oldest_dirty);
/// Whether a record of that time has waited longer than max.compaction.lag.ms.
bool is_overdue(const TopicConfig& config, Timestamp now, Timestamp oldest_dirty);

/// Segments that become one.
struct SegmentGroup {
  Offset from;
  Offset to;
  std::size_t segments = 0;
  Timestamp modified;  ///< of the last one
};

/// Those below `end`, in groups that are within segment.bytes, within what their indexes may take,
/// and within what one segment's offsets may span.
std::vector<SegmentGroup> group_segments(std::span<const SegmentInfo> segments, Offset end,
                                         const TopicConfig& config);

}  // namespace millrace::kernel
