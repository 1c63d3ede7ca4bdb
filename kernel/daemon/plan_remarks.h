// What a configuration that is right leaves to be said.
#pragma once

#include <string>
#include <vector>

#include "kernel/host/plan.h"

namespace millrace::kernel {

/// What is hardly meant, with its place: folders of plugins.path that are not there.  [start-up]
std::vector<std::string> warnings_of(const Plan& plan);

/// Whether nobody is told of the broker's health, metrics and administration.
bool has_no_admin(const Plan& plan);

}  // namespace millrace::kernel
