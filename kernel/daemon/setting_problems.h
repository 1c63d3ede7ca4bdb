// What is wrong with settings of topics and brokers in a configuration beyond their types and
// bounds, with its place.
#pragma once

#include "kernel/config/config.h"
#include "kernel/host/plan.h"

namespace millrace::kernel {

/// Of `[defaults]`, which topics would inherit; where those are right, of every `[topic.NAME]`.
/// [start-up]
ConfigErrors setting_problems(const Plan& plan);

}  // namespace millrace::kernel
