// Which of a log's oldest segments are to go.
#pragma once

#include <optional>
#include <span>

#include <millrace/storage.h>
#include <millrace/types.h>

#include "kernel/partition/topic_config.h"

namespace millrace::kernel {

/// What retention asks for: a new start, and whether the active segment must be rolled first
/// because it goes too.
struct RetentionPlan {
  Offset first_kept;
  bool roll_active = false;
};

/// None when everything stays. `segments` are oldest first; nothing at or beyond `high_watermark`
/// goes.
///
/// A segment's age counts from its newest record, but not from later than the file was last
/// written: a timestamp in the future keeps nothing alive.
std::optional<RetentionPlan> plan_retention(std::span<const SegmentInfo> segments,
                                            const TopicConfig& config, Timestamp now,
                                            Offset high_watermark);

}  // namespace millrace::kernel
