#include "kernel/partition/compaction_plan.h"

#include <algorithm>
#include <limits>

namespace millrace::kernel {

namespace {

// Of an index, for each index.interval.bytes of log: a row of the one by time is the larger.
constexpr std::uint64_t index_row_bytes = 12;

Timestamp newest_of(const SegmentInfo& segment) {
  return segment.max_timestamp.ms >= 0 ? segment.max_timestamp : segment.modified;
}

std::uint64_t index_bytes(std::uint64_t segment_bytes, const TopicConfig& config) {
  const auto interval = std::max<std::int64_t>(config.index_interval_bytes, 1);
  return (segment_bytes / static_cast<std::uint64_t>(interval) + 1) * index_row_bytes;
}

}  // namespace

CleanableRange plan_cleaning(std::span<const SegmentInfo> segments, const TopicConfig& config,
                             Timestamp now, const LogBounds& bounds, Offset last_stable,
                             Offset cleaned_to) {
  CleanableRange range;
  const bool fits = cleaned_to >= bounds.start && cleaned_to <= bounds.end;
  range.first_dirty = fits ? cleaned_to : bounds.start;
  range.limit = range.first_dirty;
  if (!segments.empty()) range.limit = std::min(range.limit, segments.back().base);
  for (const auto& segment : segments) {
    if (segment.active || segment.next > last_stable) break;
    const bool dirty = segment.next > range.first_dirty;
    const bool young = config.min_compaction_lag_ms > 0 &&
                       newest_of(segment).ms > now.ms - config.min_compaction_lag_ms;
    if (dirty && young) break;
    (dirty ? range.dirty_bytes : range.clean_bytes) += segment.bytes;
    range.limit = std::max(range.limit, segment.next);
  }
  return range;
}

bool is_overdue(const TopicConfig& config, Timestamp now, Timestamp oldest_dirty) {
  return config.max_compaction_lag_ms != TopicConfig::never_ms && oldest_dirty.ms >= 0 &&
         now.ms - oldest_dirty.ms > config.max_compaction_lag_ms;
}

bool wants_cleaning(const CleanableRange& range, const TopicConfig& config, Timestamp now,
                    Timestamp oldest_dirty) {
  if (range.dirty_bytes == 0 || range.limit <= range.first_dirty) return false;
  return range.dirty_ratio() > config.min_cleanable_dirty_ratio ||
         is_overdue(config, now, oldest_dirty);
}

std::vector<SegmentGroup> group_segments(std::span<const SegmentInfo> segments, Offset end,
                                         const TopicConfig& config) {
  constexpr std::int64_t span_max = std::numeric_limits<std::int32_t>::max();
  const auto bytes_max = static_cast<std::uint64_t>(config.segment_bytes);
  const auto index_max = static_cast<std::uint64_t>(config.segment_index_bytes);
  std::vector<SegmentGroup> groups;
  std::uint64_t bytes = 0;
  for (const auto& segment : segments) {
    if (segment.active || segment.base >= end) break;
    const auto joined = bytes + segment.bytes;
    const bool joins = !groups.empty() && joined <= bytes_max &&
                       index_bytes(joined, config) <= index_max &&
                       segment.next - groups.back().from <= span_max;
    if (!joins) groups.push_back({.from = segment.base});
    auto& group = groups.back();
    bytes = joins ? joined : segment.bytes;
    group.to = segment.next;
    group.modified = segment.modified;
    ++group.segments;
  }
  return groups;
}

}  // namespace millrace::kernel
