#include "kernel/partition/retention.h"

#include <algorithm>
#include <numeric>

namespace millrace::kernel {

namespace {

Timestamp newest_of(const SegmentInfo& segment, Timestamp now) {
  const auto written = segment.modified.ms >= 0 ? segment.modified : now;
  return segment.max_timestamp.ms >= 0 ? std::min(segment.max_timestamp, written) : written;
}

}  // namespace

std::optional<RetentionPlan> plan_retention(std::span<const SegmentInfo> segments,
                                            const TopicConfig& config, Timestamp now,
                                            Offset high_watermark) {
  if (!config.cleanup_delete) return std::nullopt;
  auto bytes_left = std::accumulate(
      segments.begin(), segments.end(), std::uint64_t{0},
      [](std::uint64_t sum, const SegmentInfo& segment) { return sum + segment.bytes; });

  std::optional<RetentionPlan> plan;
  for (const auto& segment : segments) {
    if (segment.next > high_watermark || (segment.active && segment.bytes == 0)) break;
    if (segment.bytes == 0) continue;  // compaction has left nothing: it goes with the next one
    bytes_left -= segment.bytes;
    const bool too_old =
        config.retention_ms >= 0 && now.ms - newest_of(segment, now).ms > config.retention_ms;
    // The segment goes by size only if what stays is still the whole of retention.bytes.
    const bool too_much = config.retention_bytes >= 0 && !segment.active &&
                          bytes_left >= static_cast<std::uint64_t>(config.retention_bytes);
    if (!too_old && !too_much) break;
    plan = RetentionPlan{.first_kept = segment.next, .roll_active = segment.active};
  }
  return plan;
}

}  // namespace millrace::kernel
