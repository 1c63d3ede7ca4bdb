#include "kernel/streams/watchdog.h"

#include <algorithm>
#include <utility>

namespace millrace::kernel {

namespace {

constexpr Duration look_interval = std::chrono::milliseconds(100);
// A thread that is away for longer is missed.
constexpr Duration slow_after = std::chrono::milliseconds(200);

}  // namespace

Watch::Watch(Environment& environment, Shard& home, const Duration& limit, Job give_up)
    : pool_(environment.workers()),
      clock_(environment.clock()),
      home_(home),
      limit_(&limit),
      give_up_(std::move(give_up)) {}

void Watch::start() {
  look_at_ = home_.now() + look_interval;
  home_.schedule(look_at_, [self = shared_from_this()] { self->look(); });
}

// Nobody was on a processor between when we should have been called and now.
void Watch::forgive(MonoTime now) {
  if (!begun_ || now - look_at_ < look_interval) return;
  *begun_ += now - std::max(look_at_, *begun_);
}

void Watch::look() {
  Job give_up;
  {
    const std::lock_guard lock(mutex_);
    if (dropped_) return;
    const auto now = home_.now();
    forgive(now);
    const auto ran = begun_ ? now - *begun_ : Duration::zero();
    if (ran > slow_after && !lent_) {
      lent_ = true;
      pool_.lend();
    }
    if (begun_ && ran > *limit_) {
      dropped_ = true;
      give_up = std::move(give_up_);
    }
  }
  if (give_up) return give_up();
  start();
}

void Watch::drop() {
  const std::lock_guard lock(mutex_);
  dropped_ = true;
  give_up_ = {};
}

bool Watch::begin() {
  const std::lock_guard lock(mutex_);
  if (dropped_) return false;
  begun_ = clock_.now();
  return true;
}

}  // namespace millrace::kernel
