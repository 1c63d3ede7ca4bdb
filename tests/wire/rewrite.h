// A recorded request as it must be sent today: ids of the recording replaced by those of this run.
#pragma once

#include <millrace/buffer.h>

#include "bindings.h"
#include "session.h"

namespace millrace::wire {

/// The frame of `request`, without its size. What is not understood is left as it is. `too_new`:
/// the recorded broker refused its records for being from the future, so they are set ahead of
/// today's clock as well.
Buffer rewrite_request(const Event& request, const Bindings& bindings, bool too_new);

}  // namespace millrace::wire
