// From files and --set to what a broker would run: read, planned, and all that is wrong so far.
#pragma once

#include <expected>

#include "kernel/config/config.h"
#include "kernel/host/plan.h"

namespace millrace::kernel {

/// Plugins are mapped, none of their code is called: what only that can tell, Engine::check() asks.
/// [start-up]
std::expected<Plan, ConfigErrors> read_plan(const ConfigSource& source,
                                            const LoadLibrary& load = load_as_at_a_start);

}  // namespace millrace::kernel
