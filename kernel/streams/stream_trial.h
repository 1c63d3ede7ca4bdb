// What only the operators of a stream can say of their options.
#pragma once

#include <memory>
#include <vector>

#include <millrace/environment.h>

#include "kernel/host/instance_host.h"
#include "kernel/host/plan.h"

namespace millrace::kernel {

/// Makes one operator of each step, and lets go of it. Answers what is wrong: an error for each
/// step that cannot be made, with its place in the configuration. `settings`: what Host::setting()
/// answers. An operator that does not come back is given up after a while, and is wrong.  [a shard]
Task<std::vector<Error>> try_steps(PlannedStream planned,
                                   std::shared_ptr<const HostSettings> settings,
                                   HostServices services);

}  // namespace millrace::kernel
