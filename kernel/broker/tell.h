// Running something on another shard, or at once where that is this one.
#pragma once

#include <utility>

#include <millrace/shard.h>

namespace millrace::kernel {

/// [shard `here`]
template <class F>
void tell(Shard& here, Shard& there, F job) {
  if (&here == &there) {
    job();
  } else {
    there.post(std::move(job));
  }
}

}  // namespace millrace::kernel
