// Waiting longer after every failure.
#pragma once

#include <algorithm>

#include <millrace/types.h>

namespace millrace::kernel {

class Backoff {
 public:
  constexpr Backoff(Duration first, Duration longest) : next_(first), longest_(longest) {}
  /// How long to wait now; twice as long the next time, up to the bound.
  constexpr Duration next() noexcept {
    const auto now = next_;
    next_ = std::min(next_ * 2, longest_);
    return now;
  }

 private:
  Duration next_;
  Duration longest_;
};

}  // namespace millrace::kernel
