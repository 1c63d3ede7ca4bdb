// The target assignment: what every member is to have in the group's epoch.
#pragma once

#include "../turn.h"
#include "assignor.h"
#include "draft.h"

namespace millrace::consumer_groups {

/// Computes and writes it, where the group's epoch is ahead of it and the last one was long enough
/// ago (group.consumer.assignment.interval.ms): many who join at once are one computation.
void update_target(Draft& draft, Turn& turn);

/// The assignor that most members ask for, else the first that this broker has.
const Assignor& assignor_of(const ConsumerGroup& group, const ConsumerSettings& settings);

}  // namespace millrace::consumer_groups
